//! Queries, each on a read transaction of its own that ends before anything waits.

use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::PathBuf;
use watchkeeper_core::{Incarnation, Wall};

use crate::{
    apply::{Extent, delivery_of_row, row_checksum, seq_of, snapshot_checksum},
    entry::{Cursor, Entry, EventQuery, EventRow, FileIdentity, Seq, Snapshot, key_of_text, key_text},
    error::{DatabaseError, ReadError},
    limits::{EVENTS_BYTES_MAX, EVENTS_ROWS_MAX, REPLAY_ROWS},
};

/// One connection that reads; may move between threads, belongs to one at a time. Everything blocks for disk reads.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
}

/// What a replay went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replayed {
    pub rows: u64,
    /// Rows that do not match their checksum and were passed over.
    pub damaged: u64,
    /// The last position seen; `after` when there was none.
    pub last: Seq,
}

/// All cursors that could be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursors {
    pub cursors: Vec<Cursor>,
    /// Rows that are damaged or name no session this program knows; their transcripts are read from the start.
    pub unreadable: u64,
}

impl Reader {
    pub(crate) fn new(connection: Connection, path: PathBuf) -> Self {
        Self { connection, path }
    }

    /// Gives every body behind `after` to `apply`, in order.
    ///
    /// # Errors
    /// The database could not be read; rows given before that were right.
    pub fn replay(&self, after: Seq, mut apply: impl FnMut(Seq, &[u8])) -> Result<Replayed, ReadError> {
        self.ask("replay the journal", || {
            let mut statement = self.connection.prepare(
                "SELECT seq, kind, checksum, body FROM journal WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            )?;
            let mut replayed = Replayed { last: after, ..Replayed::default() };
            loop {
                let mut rows = statement.query(params![replayed.last.0.cast_signed(), REPLAY_ROWS])?;
                let mut count = 0;
                while let Some(row) = rows.next()? {
                    count += 1;
                    replayed.last = seq_of(row.get(0)?);
                    let body = row.get_ref(3)?.as_blob().unwrap_or_default();
                    let kind = row.get_ref(1)?.as_str().unwrap_or_default();
                    // A value of another type than was written is damage as well.
                    if row.get(2) == Ok(row_checksum(replayed.last, kind, body)) {
                        replayed.rows += 1;
                        apply(replayed.last, body);
                    } else {
                        replayed.damaged += 1;
                    }
                }
                if count < REPLAY_ROWS {
                    return Ok(replayed);
                }
            }
        })
    }

    /// Rows in order, at most the query's limit, [`EVENTS_ROWS_MAX`] and about [`EVENTS_BYTES_MAX`].
    ///
    /// # Errors
    /// The database could not be read.
    pub fn events(&self, query: &EventQuery) -> Result<Vec<EventRow>, ReadError> {
        self.ask("list events", || {
            let mut statement = self.connection.prepare(
                "SELECT seq, wall_ms, kind, session, incarnation, delivery, body FROM journal
                 WHERE seq > ?1 AND (?2 IS NULL OR session = ?2) AND (?3 IS NULL OR wall_ms >= ?3)
                 ORDER BY seq LIMIT ?4",
            )?;
            let key = query.key.as_ref().map(key_text);
            let limit = query.limit.min(EVENTS_ROWS_MAX);
            let since = query.since.map(|wall| wall.0);
            let mut rows = statement.query(params![query.after.0.cast_signed(), key, since, limit])?;
            let (mut found, mut bytes) = (Vec::new(), 0usize);
            while let Some(row) = rows.next()?
                && bytes < EVENTS_BYTES_MAX
            {
                // Replay counts what does not decode; a person still wants the rest.
                let Ok(event) = event(row) else { continue };
                bytes = bytes.saturating_add(event.entry.weight());
                found.push(event);
            }
            Ok(found)
        })
    }

    /// The newest snapshot that can be read, if there is one.
    ///
    /// # Errors
    /// The database could not be read.
    pub fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
        self.ask("read the snapshot", || Ok(newest_snapshot(&self.connection)?.0))
    }

