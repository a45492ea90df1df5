//! Linux and other Unix systems: `/run/user/UID` where it is ours, the home directory of `/etc/passwd`. A user whom
//! only a directory service knows has no entry there: the installer then names the directories.

#[path = "sys_unix.rs"]
mod sys;

use std::{
    ffi::OsStr,
    fs::File,
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use super::{Place, PlaceError};
use crate::place_rules::{
    LINUX_CONFIG, LINUX_RUN_FALLBACK, LINUX_RUN_PARENT, LINUX_STATE, PASSWD, PASSWD_MAX_BYTES, RUN_NAME,
    passwd_home,
};

pub(super) fn user_home() -> Result<PathBuf, PlaceError> {
    let mut passwd = Vec::new();
    File::open(PASSWD)
        .and_then(|file| file.take(PASSWD_MAX_BYTES as u64).read_to_end(&mut passwd))
        .map_err(|source| PlaceError::System { what: PASSWD, source })?;
    passwd_home(&passwd, sys::effective_user())
        .map(|home| PathBuf::from(OsStr::from_bytes(home)))
        .ok_or(PlaceError::NoHome { why: "/etc/passwd has no entry with an absolute one for this user id" })
}

pub(super) fn default_instance() -> Result<Place, PlaceError> {
    let home = user_home()?;
    let user = sys::effective_user();
    let own = Path::new(LINUX_RUN_PARENT).join(user.to_string());
    let own_exists = std::fs::symlink_metadata(&own).is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
    Ok(Place {
        config: home.join(LINUX_CONFIG),
        state: home.join(LINUX_STATE),
        run: if own_exists { own.join(RUN_NAME) } else { home.join(LINUX_RUN_FALLBACK) },
    })
}
