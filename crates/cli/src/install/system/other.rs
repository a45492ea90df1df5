//! Windows: access lists come from the folder, the read-only attribute is kept, a rename is durable with the file.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    path::Path,
};

/// Extensions of programs, in the order in which Windows tries them.
const PROGRAM_EXTENSIONS: [&str; 4] = ["exe", "cmd", "bat", "com"];

/// The attributes that a replacement must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes {
    read_only: bool,
}

impl Attributes {
    pub(crate) fn of(found: &Metadata) -> Self {
        Self { read_only: found.permissions().readonly() }
    }

    pub(crate) fn give_to(self, file: &File) -> io::Result<()> {
        let mut permissions = file.metadata()?.permissions();
        permissions.set_readonly(self.read_only);
        file.set_permissions(permissions)
    }
}

/// The attribute means something for files only.
pub(crate) fn is_read_only(found: &Metadata) -> bool {
    found.is_file() && found.permissions().readonly()
}

pub(crate) fn is_executable(found: &Metadata) -> bool {
    found.is_file()
}

/// The standard library does not tell them here.
pub(crate) const fn other_names(_found: &Metadata) -> u64 {
    0
}

pub(crate) fn program_names(name: &str) -> Vec<String> {
    PROGRAM_EXTENSIONS.iter().map(|extension| format!("{name}.{extension}")).collect()
}

pub(crate) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    options
}

pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// A folder cannot be flushed here; the file system journals the rename.
pub(crate) const fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}
