//! One daemon an instance: a kernel lock on a file that we never unlink, so that no two processes of ours hold "the" lock on
//! two different files of the same name. Others may clean the folder; whoever holds the lock looks whether it is in place.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

/// How long a second start waits for a first one's teardown before it gives up: as long as that may take.
const TEARDOWN_WAIT: Duration = crate::boot::TEARDOWN_MAX;

/// A lock whose file lost its name while we waited for it is let go and taken anew, so often at most; then it counts as held.
const TRIES: usize = 3;

/// The file of the lock, in the runtime folder.
const LOCK: &str = "daemon.lock";

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another daemon holds {path}")]
    Held { path: PathBuf },
    #[error("cannot open the lock file {path}")]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot wait for the lock {path}")]
    Wait { path: PathBuf, source: io::Error },
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
        for _ in 0..TRIES {
            let lock = Self::take_once(run)?;
            if lock.is_in_place() {
                return Ok(lock);
            }
        }
        Err(LockError::Held { path: run.join(LOCK) })
    }

    fn take_once(run: &Path) -> Result<Self, LockError> {
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
        match locked_within(TEARDOWN_WAIT, file)
            .map_err(|source| LockError::Wait { path: path.clone(), source })?
        {
            Some(file) => Ok(Self { file, path }),
            None => Err(LockError::Held { path }),
        }
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

/// Waits for the lock in a thread, since the kernel offers no timed wait for it. After `limit` the thread is left behind: should
/// it get the lock before the process ends, it lets go at once.
pub(crate) fn locked_within(limit: Duration, file: File) -> io::Result<Option<File>> {
    let (locked, waiting) = mpsc::channel();
    let wait = move || _ = locked.send(file.lock().map(|()| file));
    std::thread::Builder::new().name("lock".to_owned()).spawn(wait)?;
    match waiting.recv_timeout(limit) {
        Ok(outcome) => outcome.map(Some),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
    }
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_on_a_file_without_a_name_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let first = InstanceLock::take(dir.path()).unwrap();
        let path = dir.path().to_owned();
        let second = std::thread::spawn(move || InstanceLock::take(&path));
        let inode = std::os::unix::fs::MetadataExt::ino(&first.file.metadata().unwrap());
        let is_ours = |line: &str| line.contains("-> FLOCK") && line.contains(&format!(":{inode} "));
        let begun = std::time::Instant::now();
        while !std::fs::read_to_string("/proc/locks").unwrap().lines().any(is_ours) {
            assert!(begun.elapsed() < TEARDOWN_WAIT, "it waits");
            std::thread::yield_now();
        }
        std::fs::remove_file(dir.path().join(LOCK)).unwrap();
        assert!(!first.is_in_place());
        drop(first);
        assert!(second.join().unwrap().unwrap().is_in_place(), "of the name's new file");
    }

    /// Elsewhere none goes along: there no program becomes another one.
    #[cfg(unix)]
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
