//! One configuration file as it stands: the file its symbolic links lead to, its bytes, and what must be kept of it.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use watchkeeper_agents::install::FILE_MAX_BYTES;

use super::{error::InstallError, system::Attributes};

/// Longest chain of symbolic links, as the kernel's own limit.
const LINKS_MAX: usize = 40;

/// A file's state when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Where the agent looks.
    pub(crate) path: PathBuf,
    /// Where the bytes are: the path itself, or what its links lead to.
    pub(crate) target: PathBuf,
    /// `None` when there is no file.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Mode and owner to keep; `None` when there is no file.
    pub(crate) attributes: Option<Attributes>,
}

impl Snapshot {
    /// Reads a file, without following it into anything but a regular file.
    pub(crate) fn read(path: &Path) -> Result<Self, InstallError> {
        let target = resolve(path)?;
        let absent = |target| Self { path: path.to_owned(), target, bytes: None, attributes: None };
        // Looked at before it is opened: opening a pipe would wait for its writer.
        let found = match fs::metadata(&target) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(absent(target)),
            Err(source) => return Err(InstallError::io("look at", &target)(source)),
        };
        if !found.is_file() {
            return Err(InstallError::NotAFile { path: path.to_owned() });
        }
        let mut file = match File::open(&target) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(absent(target)),
            Err(source) => return Err(InstallError::io("open", &target)(source)),
        };
        let opened = file.metadata().map_err(InstallError::io("look at", &target))?;
        if !opened.is_file() {
            return Err(InstallError::NotAFile { path: path.to_owned() });
        }
        // One byte more than is edited, so that a longer file is seen to be one.
        let limit = u64::try_from(FILE_MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        (&mut file).take(limit).read_to_end(&mut bytes).map_err(InstallError::io("read", &target))?;
        Ok(Self {
            path: path.to_owned(),
            target,
            bytes: Some(bytes),
            attributes: Some(Attributes::of(&opened)),
        })
    }

    /// Whether the file still is what it was when it was looked at.
    pub(crate) fn is_unchanged(&self) -> Result<bool, InstallError> {
        let now = Self::read(&self.path)?;
        Ok(now.target == self.target && now.bytes == self.bytes)
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Follows the links of the last path segment; a link that leads nowhere yet names the file to create.
fn resolve(path: &Path) -> Result<PathBuf, InstallError> {
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::symlink_metadata(&target) {
            Ok(found) if found.is_symlink() => {
                let link = fs::read_link(&target).map_err(InstallError::io("read the link", &target))?;
                target = target.parent().map_or_else(|| link.clone(), |folder| folder.join(&link));
            }
            Ok(_) => return Ok(target),
            Err(error) if is_absent(&error) => return Ok(target),
            Err(source) => return Err(InstallError::io("look at", &target)(source)),
        }
    }
    Err(InstallError::LinkLoop { path: path.to_owned() })
}
