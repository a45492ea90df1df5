//! What the writer does to the database, one batch of commands a transaction.

use rusqlite::{Connection, OptionalExtension, Row, Statement, named_params, params};
use std::{collections::HashSet, sync::mpsc::SyncSender};
use watchkeeper_core::DeliveryId;

use crate::{
    checksum::Crc,
    connection::PAGE_BYTES,
    entry::{Cursor, Entry, Seq, Snapshot, Urgency, key_text, path_text},
    error::DatabaseError,
    limits::{CURSORS_MAX, Limits, SNAPSHOTS_KEPT, TRIM_ROWS},
    queue::Fold,
};

/// One thing for the writer to do. Commands are stored in the order they were submitted.
#[derive(Debug)]
pub(crate) enum Command {
    Append {
        seq: Seq,
        entry: Entry,
        urgency: Urgency,
        /// Set by the queue: the delivery was stored or accepted before, so this one only takes its position.
        duplicate: bool,
    },
    SaveSnapshot(Snapshot),
    SaveCursor(Cursor),
    /// Of all paths of the session, or of one.
    DeleteCursors {
        session: String,
        path: Option<String>,
    },
    PutFact {
        name: &'static str,
        value: Vec<u8>,
    },
    /// Answered once everything before it is stored and synced.
    Flush(SyncSender<()>),
}

impl Command {
    /// Bytes this command keeps in memory while it waits, roughly.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Append { entry, .. } => entry.weight(),
                Self::SaveSnapshot(snapshot) => snapshot.bytes.len(),
                Self::SaveCursor(cursor) => cursor.state_json.len() + cursor.path.as_os_str().len(),
                Self::DeleteCursors { session, path } => session.len() + path.as_ref().map_or(0, String::len),
                Self::PutFact { value, .. } => value.len(),
                Self::Flush(_) => 0,
            }
    }
}

/// What one transaction did.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub(crate) last: Option<Seq>,
    pub(crate) first_urgent: Option<Seq>,
    pub(crate) duplicates: Vec<Seq>,
    pub(crate) snapshot: Option<Seq>,
    pub(crate) flushes: Vec<SyncSender<()>>,
    /// Anything was written.
    pub(crate) wrote: bool,
}

/// The writer's statements, prepared once. Preparing them also shows that the tables are what they should be.
pub(crate) struct Statements<'c> {
    connection: &'c Connection,
    append: Statement<'c>,
    save_cursor: Statement<'c>,
    trim: Statement<'c>,
}

impl<'c> Statements<'c> {
    pub(crate) fn prepare(connection: &'c Connection) -> Result<Self, DatabaseError> {
        Ok(Self {
            connection,
            append: connection.prepare(
                "INSERT INTO journal (seq, wall_ms, kind, session, incarnation, delivery, checksum, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?,
            save_cursor: connection.prepare(
                "INSERT OR REPLACE INTO transcript_cursor (session, path, touched, device, inode, offset, state)
                 VALUES (:session, :path, :touched, :device, :inode, :offset, :state)",
            )?,
            trim: connection.prepare("DELETE FROM journal WHERE seq <= ?1 RETURNING delivery")?,
        })
    }

    /// Stores all of `commands` or none of them.
    pub(crate) fn apply(&mut self, commands: &[Command], stored: Seq) -> Result<Applied, DatabaseError> {
        let transaction = self.connection.unchecked_transaction()?;
        let mut applied = Applied::default();
        for command in commands {
            applied.wrote |= !matches!(command, Command::Flush(_));
            match command {
                Command::Append { seq, entry, urgency, duplicate } => {
                    if *duplicate {
                        applied.duplicates.push(*seq);
                    } else {
                        self.append(*seq, entry)?;
                    }
                    applied.last = Some(*seq);
                    if *urgency == Urgency::SyncFirst && applied.first_urgent.is_none() {
                        applied.first_urgent = Some(*seq);
                    }
                }
                Command::SaveSnapshot(snapshot) => {
                    self.save_snapshot(snapshot)?;
                    applied.snapshot = Some(snapshot.through);
                }
                Command::SaveCursor(cursor) => self.save_cursor(cursor, applied.last.unwrap_or(stored))?,
                Command::DeleteCursors { session, path } => {
                    self.connection.execute(
                        "DELETE FROM transcript_cursor WHERE session = ?1 AND (?2 IS NULL OR path = ?2)",
                        params![session, path],
                    )?;
                }
                Command::PutFact { name, value } => {
                    self.connection.execute(
                        "INSERT OR REPLACE INTO fact (name, value) VALUES (?1, ?2)",
                        params![name, value],
                    )?;
                }
                Command::Flush(done) => applied.flushes.push(done.clone()),
            }
        }
        transaction.commit()?;
        Ok(applied)
    }

    /// Deletes rows up to `through`, at most a chunk from `first`.
    pub(crate) fn trim(&mut self, first: Seq, through: Seq) -> Result<Trimmed, DatabaseError> {
        let end = through.0.min(first.0.saturating_add(TRIM_ROWS - 1));
        let mut deleted = self.trim.query([end.cast_signed()])?;
        let mut deliveries = Vec::new();
        while let Some(row) = deleted.next()? {
            deliveries.extend(delivery_of_row(row, 0).map(Fold::of));
        }
        Ok(Trimmed { remains: Seq(end).next(), deliveries })
    }

    fn append(&mut self, seq: Seq, entry: &Entry) -> Result<(), DatabaseError> {
        let session = entry.key.as_ref().map(key_text);
        let delivery = entry.delivery.map(|d| d.0.to_be_bytes());
        let checksum = row_checksum(seq, &entry.kind, &entry.body);
        self.append.execute(params![
            seq.0.cast_signed(),
            entry.wall.0,
            entry.kind,
            session,
            entry.incarnation.map(|i| i.0),
            delivery.as_ref().map(|d| d.as_slice()),
            checksum,
            entry.body,
        ])?;
        Ok(())
    }

    fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), DatabaseError> {
        self.connection.execute(
            "INSERT OR REPLACE INTO snapshot (through, checksum, bytes) VALUES (?1, ?2, ?3)",
            params![snapshot.through.0.cast_signed(), snapshot_checksum(snapshot), snapshot.bytes],
        )?;
        self.connection.execute(
            "DELETE FROM snapshot WHERE through NOT IN (SELECT through FROM snapshot ORDER BY through DESC LIMIT ?1)",
            [SNAPSHOTS_KEPT],
        )?;
        let excess: i64 = self.connection.query_row(
            "SELECT max(0, count(*) - ?1) FROM transcript_cursor",
            [CURSORS_MAX],
            |r| r.get(0),
        )?;
        if excess > 0 {
            self.connection.execute(
                "DELETE FROM transcript_cursor WHERE (session, path) IN
                     (SELECT session, path FROM transcript_cursor ORDER BY touched LIMIT ?1)",
                [excess],
            )?;
        }
        Ok(())
    }

