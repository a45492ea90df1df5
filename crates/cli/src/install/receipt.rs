//! What was written where, so that it can be undone byte for byte, and copies of every file as it was before.
//!
//! A receipt is written before its file. Whatever moment a crash picks, the receipt then either describes the file
//! or describes one that is not there, and a file that is not as its receipt says is taken apart entry by entry.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use watchkeeper_core::AgentKind;

use super::{
    context::Context,
    error::InstallError,
    target::Snapshot,
    write::{self, Staged},
};

/// Copies kept of each file; the oldest goes first. The undo does not need them.
const BACKUPS_MAX: usize = 20;

/// Most receipts that are read: far above agents × places they were moved to. The rest is passed over.
const RECEIPTS_MAX: usize = 500;

/// Raised when an older program could not undo what a newer one wrote; a newer receipt is passed over.
const RECEIPT_VERSION: u32 = 1;

/// One file that holds our entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receipt {
    version: u32,
    pub(super) agent: AgentKind,
    /// The agent's name for it: [`watchkeeper_agents::install::ConfigFile::path`].
    pub(super) file: String,
    pub(super) path: PathBuf,
    /// What it would be without us; `None` when it would not be there.
    pub(super) original: Option<String>,
    /// What we wrote.
    pub(super) written: String,
    /// Folders that were created for it, outermost first.
    pub(super) created_folders: Vec<PathBuf>,
}

/// The receipts and backups of one instance.
#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
}

/// Held while files are changed; released when dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Receipt {
    pub(super) fn new(
        agent: AgentKind,
        file: &str,
        path: &Path,
        original: Option<String>,
        written: String,
    ) -> Self {
        Self {
            version: RECEIPT_VERSION,
            agent,
            file: file.to_owned(),
            path: path.to_owned(),
            original,
            written,
            created_folders: Vec::new(),
        }
    }
}

impl Records {
    pub(super) fn of(context: &Context) -> Self {
        Self { folder: context.records() }
    }

    /// Only one installation at a time.
    pub(super) fn lock(&self) -> Result<Lock, InstallError> {
        let path = self.folder.join("lock");
        write::create_folders(&path)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(InstallError::io("open the lock", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(InstallError::Busy { path }),
            Err(TryLockError::Error(source)) => Err(InstallError::io("lock", &path)(source)),
        }
    }

    /// The receipt of a file, if there is a readable one.
    pub(super) fn find(&self, path: &Path) -> Option<Receipt> {
        read_receipt(&self.receipt_path(path)).filter(|receipt| receipt.path == path)
    }

    pub(super) fn all(&self) -> Vec<Receipt> {
        let Ok(entries) = fs::read_dir(self.folder.join("receipts")) else { return Vec::new() };
        let mut receipts: Vec<_> =
            entries.take(RECEIPTS_MAX).flatten().filter_map(|entry| read_receipt(&entry.path())).collect();
        receipts.sort_by(|one, other| one.path.cmp(&other.path));
        receipts
    }

    pub(super) fn put(&self, receipt: &Receipt) -> Result<(), InstallError> {
        let path = self.receipt_path(&receipt.path);
        write::create_folders(&path)?;
        let text = serde_json::to_vec_pretty(receipt)
            .map_err(|error| InstallError::io("write", &path)(io::Error::other(error)))?;
        let before = Snapshot {
            path: path.clone(),
            target: path.clone(),
            bytes: fs::read(&path).ok(),
            attributes: None,
        };
        Staged::new(&before, &text)?.commit()
    }

    /// Forgets a file; one that is not known is forgotten already.
    pub(super) fn forget(&self, path: &Path) -> Result<(), InstallError> {
        let receipt = self.receipt_path(path);
        match fs::remove_file(&receipt) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(InstallError::io("remove", &receipt)(source)),
        }
    }

    /// Copies a file's bytes aside and gives the copy's path; nothing for a file that is not there.
    pub(super) fn back_up(
        &self,
        agent: AgentKind,
        snapshot: &Snapshot,
    ) -> Result<Option<PathBuf>, InstallError> {
        let Some(bytes) = &snapshot.bytes else { return Ok(None) };
        let folder = self.folder.join("backups");
        let name = snapshot.path.file_name().unwrap_or_default().to_string_lossy();
        let ending = format!("-{agent}-{:016x}-{name}", digest(&snapshot.path));
        let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%6fZ");
        let path = folder.join(format!("{stamp}{ending}"));
        write::create_folders(&path)?;
        let nothing = Snapshot { path: path.clone(), target: path.clone(), bytes: None, attributes: None };
        Staged::new(&nothing, bytes)?.commit()?;
        drop_oldest(&folder, &ending);
        Ok(Some(path))
    }

    fn receipt_path(&self, path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.folder.join("receipts").join(format!("{:016x}-{name}.json", digest(path)))
    }
}

fn read_receipt(path: &Path) -> Option<Receipt> {
    let receipt: Receipt = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (receipt.version <= RECEIPT_VERSION).then_some(receipt)
}

/// Keeps the newest copies of one file; names begin with their time, so they sort by age.
fn drop_oldest(folder: &Path, ending: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut copies: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ending)))
        .collect();
    copies.sort();
    let surplus = copies.len().saturating_sub(BACKUPS_MAX);
    for old in copies.iter().take(surplus) {
        // Best effort; the next backup tries again.
        fs::remove_file(old).ok();
    }
}

/// FNV-1a, 64 bit: tells files of one name in different folders apart. Not a secret, and the path itself stands in
/// the receipt for the case that two are alike.
fn digest(path: &Path) -> u64 {
    path.as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
