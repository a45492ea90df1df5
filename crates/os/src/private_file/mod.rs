//! Small files with a secret in them: read only if nobody but this user could have read or put them.
//!
//! Owns the checks, all of them on what was opened and none on its name. What the bytes mean is the caller's.

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod unix;
#[cfg(any(target_os = "linux", target_os = "macos"))]
use unix as platform;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as platform;

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod unsupported;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
use unsupported as platform;

#[cfg(windows)]
mod sys_windows;

use std::{
    io::{self, Read as _},
    path::Path,
};

/// Why a file counts for nothing.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// It is not there or cannot be opened; also for a symbolic link.
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it can be read or written by others than its owner")]
    Exposed,
    #[error("it has more than {bytes_max} bytes")]
    TooLong { bytes_max: usize },
}

/// All bytes of a regular file of this user that nobody else may open, at most `bytes_max`. Follows no link as the last
/// part of the path, waits for no pipe's writer, and reads no further than one byte beyond the bound.
///
/// On Windows the file must be this user's (or its administrators'); who may open it, is the access list's matter that it
/// has from its folder.
///
/// # Errors
/// [`PrivateFileError`].
pub fn read_private(path: &Path, bytes_max: usize) -> Result<Vec<u8>, PrivateFileError> {
    let file = platform::open(path)?;
    let found = file.metadata()?;
    if !platform::is_regular(&file, &found) {
        return Err(PrivateFileError::NotAFile);
    }
    if platform::is_exposed(&file, &found)? {
        return Err(PrivateFileError::Exposed);
    }
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(PrivateFileError::TooLong { bytes_max });
    }
    Ok(bytes)
}
