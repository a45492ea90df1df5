//! Errors, one type an operation. The database library's own error stays inside.

use std::{io, path::PathBuf, time::Duration};

/// What kind of trouble the database or the disk has; decides whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The disk, the quota or [`crate::Limits::bytes_max`] is full.
    Full,
    /// Reading, writing or syncing failed.
    Io,
    /// The database contradicts itself; it is moved aside and salvaged at the next open.
    Corrupt,
    /// Another connection held a lock for too long.
    Busy,
    /// The file, the directory or the whole file system cannot be written.
    ReadOnly,
    /// Anything else, in the database's own words.
    Other,
}

/// An error of the database library.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DatabaseError(#[from] rusqlite::Error);

impl DatabaseError {
    /// The kind of trouble.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        use rusqlite::ErrorCode as Code;
        let Some(code) = self.0.sqlite_error_code() else { return FailureKind::Other };
        #[expect(clippy::wildcard_enum_match_arm, reason = "not our enum; what we do not act on is Other")]
        match code {
            Code::DiskFull => FailureKind::Full,
            Code::SystemIoFailure | Code::CannotOpen | Code::OutOfMemory => FailureKind::Io,
            Code::DatabaseCorrupt | Code::NotADatabase => FailureKind::Corrupt,
            Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed => FailureKind::Busy,
            Code::ReadOnly | Code::PermissionDenied => FailureKind::ReadOnly,
            _ => FailureKind::Other,
        }
    }

    pub(crate) fn is_damage(&self) -> bool {
        self.kind() == FailureKind::Corrupt
    }
}

/// The store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is locked by another process{}", path.display(), holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked {
        path: PathBuf,
        /// As that process wrote it down; absent where the system lets nobody read it.
        holder: Option<u32>,
    },
    #[error("{} has format {found}, this program knows {known}; it was left as it is: use the newer program", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("{} is a database of another program (application id {found:#x}); it was left as it is", path.display())]
    Foreign { path: PathBuf, found: i32 },
    #[error("{} damaged databases are kept in {}; look at the disk, then remove them", kept, dir.display())]
    TooManyDamaged { dir: PathBuf, kept: u32 },
    #[error("cannot {doing} {}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot {doing} {}", path.display())]
    Database { doing: &'static str, path: PathBuf, source: DatabaseError },
}

/// A query did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} in {}", path.display())]
pub struct ReadError {
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: DatabaseError,
}

/// The writer did not take a command. Nothing of it was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("the journal's queue is full ({commands} commands, {bytes} bytes)")]
    Full { commands: usize, bytes: usize },
    #[error("{what} of {bytes} bytes is over the limit of {limit}")]
    TooLarge { what: &'static str, bytes: usize, limit: usize },
    #[error("position {given} does not come after {last}")]
    OutOfOrder { given: u64, last: u64 },
    #[error("the transcript's path is not text")]
    PathNotText,
    #[error("the journal's writer has stopped")]
    Stopped,
}

/// A flush did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    #[error("the journal was not written within {0:?}")]
    TimedOut(Duration),
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// The writer did not come to an orderly end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    #[error("the journal was not closed within {0:?}; what was reported is stored")]
    TimedOut(Duration),
    #[error("{0} commands could not be stored before the end")]
    NotStored(usize),
    #[error("the journal's writer died; what was reported is stored")]
    Died,
}
