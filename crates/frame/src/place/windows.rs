//! Windows: below the user's profile directory, asked from the process token (not `%LOCALAPPDATA%`).

#[path = "sys_windows.rs"]
mod sys;

use std::path::PathBuf;

use super::{Place, PlaceError};

pub(super) fn user_home() -> Result<PathBuf, PlaceError> {
    sys::profile_directory()
        .map_err(|source| PlaceError::System { what: "the user's profile directory", source })
}

pub(super) fn default_instance() -> Result<Place, PlaceError> {
    let own = user_home()?.join("AppData").join("Local").join("watchkeeper");
    Ok(Place { config: own.join("config"), state: own.join("state"), run: own.join("run") })
}
