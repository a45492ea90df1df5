//! One daemon an instance: a kernel lock on a file that is never unlinked, so that no two processes can ever hold
//! "the" lock on two different files of the same name.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a second start waits for a first one's teardown before it gives up: as long as that may take.
const TEARDOWN_WAIT: Duration = crate::boot::TEARDOWN_MAX;
/// How often the lock is tried again meanwhile; the kernel offers no timed wait for it.
const RETRY_EVERY: Duration = Duration::from_millis(50);

/// The file of the lock, in the runtime folder.
const LOCK: &str = "daemon.lock";

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another daemon holds {path}")]
    Held { path: PathBuf },
    #[error("cannot open the lock file {path}")]
    Open { path: PathBuf, source: io::Error },
}

/// Held for as long as the daemon runs; released last.
#[derive(Debug)]
pub(crate) struct InstanceLock {
    file: File,
    path: PathBuf,
}

impl InstanceLock {
    /// Takes the lock of the instance whose runtime folder is `run`. Waits for a daemon that is just going away, unless
    /// another one waits already: after a crash every hook of every agent starts a daemon, and one is enough.
    ///
    /// # Errors
    /// `Held` when another daemon keeps it for longer than its teardown may take, or is next.
    pub(crate) fn take(run: &Path) -> Result<Self, LockError> {
        let path = run.join(LOCK);
        let file = open(&path)?;
        if try_lock(&file, &path)? {
            return Ok(Self { file, path });
        }
        let next_path = run.join("daemon.next.lock");
        let next = open(&next_path)?;
        if !try_lock(&next, &next_path)? {
            return Err(LockError::Held { path: next_path });
        }
        let mut waited = Duration::ZERO;
        while waited < TEARDOWN_WAIT {
            std::thread::sleep(RETRY_EVERY);
            waited += RETRY_EVERY;
            if try_lock(&file, &path)? {
                return Ok(Self { file, path });
            }
        }
        Err(LockError::Held { path })
    }

    /// Takes the lock of the instance whose runtime folder is `run`, or says at once that another one holds it.
    ///
    /// # Errors
    /// `Held` when another process holds it.
    pub(crate) fn take_now(run: &Path) -> Result<Self, LockError> {
        let path = run.join(LOCK);
        let file = open(&path)?;
        if try_lock(&file, &path)? { Ok(Self { file, path }) } else { Err(LockError::Held { path }) }
    }

    /// Whether others who want the lock find this one: somebody may have removed its file.
    #[must_use]
    pub(crate) fn is_in_place(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// The lock that a former life of this process held, still locked; `None` when it is not that, or another file has its
    /// place by now.
    pub(crate) fn adopt(run: &Path, file: File) -> Option<Self> {
        let path = run.join(LOCK);
        (is_at(&file, &path) && try_lock(&file, &path).ok()?).then_some(Self { file, path })
    }

    pub(crate) fn into_file(self) -> File {
        self.file
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let of = |metadata: io::Result<std::fs::Metadata>| metadata.map(|m| (m.dev(), m.ino())).ok();
    of(file.metadata()).is_some_and(|file| of(std::fs::metadata(path)) == Some(file))
}

/// Here a file that comes along never left its process, and nobody replaces one that is open.
#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

fn open(path: &Path) -> Result<File, LockError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|source| LockError::Open { path: path.to_owned(), source })
}

fn try_lock(file: &File, path: &Path) -> Result<bool, LockError> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(source)) => Err(LockError::Open { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_waits_and_the_others_leave_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let first = InstanceLock::take(dir.path()).unwrap();
        let next_path = dir.path().join("daemon.next.lock");
        let next = open(&next_path).unwrap();
        assert!(try_lock(&next, &next_path).unwrap());
        let started = std::time::Instant::now();
        let third = InstanceLock::take(dir.path());
        assert!(matches!(third, Err(LockError::Held { path }) if path == next_path));
        assert!(started.elapsed() < TEARDOWN_WAIT);
        drop(next);
        let path = dir.path().to_owned();
        let second = std::thread::spawn(move || InstanceLock::take(&path));
        drop(first);
        second.join().unwrap().unwrap();
    }

    #[test]
    fn a_lock_goes_from_one_life_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.lock");
        let first = InstanceLock::take(dir.path()).unwrap();
        let second = InstanceLock::adopt(dir.path(), first.into_file()).unwrap();
        assert!(matches!(try_lock(&open(&path).unwrap(), &path), Ok(false)), "held all the while");
        let other = File::create(dir.path().join("other")).unwrap();
        assert!(InstanceLock::adopt(dir.path(), other).is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(InstanceLock::adopt(dir.path(), second.into_file()).is_none(), "the name is another one's");
    }

    #[test]
    fn the_second_taker_is_told_and_the_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let first = InstanceLock::take(dir.path()).unwrap();
        let started = std::time::Instant::now();
        let second = InstanceLock::take(dir.path());
        assert!(matches!(second, Err(LockError::Held { .. })));
        assert!(started.elapsed() >= TEARDOWN_WAIT);
        drop(first);
        assert!(dir.path().join("daemon.lock").exists());
        InstanceLock::take(dir.path()).unwrap();
    }
}
