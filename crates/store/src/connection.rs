//! SQLite connections with the settings that the promises of this crate rest on.

use rusqlite::{Connection, OpenFlags};
use std::path::Path;

use crate::{
    error::DatabaseError,
    limits::{BUSY_WAIT, LOG_BYTES_KEPT, READER_CACHE_KIB, WRITER_CACHE_KIB},
};

/// Database page, the size that SQLite gives a new file.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Opens for writing. The file exists already, with its mode.
///
/// `synchronous = NORMAL` makes a commit a plain write to the log: it survives the death of the process, and SQLite
/// itself syncs the log before a checkpoint copies from it. Loss of power is covered by [`crate::sync`].
pub(crate) fn open_writer(path: &Path, bytes_max: u64) -> Result<Connection, DatabaseError> {
    let connection = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    common(&connection, WRITER_CACHE_KIB)?;
    // Answers with the mode in force; a file system without shared memory would refuse with an error.
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.query_row(&format!("PRAGMA journal_size_limit = {LOG_BYTES_KEPT}"), [], |_| Ok(()))?;
    connection.query_row(&format!("PRAGMA max_page_count = {}", bytes_max / PAGE_BYTES), [], |_| Ok(()))?;
    Ok(connection)
}

/// Opens for reading; cannot change the database file.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, DatabaseError> {
    let connection = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    common(&connection, READER_CACHE_KIB)?;
    Ok(connection)
}

/// Opens a damaged database for reading, as far as SQLite goes along: also one that is shorter than its header says,
/// which it reads only where its schema may be broken. Nothing can be written.
pub(crate) fn open_damaged(path: &Path) -> Result<Connection, DatabaseError> {
    let connection = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    // Before any setting that makes SQLite look at the file.
    connection.pragma_update(None, "writable_schema", true)?;
    common(&connection, READER_CACHE_KIB)?;
    Ok(connection)
}

fn flags(access: OpenFlags) -> OpenFlags {
    // No internal mutex: a connection belongs to one thread at a time, which `Connection: !Sync` enforces.
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn common(connection: &Connection, cache_kib: i64) -> Result<(), DatabaseError> {
    connection.busy_timeout(BUSY_WAIT)?;
    // Negative means KiB.
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.query_row("PRAGMA mmap_size = 0", [], |_| Ok(())).or_else(no_row_is_fine)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(())
}

fn no_row_is_fine(error: rusqlite::Error) -> Result<(), rusqlite::Error> {
    if matches!(error, rusqlite::Error::QueryReturnedNoRows) { Ok(()) } else { Err(error) }
}
