//! Replacing a file so that it is, at every moment and after every crash, either the old one or the new one: written
//! beside its target, flushed, compared with what was shown, renamed over it, read back.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{error::InstallError, system, target::Snapshot};

/// A file of this age that an interrupted run left beside its target is removed.
const LEFTOVER_MIN_AGE: Duration = Duration::from_mins(10);

/// Most folder entries that are looked through for such files; the rest waits for the next run.
const LEFTOVER_SCAN_MAX: usize = 10_000;

/// A new text beside its target, not yet in its place. Dropped without [`Self::commit`], it is removed.
#[derive(Debug)]
pub(super) struct Staged<'s> {
    snapshot: &'s Snapshot,
    temporary: PathBuf,
    bytes: Vec<u8>,
    committed: bool,
}

impl<'s> Staged<'s> {
    /// Writes the new bytes beside the target, with the old file's mode and owner, and flushes them.
    pub(super) fn new(snapshot: &'s Snapshot, bytes: &[u8]) -> Result<Self, InstallError> {
        let target = &snapshot.target;
        check_writable(snapshot)?;
        remove_leftovers(target);
        let temporary = temporary_path(target);
        let mut file =
            system::private_options().open(&temporary).map_err(InstallError::io("create", &temporary))?;
        let staged = Self { snapshot, temporary, bytes: bytes.to_vec(), committed: false };
        file.write_all(bytes).map_err(InstallError::io("write", &staged.temporary))?;
        if let Some(attributes) = snapshot.attributes {
            attributes
                .give_to(&file)
                .map_err(|source| InstallError::Owner { path: snapshot.path.clone(), source })?;
        }
        file.sync_all().map_err(InstallError::io("flush", &staged.temporary))?;
        Ok(staged)
    }

    /// Puts it into its place, unless the file is no longer what was shown, and reads it back.
    pub(super) fn commit(mut self) -> Result<(), InstallError> {
        let Snapshot { path, target, .. } = self.snapshot;
        if !self.snapshot.is_unchanged()? {
            return Err(InstallError::ChangedMeanwhile { path: path.clone() });
        }
        fs::rename(&self.temporary, target).map_err(InstallError::io("rename a new file to", target))?;
        self.committed = true;
        sync_folder_of(target)?;
        let now = Snapshot::read(path)?;
        if now.bytes.as_deref() != Some(&self.bytes) || now.attributes.is_none() {
            return Err(InstallError::NotVerified { path: path.clone() });
        }
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // What cannot be removed now is removed as a leftover later.
            fs::remove_file(&self.temporary).ok();
        }
    }
}

/// Removes a file that holds nothing but ours.
pub(super) fn delete(snapshot: &Snapshot) -> Result<(), InstallError> {
    check_writable(snapshot)?;
    if !snapshot.is_unchanged()? {
        return Err(InstallError::ChangedMeanwhile { path: snapshot.path.clone() });
    }
    fs::remove_file(&snapshot.target).map_err(InstallError::io("remove", &snapshot.target))?;
    sync_folder_of(&snapshot.target)
}

/// Creates the folders a file needs, and names those that were created, outermost first.
pub(super) fn create_folders(target: &Path) -> Result<Vec<PathBuf>, InstallError> {
    let mut missing = Vec::new();
    let mut folder = target.parent();
    while let Some(path) = folder.filter(|path| !path.as_os_str().is_empty() && !path.exists()) {
        missing.push(path.to_owned());
        folder = path.parent();
    }
    missing.reverse();
    for path in &missing {
        match system::private_folder(path) {
            Ok(()) => {}
            // Somebody else was faster; then it is not ours to remove, but it is empty or it stays.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(source) => return Err(InstallError::io("create the folder", path)(source)),
        }
    }
    Ok(missing)
}

/// A file or folder that nobody may write is left alone, even where this user could.
pub(super) fn check_writable(snapshot: &Snapshot) -> Result<(), InstallError> {
    let path = &snapshot.path;
    if let Ok(found) = fs::metadata(&snapshot.target) {
        let denied = || InstallError::ReadOnly { path: path.clone() };
        if system::is_read_only(&found) {
            return Err(denied());
        }
        match fs::OpenOptions::new().append(true).open(&snapshot.target) {
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                return Err(denied());
            }
            Err(source) => return Err(InstallError::io("open for writing", &snapshot.target)(source)),
        }
    }
    if let Some(folder) = snapshot.target.parent()
        && let Ok(found) = fs::metadata(folder)
        && system::is_read_only(&found)
    {
        return Err(InstallError::ReadOnlyFolder { path: path.clone(), folder: folder.to_owned() });
    }
    Ok(())
}

fn sync_folder_of(target: &Path) -> Result<(), InstallError> {
    let folder = target.parent().unwrap_or_else(|| Path::new("."));
    system::sync_folder(folder).map_err(InstallError::io("flush the folder", folder))
}

fn temporary_prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.watchkeeper-")
}

const TEMPORARY_SUFFIX: &str = ".tmp";

fn temporary_path(target: &Path) -> PathBuf {
    let name = format!("{}{}{TEMPORARY_SUFFIX}", temporary_prefix(target), std::process::id());
    target.with_file_name(name)
}

/// Files that a run left when it was killed between writing and renaming.
fn remove_leftovers(target: &Path) {
    let Some(Ok(entries)) = target.parent().map(fs::read_dir) else { return };
    let prefix = temporary_prefix(target);
    let own = temporary_path(target);
    for entry in entries.take(LEFTOVER_SCAN_MAX).flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if !name.starts_with(&prefix) || !name.ends_with(TEMPORARY_SUFFIX) {
            continue;
        }
        let old = entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|found| {
            let age = found.modified().ok()?.elapsed().ok()?;
            Some(age >= LEFTOVER_MIN_AGE)
        });
        // The lock is held, so a file with this process's number is from an earlier life of the number.
        if old == Some(true) || entry.path() == own {
            // Best effort; the next run tries again.
            fs::remove_file(entry.path()).ok();
        }
    }
}
