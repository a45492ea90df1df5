//! macOS: the home directory of the user database (not `$HOME`), and the per-user temporary directory that the system
//! makes with mode 0700 (not `$TMPDIR`).

#[path = "sys_macos.rs"]
mod sys;

use std::path::PathBuf;

use super::{Place, PlaceError};
use crate::place_rules::RUN_NAME;

pub(super) fn user_home() -> Result<PathBuf, PlaceError> {
    sys::home().ok_or(PlaceError::NoHome { why: "the user database has no absolute one for this user id" })
}

pub(super) fn default_instance() -> Result<Place, PlaceError> {
    let support = user_home()?.join("Library/Application Support/watchkeeper");
    let run = sys::user_temporary_directory().map_or_else(|| support.join("run"), |dir| dir.join(RUN_NAME));
    Ok(Place { config: support.join("config"), state: support.join("state"), run })
}