    fn save_cursor(&mut self, cursor: &Cursor, touched: Seq) -> Result<(), DatabaseError> {
        self.save_cursor.execute(named_params! {
            ":session": key_text(&cursor.key),
            ":path": path_text(&cursor.path),
            ":touched": touched.0.cast_signed(),
            ":device": cursor.file.device.cast_signed(),
            ":inode": cursor.file.inode.cast_signed(),
            ":offset": cursor.offset.cast_signed(),
            ":state": cursor.state_json,
        })?;
        Ok(())
    }
}

/// What a chunk of the trim left.
#[derive(Debug)]
pub(crate) struct Trimmed {
    /// The first position that may still have a row.
    pub(crate) remains: Seq,
    pub(crate) deliveries: Vec<Fold>,
}

/// All deliveries of the journal.
pub(crate) fn deliveries(connection: &Connection) -> Result<HashSet<Fold>, DatabaseError> {
    let mut statement = connection.prepare("SELECT delivery FROM journal WHERE delivery IS NOT NULL")?;
    let mut rows = statement.query([])?;
    let mut found = HashSet::new();
    while let Some(row) = rows.next()? {
        found.extend(delivery_of_row(row, 0).map(Fold::of));
    }
    Ok(found)
}

/// The delivery in a column; `None` where there is none or none that we wrote.
pub(crate) fn delivery_of_row(row: &Row<'_>, column: usize) -> Option<DeliveryId> {
    let bytes = row.get_ref(column).ok()?.as_blob().ok()?;
    Some(DeliveryId(u128::from_be_bytes(bytes.try_into().ok()?)))
}

/// First and last position, and the snapshots, newest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extent {
    pub(crate) first: Option<Seq>,
    pub(crate) last: Option<Seq>,
    pub(crate) snapshots: Vec<Seq>,
}

impl Extent {
    pub(crate) fn read(connection: &Connection) -> Result<Self, DatabaseError> {
        // Two queries, since SQLite answers min and max from the ends of the tree only when each is asked alone.
        let end =
            |sql: &str| connection.query_row(sql, [], |r| r.get::<_, Option<i64>>(0)).map(|v| v.map(seq_of));
        let mut snapshots = connection.prepare("SELECT through FROM snapshot ORDER BY through DESC")?;
        Ok(Self {
            first: end("SELECT min(seq) FROM journal")?,
            last: end("SELECT max(seq) FROM journal")?,
            snapshots: snapshots.query_map([], |r| r.get(0).map(seq_of))?.collect::<Result<_, _>>()?,
        })
    }

    /// The newest position that is stored in either form.
    pub(crate) fn stored(&self) -> Seq {
        self.last.max(self.snapshots.first().copied()).unwrap_or_default()
    }

    /// Up to where rows may go; `None` while fewer than two snapshots stand.
    pub(crate) fn trim_through(
        &self,
        connection: &Connection,
        limits: &Limits,
    ) -> Result<Option<Seq>, DatabaseError> {
        let (Some(last), Some(covered)) = (self.last, self.snapshots.get(1)) else { return Ok(None) };
        if used_bytes(connection)? > limits.trim_above_bytes {
            return Ok(Some(*covered));
        }
        Ok(Some(Seq(last.0.saturating_sub(limits.rows_max)).min(*covered)))
    }
}

/// Bytes of the database that hold something.
fn used_bytes(connection: &Connection) -> Result<u64, DatabaseError> {
    let pages = |sql: &str| connection.query_row(sql, [], |r| r.get::<_, i64>(0)).optional();
    let all = pages("PRAGMA page_count")?.unwrap_or(0);
    let free = pages("PRAGMA freelist_count")?.unwrap_or(0);
    Ok(all.saturating_sub(free).cast_unsigned().saturating_mul(PAGE_BYTES))
}

/// Positions are written by [`Statements::apply`] only; a negative one can only be damage and sorts before all.
pub(crate) fn seq_of(stored: i64) -> Seq {
    Seq(u64::try_from(stored).unwrap_or(0))
}

pub(crate) fn row_checksum(seq: Seq, kind: &str, body: &[u8]) -> u32 {
    Crc::new().add(&seq.0.to_le_bytes()).add(kind.as_bytes()).add(body).value()
}

pub(crate) fn snapshot_checksum(snapshot: &Snapshot) -> u32 {
    Crc::new().add(&snapshot.through.0.to_le_bytes()).add(&snapshot.bytes).value()
}
