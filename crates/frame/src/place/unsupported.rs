//! A system without users' home directories.

use super::{Place, PlaceError};

pub(super) fn default_instance() -> Result<Place, PlaceError> {
    Err(PlaceError::NoHome { why: "this system is not supported; give the directories on the command line" })
}
