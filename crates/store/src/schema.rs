//! The database's format: its migrations and what they promise.

use rusqlite::Connection;

use crate::error::DatabaseError;

/// Marks a database as ours ("WkJ1"), so that another program's file under our name is left alone.
pub(crate) const APPLICATION_ID: i32 = 0x576B_4A31;

/// The newest format this program writes: the number of [`MIGRATIONS`]. Raised by appending one, never by editing one.
/// A program meets an older format by applying what is missing, a newer one by refusing before it has written a byte.
pub(crate) const FORMAT: u32 = 1;

/// Step n takes format n to n + 1.
const MIGRATIONS: [&str; FORMAT as usize] = [
    // Text keys stand before the body, so that a scan for a key does not read the overflow pages of long bodies.
    "CREATE TABLE journal (
         seq INTEGER PRIMARY KEY,
         wall_ms INTEGER NOT NULL,
         kind TEXT NOT NULL,
         session TEXT,
         incarnation INTEGER,
         delivery BLOB,
         checksum INTEGER NOT NULL,
         body BLOB NOT NULL
     ) STRICT;
     CREATE TABLE snapshot (
         through INTEGER PRIMARY KEY,
         checksum INTEGER NOT NULL,
         bytes BLOB NOT NULL
     ) STRICT;
     CREATE TABLE transcript_cursor (
         session TEXT NOT NULL,
         path TEXT NOT NULL,
         touched INTEGER NOT NULL,
         device INTEGER NOT NULL,
         inode INTEGER NOT NULL,
         offset INTEGER NOT NULL,
         state TEXT NOT NULL,
         PRIMARY KEY (session, path)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE fact (
         name TEXT PRIMARY KEY,
         value BLOB NOT NULL
     ) STRICT, WITHOUT ROWID;",
];

/// What the header of a database says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) format: u32,
    pub(crate) application: i32,
    /// Nothing was ever created in it.
    pub(crate) empty: bool,
}

/// Reads the header; writes nothing.
pub(crate) fn stamp(connection: &Connection) -> Result<Stamp, DatabaseError> {
    Ok(Stamp {
        format: connection.query_row("PRAGMA user_version", [], |r| r.get(0))?,
        application: connection.query_row("PRAGMA application_id", [], |r| r.get(0))?,
        empty: connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |r| r.get(0))?,
    })
}

/// Brings a database of format `from` to [`FORMAT`], each step in a transaction of its own.
pub(crate) fn migrate(connection: &Connection, from: u32) -> Result<(), DatabaseError> {
    for (step, sql) in (0u32..).zip(MIGRATIONS).skip_while(|(step, _)| *step < from) {
        let transaction = connection.unchecked_transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", step + 1)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.commit()?;
    }
    Ok(())
}