    /// The newest position that a row or a snapshot has; 0 in an empty journal.
    ///
    /// # Errors
    /// The database could not be read.
    pub fn last_seq(&self) -> Result<Seq, ReadError> {
        self.ask("find the last position", || Ok(Extent::read(&self.connection)?.stored()))
    }

    /// All transcript cursors.
    ///
    /// # Errors
    /// The database could not be read.
    pub fn cursors(&self) -> Result<Cursors, ReadError> {
        self.ask("read the transcript cursors", || {
            let mut statement = self.connection.prepare(
                "SELECT session, path, device, inode, offset, state FROM transcript_cursor ORDER BY session, path",
            )?;
            let mut rows = statement.query([])?;
            let mut found = Cursors::default();
            while let Some(row) = rows.next()? {
                match cursor(row) {
                    Ok(Some(cursor)) => found.cursors.push(cursor),
                    Ok(None) | Err(_) => found.unreadable += 1,
                }
            }
            Ok(found)
        })
    }

    /// A fact by its name.
    ///
    /// # Errors
    /// The database could not be read.
    pub fn fact(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        self.ask("read a fact", || {
            Ok(self
                .connection
                .query_row("SELECT value FROM fact WHERE name = ?1", [name], |r| r.get(0))
                .optional()?)
        })
    }

    fn ask<T>(
        &self,
        doing: &'static str,
        f: impl FnOnce() -> Result<T, DatabaseError>,
    ) -> Result<T, ReadError> {
        f().map_err(|source| ReadError { doing, path: self.path.clone(), source })
    }
}

/// The newest snapshot that matches its checksum, and the positions of newer ones that do not.
pub(crate) fn newest_snapshot(
    connection: &Connection,
) -> Result<(Option<Snapshot>, Vec<Seq>), DatabaseError> {
    let mut statement =
        connection.prepare("SELECT through, checksum, bytes FROM snapshot ORDER BY through DESC")?;
    let mut rows = statement.query([])?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        let snapshot = Snapshot { through: seq_of(row.get(0)?), bytes: row.get(2).unwrap_or_default() };
        if row.get(1) == Ok(snapshot_checksum(&snapshot)) {
            return Ok((Some(snapshot), damaged));
        }
        damaged.push(snapshot.through);
    }
    Ok((None, damaged))
}

/// Rows behind a position.
pub(crate) fn rows_after(connection: &Connection, after: Seq) -> Result<u64, DatabaseError> {
    let sql = "SELECT count(*) FROM journal WHERE seq > ?1";
    let count: i64 = connection.query_row(sql, [after.0.cast_signed()], |r| r.get(0))?;
    Ok(count.cast_unsigned())
}

/// Columns: seq, wall_ms, kind, session, incarnation, delivery, body.
pub(crate) fn event(row: &Row<'_>) -> Result<EventRow, rusqlite::Error> {
    let session: Option<String> = row.get(3)?;
    Ok(EventRow {
        seq: seq_of(row.get(0)?),
        entry: Entry {
            delivery: delivery_of_row(row, 5),
            key: session.as_deref().and_then(key_of_text),
            incarnation: row.get::<_, Option<u32>>(4)?.map(Incarnation),
            kind: row.get(2)?,
            wall: Wall(row.get(1)?),
            body: row.get(6)?,
        },
    })
}

/// Columns: session, path, device, inode, offset, state. `None` for a session of an agent not known here.
pub(crate) fn cursor(row: &Row<'_>) -> Result<Option<Cursor>, rusqlite::Error> {
    let session: String = row.get(0)?;
    let Some(key) = key_of_text(&session) else { return Ok(None) };
    Ok(Some(Cursor {
        key,
        path: PathBuf::from(row.get::<_, String>(1)?),
        file: FileIdentity {
            device: row.get::<_, i64>(2)?.cast_unsigned(),
            inode: row.get::<_, i64>(3)?.cast_unsigned(),
        },
        offset: row.get::<_, i64>(4)?.cast_unsigned(),
        state_json: row.get(5)?,
    }))
}
