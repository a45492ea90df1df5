//! Opening: lock, check, migrate, repair, and what the caller has to recover from.

use rusqlite::Connection;
use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    apply::{Extent, Statements, deliveries},
    connection::{open_reader, open_writer},
    deliveries::Deliveries,
    entry::{Committed, Seq, Snapshot},
    error::{DatabaseError, FailureKind, OpenError, ReadError},
    files::{Lock, Paths},
    limits::Limits,
    queue::{Fold, Queue},
    read::{Reader, newest_snapshot, rows_after},
    salvage::{Salvaged, salvage},
    schema,
    writer::JournalWriter,
};

/// An open journal that nobody writes yet.
pub struct Store {
    paths: Paths,
    lock: Lock,
    connection: Connection,
    extent: Extent,
    limits: Limits,
    queue: Arc<Queue>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.paths.database).finish_non_exhaustive()
    }
}

/// A store and what was found in it.
#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    pub recovery: Recovery,
}

/// Where to start from: the snapshot, then [`Reader::replay`] behind it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    pub snapshot: Option<Snapshot>,
    /// Rows behind the snapshot, or all rows without one.
    pub rows_after: u64,
    /// What a person should hear about; empty after an ordinary end, kill or loss of power.
    pub notes: Vec<Note>,
}

/// Something went wrong with the stored data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The database was damaged; it lies at `to`, never deleted, and a new one has what could be read.
    MovedAside {
        why: String,
        to: PathBuf,
        rows: u64,
        /// Rows left out since they do not match their checksum.
        damaged_rows: u64,
        /// Places where rows could not be read at all.
        gaps: u64,
        snapshots: u64,
        cursors: u64,
    },
    /// A snapshot does not match its checksum; an older one, or the rows alone, stand in for it.
    SnapshotDamaged { through: Seq },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MovedAside { why, to, rows, damaged_rows, gaps, snapshots, cursors } => write!(
                f,
                "the journal was damaged ({why}) and was moved to {}; saved {rows} rows, {snapshots} snapshots and \
                 {cursors} transcript cursors; {damaged_rows} rows were damaged, {gaps} places unreadable",
                to.display()
            ),
            Self::SnapshotDamaged { through } => {
                write!(f, "the snapshot of position {through} is damaged and was passed over")
            }
        }
    }
}

impl Store {
    /// Opens the journal in `dir` with the usual limits, creating both. See [`Self::open_with`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(dir: &Path) -> Result<Opened, OpenError> {
        Self::open_with(dir, Limits::default())
    }

    /// Opens the journal in `dir`, creating it if need be: takes the lock without waiting, checks the database's
    /// structure (reads all of it once), migrates it. A damaged one is moved aside and what can be read is saved.
    /// Blocks for as long as the disk takes.
    ///
    /// # Errors
    /// Another process has it, a newer program wrote it, it is not ours, or the system refuses. None of these change
    /// the database.
    pub fn open_with(dir: &Path, limits: Limits) -> Result<Opened, OpenError> {
        let paths = Paths::in_dir(dir);
        let lock = paths.lock()?;
        paths.prepare()?;
        let (found, note) = match Found::read(&paths, limits) {
            Ok(found) => (found, None),
            Err(Trouble::Refused(error)) => return Err(error),
            Err(Trouble::Damaged(why)) => {
                let (found, note) = repair(&paths, limits, why)?;
                (found, Some(note))
            }
        };
        paths.clear_suspect();
        let Found { connection, extent, deliveries, mut recovery } = found;
        recovery.notes.splice(0..0, note);
        let queue = Arc::new(Queue::new(extent.stored(), deliveries));
        Ok(Opened { store: Self { paths, lock, connection, extent, limits, queue }, recovery })
    }

    /// The file by whose lock (the kernel's, of the whole file) a journal in `dir` belongs to one process. To wait for it:
    /// opening a journal does not.
    #[must_use]
    pub fn lock_file(dir: &Path) -> PathBuf {
        Paths::in_dir(dir).lock
    }

    /// The newest position that is stored as a row or covered by a snapshot; the next entry goes behind it.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.extent.stored()
    }

    /// A further connection for queries.
    ///
    /// # Errors
    /// The database could not be opened.
    pub fn reader(&self) -> Result<Reader, ReadError> {
        reader(&self.paths)
    }

    /// The lookup for deliveries.
    #[must_use]
    pub fn deliveries(&self) -> Deliveries {
        Deliveries { queue: Arc::clone(&self.queue) }
    }

    /// Starts writing. `report` runs on the writing thread, in order, and must not block for long. The lock goes with
    /// the thread: another process can open the journal when it has ended.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start_writer(
        self,
        report: impl Fn(Committed) + Send + 'static,
    ) -> Result<JournalWriter, OpenError> {
        let Self { paths, lock, connection, extent, limits, queue } = self;
        JournalWriter::start(paths, lock, connection, extent, limits, queue, report)
    }
}

