//! The kind and the owner, of the open handle. Handles are not inherited unless that is asked for.

use std::{
    fs::{File, Metadata},
    io,
    os::windows::fs::OpenOptionsExt as _,
    path::Path,
};

use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_OPEN_REPARSE_POINT, SECURITY_IDENTIFICATION};

use super::sys_windows;

/// A link is opened itself, and is then no regular file; the other end of a pipe may learn who asks and not act as them.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
        .security_qos_flags(SECURITY_IDENTIFICATION)
        .open(path)
}

/// Named pipes and devices have names, too.
pub(super) fn is_regular(file: &File, found: &Metadata) -> bool {
    found.is_file() && sys_windows::is_on_disk(file)
}

pub(super) fn is_exposed(file: &File, _: &Metadata) -> io::Result<bool> {
    Ok(!sys_windows::is_ours(file)?)
}
