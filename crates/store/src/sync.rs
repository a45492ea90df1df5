//! When what was committed also survives a loss of power.
//!
//! With `synchronous = NORMAL` SQLite syncs the log only for a checkpoint. In between, this calls `fdatasync` on a
//! descriptor of its own of `journal.db-wal`:
//! - The log is append-only between checkpoints and every frame carries a checksum chained to the ones before, so a
//!   synced prefix is a readable prefix whatever happens to the rest; `fdatasync` also flushes the file's length.
//! - The descriptor may be opened and closed freely: SQLite takes its POSIX locks on `journal.db` and `-shm`, never
//!   on the log, and closing a descriptor drops locks of that same file only.
//! - The log keeps its inode while a connection is open: a checkpoint makes it start over in place or cuts it. A
//!   checkpoint syncs the log, then the database, and only then lets frames be overwritten, so nothing synced here is
//!   lost by it; SQLite syncs the new header by itself.
//! - After a failed `fdatasync` the system may have dropped the dirty pages and call the next one a success. So the
//!   next attempt is a full checkpoint instead, which writes the pages again, into the database, and syncs that.

use rusqlite::Connection;
use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use crate::error::{DatabaseError, FailureKind};

/// The log of one database.
#[derive(Debug)]
pub(crate) struct LogSync {
    path: PathBuf,
    /// Opened at the first sync, when SQLite has surely created the file.
    log: Option<File>,
    /// A sync failed: only a checkpoint can be believed.
    distrusted: bool,
}

/// A failed sync.
#[derive(Debug)]
pub(crate) struct SyncFailure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
}

impl LogSync {
    pub(crate) fn new(log: &Path) -> Self {
        Self { path: log.to_owned(), log: None, distrusted: false }
    }

    /// Makes everything committed so far survive a loss of power. Blocks for as long as the disk takes.
    pub(crate) fn sync(&mut self, connection: &Connection) -> Result<(), SyncFailure> {
        if self.distrusted {
            if !checkpoint(connection, Checkpoint::Full)?.complete {
                return Err(SyncFailure {
                    kind: FailureKind::Busy,
                    message: "a reader kept the log from being copied after a failed sync".to_owned(),
                });
            }
            self.distrusted = false;
            return Ok(());
        }
        self.sync_log().map_err(|error| {
            self.distrusted = true;
            self.log = None;
            let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            let kind = if full { FailureKind::Full } else { FailureKind::Io };
            SyncFailure { kind, message: format!("cannot sync {}: {error}", self.path.display()) }
        })
    }

    fn sync_log(&mut self) -> io::Result<()> {
        let log = match self.log.take() {
            Some(log) => log,
            None => OpenOptions::new().read(true).write(true).open(&self.path)?,
        };
        log.sync_data()?;
        self.log = Some(log);
        Ok(())
    }
}

/// How much a checkpoint does for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checkpoint {
    /// Copies what it can without waiting for anyone.
    Passive,
    /// Waits for readers (bounded by the busy timeout) and copies all.
    Full,
    /// As `Full`, and cuts the log to nothing.
    Truncate,
}

/// What a checkpoint reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checkpointed {
    /// All frames are in the database, which was synced: nothing committed depends on the log any more.
    pub(crate) complete: bool,
}

/// Copies the log into the database.
pub(crate) fn checkpoint(connection: &Connection, how: Checkpoint) -> Result<Checkpointed, SyncFailure> {
    let sql = match how {
        Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Checkpoint::Full => "PRAGMA wal_checkpoint(FULL)",
        Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let row = connection
        .query_row(sql, [], |r| Ok((r.get::<_, i64>(0)?, r.get::<_, i64>(1)?, r.get::<_, i64>(2)?)));
    let (busy, frames, copied) = row.map_err(|e| {
        let error = DatabaseError::from(e);
        SyncFailure { kind: error.kind(), message: format!("cannot copy the log into the database: {error}") }
    })?;
    Ok(Checkpointed { complete: busy == 0 && frames == copied })
}