pub(crate) fn reader(paths: &Paths) -> Result<Reader, ReadError> {
    Ok(Reader::new(read_connection(paths)?, paths.database.clone()))
}

fn read_connection(paths: &Paths) -> Result<Connection, ReadError> {
    open_reader(&paths.database).map_err(|source| ReadError {
        doing: "open a reading connection",
        path: paths.database.clone(),
        source,
    })
}

/// A sound database and what is in it.
struct Found {
    connection: Connection,
    extent: Extent,
    deliveries: HashSet<Fold>,
    recovery: Recovery,
}

/// Why there is none.
enum Trouble {
    Damaged(String),
    Refused(OpenError),
}

impl Found {
    fn read(paths: &Paths, limits: Limits) -> Result<Self, Trouble> {
        let trouble = |doing| {
            move |source: DatabaseError| match source.is_damage() {
                true => Trouble::Damaged(source.to_string()),
                false => {
                    Trouble::Refused(OpenError::Database { doing, path: paths.database.clone(), source })
                }
            }
        };
        let format = inspect(paths).map_err(|e| match e {
            Inspection::Database(source) => trouble("check")(source),
            Inspection::Damaged(why) => Trouble::Damaged(why),
            Inspection::Refused(error) => Trouble::Refused(error),
        })?;
        let connection = open_writer(&paths.database, limits.bytes_max).map_err(trouble("open"))?;
        schema::migrate(&connection, format).map_err(trouble("migrate"))?;
        // With the right format, a missing table or column is damage as well.
        if let Err(error) = Statements::prepare(&connection)
            && error.kind() == FailureKind::Other
        {
            return Err(Trouble::Damaged(error.to_string()));
        }
        let extent = Extent::read(&connection).map_err(trouble("read"))?;
        let deliveries = deliveries(&connection).map_err(trouble("read"))?;
        let recovery = recovery(&connection).map_err(trouble("read"))?;
        Ok(Self { connection, extent, deliveries, recovery })
    }
}

fn recovery(connection: &Connection) -> Result<Recovery, DatabaseError> {
    let (snapshot, damaged) = newest_snapshot(connection)?;
    let after = snapshot.as_ref().map_or(Seq(0), |s| s.through);
    Ok(Recovery {
        rows_after: rows_after(connection, after)?,
        snapshot,
        notes: damaged.into_iter().map(|through| Note::SnapshotDamaged { through }).collect(),
    })
}

enum Inspection {
    Database(DatabaseError),
    Damaged(String),
    Refused(OpenError),
}

impl From<DatabaseError> for Inspection {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

/// Looks at what is there without changing it; gives its format (0: nothing yet).
fn inspect(paths: &Paths) -> Result<u32, Inspection> {
    let connection = open_reader(&paths.database)?;
    let stamp = schema::stamp(&connection)?;
    let path = || paths.database.clone();
    if stamp.format > schema::FORMAT {
        return Err(Inspection::Refused(OpenError::Newer {
            path: path(),
            found: stamp.format,
            known: schema::FORMAT,
        }));
    }
    if stamp.empty {
        return Ok(0);
    }
    if stamp.application != schema::APPLICATION_ID {
        return Err(Inspection::Refused(OpenError::Foreign { path: path(), found: stamp.application }));
    }
    // The quick form reads every page; the slow one also compares the indexes with their table.
    let check = if paths.suspect.exists() { "PRAGMA integrity_check(1)" } else { "PRAGMA quick_check(1)" };
    let verdict: String = connection.query_row(check, [], |r| r.get(0)).map_err(DatabaseError::from)?;
    if verdict == "ok" { Ok(stamp.format) } else { Err(Inspection::Damaged(verdict)) }
}

/// Moves the damaged database aside and builds a new one from it.
fn repair(paths: &Paths, limits: Limits, why: String) -> Result<(Found, Note), OpenError> {
    let to = paths.move_aside()?;
    tracing::warn!(why, to = %to.display(), "the journal is damaged and was moved aside");
    paths.prepare()?;
    let database = |doing| {
        move |source: DatabaseError| OpenError::Database { doing, path: paths.database.clone(), source }
    };
    let connection = open_writer(&paths.database, limits.bytes_max).map_err(database("create"))?;
    schema::migrate(&connection, 0).map_err(database("create"))?;
    let Salvaged { rows, damaged, gaps, snapshots, cursors } =
        salvage(&to, &connection).map_err(database("salvage a damaged database into"))?;
    Paths::forget_shared_memory_of(&to);
    let extent = Extent::read(&connection).map_err(database("read"))?;
    let deliveries = deliveries(&connection).map_err(database("read"))?;
    let recovery = recovery(&connection).map_err(database("read"))?;
    let note = Note::MovedAside { why, to, rows, damaged_rows: damaged, gaps, snapshots, cursors };
    Ok((Found { connection, extent, deliveries, recovery }, note))
}
