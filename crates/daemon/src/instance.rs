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
    _file: File,
}

impl InstanceLock {
    /// Takes the lock of the instance whose runtime folder is `run`. Waits for a daemon that is just going away.
    ///
    /// # Errors
    /// `Held` when another daemon keeps it for longer than its teardown may take.
    pub(crate) fn take(run: &Path) -> Result<Self, LockError> {
        let path = run.join("daemon.lock");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|source| LockError::Open { path: path.clone(), source })?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(std::fs::TryLockError::Error(source)) => return Err(LockError::Open { path, source }),
                Err(std::fs::TryLockError::WouldBlock) if waited < TEARDOWN_WAIT => {
                    std::thread::sleep(RETRY_EVERY);
                    waited += RETRY_EVERY;
                }
                Err(std::fs::TryLockError::WouldBlock) => return Err(LockError::Held { path }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
