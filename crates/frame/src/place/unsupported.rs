//! A system without users' home directories.

use std::path::PathBuf;

use super::{Place, PlaceError};

const WHY: &str = "this system is not supported; give the directories on the command line";

pub(super) fn user_home() -> Result<PathBuf, PlaceError> {
    Err(PlaceError::NoHome { why: WHY })
}

pub(super) fn default_instance() -> Result<Place, PlaceError> {
    Err(PlaceError::NoHome { why: WHY })
}
