//! Permission bits and the owner, of the open descriptor.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

const ANY_OF_OTHERS: u32 = 0o077;

/// Not inherited by children: the standard library sees to that.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

pub(super) fn is_regular(_: &File, found: &Metadata) -> bool {
    found.is_file()
}

#[expect(clippy::unnecessary_wraps, reason = "other systems have to ask again")]
pub(super) fn is_exposed(_: &File, found: &Metadata) -> io::Result<bool> {
    Ok(found.mode() & ANY_OF_OTHERS != 0 || found.uid() != rustix::process::geteuid().as_raw())
}
