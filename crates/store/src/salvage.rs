//! Saves what can be read from a damaged database into a new one.

use rusqlite::{Connection, Row, Rows, params};
use std::path::Path;

use crate::{
    apply::{row_checksum, seq_of, snapshot_checksum},
    connection::open_damaged,
    entry::{Seq, Snapshot},
    error::DatabaseError,
    limits::{BODY_BYTES_MAX, CURSORS_MAX, SALVAGE_PROBES_MAX, SNAPSHOT_BYTES_MAX},
};

/// What came over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Salvaged {
    pub(crate) rows: u64,
    /// Rows that were read but do not match their checksum.
    pub(crate) damaged: u64,
    /// Places where rows could not be read at all.
    pub(crate) gaps: u64,
    pub(crate) snapshots: u64,
    pub(crate) cursors: u64,
}

/// Rows copied in one transaction.
const CHUNK_ROWS: u32 = 1000;

/// Widest step over rows that cannot be read; about the rows of one page.
const STEP_MAX: i64 = 8;

/// Copies everything readable that matches its checksum. Damage in `from` is expected and only counted.
///
/// # Errors
/// `into` could not be written.
pub(crate) fn salvage(from: &Path, into: &Connection) -> Result<Salvaged, DatabaseError> {
    let mut salvaged = Salvaged::default();
    let damaged = match open_damaged(from) {
        Ok(damaged) => damaged,
        Err(error) => {
            tracing::warn!(%error, "nothing can be read from the damaged journal");
            return Ok(salvaged);
        }
    };
    copy_journal(&damaged, into, &mut salvaged)?;
    let transaction = into.unchecked_transaction()?;
    copy_snapshots(&damaged, into, &mut salvaged)?;
    copy_small(&damaged, into, &mut salvaged)?;
    transaction.commit()?;
    Ok(salvaged)
}

fn copy_journal(
    damaged: &Connection,
    into: &Connection,
    salvaged: &mut Salvaged,
) -> Result<(), DatabaseError> {
    let select = "SELECT seq, wall_ms, kind, session, incarnation, delivery, checksum, body FROM journal
                  WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let Ok(mut select) = damaged.prepare(select) else { return Ok(()) };
    let mut insert = into.prepare(
        "INSERT OR IGNORE INTO journal (seq, wall_ms, kind, session, incarnation, delivery, checksum, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (mut after, mut step, mut probes) = (0i64, 1i64, 0u32);
    loop {
        let transaction = into.unchecked_transaction()?;
        let mut count = 0;
        let outcome = each(select.query(params![after, CHUNK_ROWS]), |row| {
            let seq: i64 = row.get(0)?;
            if seq <= after {
                return Err(rusqlite::Error::InvalidQuery);
            }
            after = seq;
            count += 1;
            step = 1;
            let kind = row.get_ref(2)?.as_str().unwrap_or_default();
            let body = row.get_ref(7)?.as_blob().unwrap_or_default();
            let good =
                body.len() <= BODY_BYTES_MAX && row.get(6) == Ok(row_checksum(seq_of(seq), kind, body));
            if !good {
                salvaged.damaged += 1;
                return Ok(None);
            }
            let changed = insert.execute(params![
                seq,
                row.get::<_, i64>(1)?,
                kind,
                row.get::<_, Option<String>>(3)?,
                row.get::<_, Option<u32>>(4)?,
                row.get::<_, Option<Vec<u8>>>(5)?,
                row.get::<_, u32>(6)?,
                body
            ]);
            Ok(Some(changed.map(|changed| salvaged.rows += u64::from(changed > 0))))
        });
        let readable = outcome?;
        transaction.commit()?;
        if readable && count < CHUNK_ROWS {
            return Ok(());
        }
        if !readable {
            salvaged.gaps += u64::from(step == 1);
            probes += 1;
            if probes >= SALVAGE_PROBES_MAX {
                return Ok(());
            }
            after = after.saturating_add(step);
            step = (step * 2).min(STEP_MAX);
        }
    }
}

fn copy_snapshots(
    damaged: &Connection,
    into: &Connection,
    salvaged: &mut Salvaged,
) -> Result<(), DatabaseError> {
    // From both ends, so that damage to one does not hide the other.
    for order in ["DESC", "ASC"] {
        let sql = format!("SELECT through, checksum, bytes FROM snapshot ORDER BY through {order} LIMIT 1");
        let Ok(mut select) = damaged.prepare(&sql) else { continue };
        each(select.query([]), |row| {
            let bytes = row.get_ref(2)?.as_blob().unwrap_or_default();
            if bytes.len() > SNAPSHOT_BYTES_MAX {
                return Ok(None);
            }
            let snapshot = Snapshot { through: seq_of(row.get(0)?), bytes: bytes.to_owned() };
            let checksum = snapshot_checksum(&snapshot);
            if row.get(1) != Ok(checksum) || snapshot.through == Seq(0) {
                return Ok(None);
            }
            let changed = into.execute(
                "INSERT OR IGNORE INTO snapshot (through, checksum, bytes) VALUES (?1, ?2, ?3)",
                params![snapshot.through.0.cast_signed(), checksum, snapshot.bytes],
            );
            Ok(Some(changed.map(|changed| salvaged.snapshots += u64::from(changed > 0))))
        })?;
    }
    Ok(())
}

fn copy_small(damaged: &Connection, into: &Connection, salvaged: &mut Salvaged) -> Result<(), DatabaseError> {
    let cursors =
        "SELECT session, path, touched, device, inode, offset, state FROM transcript_cursor LIMIT ?1";
    if let Ok(mut select) = damaged.prepare(cursors) {
        each(select.query([CURSORS_MAX]), |row| {
            let changed = into.execute(
                "INSERT OR IGNORE INTO transcript_cursor (session, path, touched, device, inode, offset, state)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    row.get::<_, String>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, i64>(2)?,
                    row.get::<_, i64>(3)?,
                    row.get::<_, i64>(4)?,
                    row.get::<_, i64>(5)?,
                    row.get::<_, String>(6)?
                ],
            );
            Ok(Some(changed.map(|changed| salvaged.cursors += u64::from(changed > 0))))
        })?;
    }
    if let Ok(mut select) = damaged.prepare("SELECT name, value FROM fact LIMIT 1000") {
        each(select.query([]), |row| {
            let values = params![row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?];
            let changed = into.execute("INSERT OR IGNORE INTO fact (name, value) VALUES (?1, ?2)", values);
            Ok(Some(changed.map(|_| ())))
        })?;
    }
    Ok(())
}

/// Runs `copy` for each row until the end (`true`) or the first that cannot be read (`false`). `copy` answers with an
/// error for a row that is damaged, with `Some(Err)` when writing failed, which alone ends the salvage.
fn each(
    rows: Result<Rows<'_>, rusqlite::Error>,
    mut copy: impl FnMut(&Row<'_>) -> Result<Option<Result<(), rusqlite::Error>>, rusqlite::Error>,
) -> Result<bool, DatabaseError> {
    let Ok(mut rows) = rows else { return Ok(false) };
    loop {
        let Ok(row) = rows.next() else { return Ok(false) };
        let Some(row) = row else { return Ok(true) };
        match copy(row) {
            Ok(None | Some(Ok(()))) => {}
            Ok(Some(Err(written))) => return Err(written.into()),
            Err(_) => return Ok(false),
        }
    }
}
