//! The store's directory: names, owner-only modes, the lock, and moving a damaged database aside.
//!
//! The only file of this crate that knows which system it runs on. POSIX drops all of a process's locks on a file when
//! the process closes *any* descriptor of it, so nothing here opens `journal.db` while SQLite has it open.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use crate::{error::OpenError, limits};

/// Where everything of one store lies.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    pub(crate) dir: PathBuf,
    pub(crate) database: PathBuf,
    /// Exists from the moment a running writer or reader saw damage until the next open has dealt with it.
    pub(crate) suspect: PathBuf,
    pub(crate) lock: PathBuf,
}

/// Held for the life of a store. The kernel lets go of it when the process dies; we never unlink the file, others may.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// Tells an open file from whatever else may have its name by now.
type Identity = (u64, u64);

impl Lock {
    /// `None`: the system does not say.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.file.metadata().ok().map(|metadata| identity(&metadata))
    }
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Here nobody replaces a file that is open.
#[cfg(not(unix))]
const fn identity(_metadata: &fs::Metadata) -> Identity {
    (0, 0)
}

impl Paths {
    pub(crate) fn in_dir(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            database: dir.join("journal.db"),
            suspect: dir.join("journal.suspect"),
            lock: dir.join("journal.lock"),
        }
    }

    /// SQLite's write-ahead log of `database`.
    pub(crate) fn log_of(database: &Path) -> PathBuf {
        with_suffix(database, "-wal")
    }

    /// Creates the directory (0700) and the database file (0600), or narrows what is there. SQLite gives its log and
    /// its shared memory the mode of the database.
    pub(crate) fn prepare(&self) -> Result<(), OpenError> {
        create_private_dir(&self.dir).map_err(|e| self.error("create the directory", &self.dir, e))?;
        for path in [&self.database, &self.lock] {
            private_options()
                .open(path)
                .and_then(|_| narrow(path, FILE_MODE))
                .map_err(|e| self.error("create", path, e))?;
        }
        for suffix in ["-wal", "-shm"] {
            let path = with_suffix(&self.database, suffix);
            match narrow(&path, FILE_MODE) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(self.error("restrict", &path, e)),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Takes the lock or says who has it. Does not wait.
    pub(crate) fn lock(&self) -> Result<Lock, OpenError> {
        create_private_dir(&self.dir).map_err(|e| self.error("create the directory", &self.dir, e))?;
        let mut file = private_options().open(&self.lock).map_err(|e| self.error("open", &self.lock, e))?;
        match file.try_lock() {
            Ok(()) => {
                // For the message of whoever comes second; a store that cannot note it works all the same.
                let noted = file.set_len(0).and_then(|()| file.rewind());
                if let Err(error) = noted.and_then(|()| write!(file, "{}", std::process::id())) {
                    tracing::debug!(%error, "the lock's owner could not be noted");
                }
                Ok(Lock { file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder =
                    file.take(16).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                Err(OpenError::Locked { path: self.database.clone(), holder })
            }
            Err(TryLockError::Error(e)) => Err(self.error("lock", &self.lock, e)),
        }
    }

    /// Whether whoever opens this directory finds the lock with that identity. What the system does not tell counts as so.
    pub(crate) fn has_lock(&self, of: Option<Identity>) -> bool {
        match fs::metadata(&self.lock) {
            Ok(metadata) => of.is_none_or(|of| of == identity(&metadata)),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Renames the database and its log to `journal.db.corrupt-N` (and `-wal`), the first free N, so that SQLite can
    /// still read the pair. Nothing that holds data is replaced or deleted.
    pub(crate) fn move_aside(&self) -> Result<PathBuf, OpenError> {
        let log = Self::log_of(&self.database);
        let log_has_rows = fs::metadata(&log).is_ok_and(|m| m.len() > 0);
        let free = (1..=limits::DAMAGED_KEPT_MAX)
            .map(|n| with_suffix(&self.database, &format!(".corrupt-{n}")))
            .find(|to| !(to.exists() || log_has_rows && Self::log_of(to).exists()));
        let Some(to) = free else {
            return Err(OpenError::TooManyDamaged { dir: self.dir.clone(), kept: limits::DAMAGED_KEPT_MAX });
        };
        // The log first: SQLite deletes a log that lies beside an empty database. A crash in between leaves a place
        // with a log only, which the next attempt completes.
        if log_has_rows {
            let to = Self::log_of(&to);
            fs::rename(&log, to).map_err(|e| self.error("move aside the damaged", &log, e))?;
        }
        fs::rename(&self.database, &to)
            .map_err(|e| self.error("move aside the damaged", &self.database, e))?;
        // An empty log and the shared memory hold no data, and would be taken for the next database's.
        for useless in [log, with_suffix(&self.database, "-shm")] {
            match fs::remove_file(&useless) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(self.error("remove", &useless, e));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(to)
    }

    /// Reading a database leaves its shared memory behind, which holds no data.
    pub(crate) fn forget_shared_memory_of(database: &Path) {
        let path = with_suffix(database, "-shm");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::debug!(%error, path = %path.display(), "a leftover could not be removed");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Notes that the database must be checked and salvaged at the next open.
    pub(crate) fn mark_suspect(&self) {
        if let Err(error) = private_options().open(&self.suspect) {
            tracing::warn!(%error, path = %self.suspect.display(), "damage could not be noted for the next start");
        }
    }

    pub(crate) fn clear_suspect(&self) {
        match fs::remove_file(&self.suspect) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, path = %self.suspect.display(), "the note about damage could not be removed");
            }
            Ok(()) | Err(_) => {}
        }
    }

    #[expect(clippy::unused_self, reason = "reads as the store's own error at every use")]
    fn error(&self, doing: &'static str, path: &Path, source: io::Error) -> OpenError {
        OpenError::File { doing, path: path.to_owned(), source }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, DIR_MODE);
    builder.create(dir)?;
    narrow(dir, DIR_MODE)
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    options
}

/// Takes everything that `mode` does not grant; leaves a narrower mode alone.
#[cfg(unix)]
fn narrow(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let present = fs::metadata(path)?.permissions().mode() & 0o7777;
    if present & !mode == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(present & mode))
}

/// The profile directory's access list already names only its owner, and files inherit it.
#[cfg(not(unix))]
fn narrow(path: &Path, _mode: u32) -> io::Result<()> {
    fs::metadata(path).map(|_| ())
}
