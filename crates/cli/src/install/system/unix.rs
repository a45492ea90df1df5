//! Unix: permission bits and owners.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    path::Path,
};

/// Mode of a file that did not exist before: agents keep keys in these files.
const PRIVATE_FILE_MODE: u32 = 0o600;
const PRIVATE_FOLDER_MODE: u32 = 0o700;
const MODE_MASK: u32 = 0o7777;
const ANY_WRITE: u32 = 0o222;

/// Mode and owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes {
    mode: u32,
    owner: u32,
    group: u32,
}

impl Attributes {
    pub(crate) fn of(found: &Metadata) -> Self {
        Self { mode: found.mode() & MODE_MASK, owner: found.uid(), group: found.gid() }
    }

    /// Gives them to another file. The owner first, since a change of owner clears mode bits.
    pub(crate) fn give_to(self, file: &File) -> io::Result<()> {
        let now = Self::of(&file.metadata()?);
        let change = |wanted: u32, now: u32| (wanted != now).then_some(wanted);
        let (owner, group) = (change(self.owner, now.owner), change(self.group, now.group));
        if owner.is_some() || group.is_some() {
            fchown(file, owner, group)?;
        }
        file.set_permissions(fs::Permissions::from_mode(self.mode))
    }
}

/// Nobody has permission to write, which the superuser respects too: somebody meant it.
pub(crate) fn is_read_only(found: &Metadata) -> bool {
    found.mode() & ANY_WRITE == 0
}

pub(crate) fn is_executable(found: &Metadata) -> bool {
    found.is_file() && found.mode() & 0o111 != 0
}

/// Further names (hard links) of a file, which a rename leaves with the old content.
pub(crate) fn other_names(found: &Metadata) -> u64 {
    found.nlink().saturating_sub(1)
}

pub(crate) fn program_names(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

/// Options for a new file that only its owner may read.
pub(crate) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE_FILE_MODE);
    options
}

/// Creates one folder that only its owner may enter.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE_FOLDER_MODE).create(path)
}

/// Makes renames in a folder last.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
