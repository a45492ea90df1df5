//! What is kept, and that the database does not grow without end.

use crate::common::{self, Journal, body, delivery};
use watchkeeper_store::{Limits, Seq};

const ROOMY: Limits = Limits { rows_max: 1_000_000, trim_above_bytes: 1 << 30, bytes_max: 1 << 30 };

/// Every flush lets the writer trim at least one chunk.
fn let_it_trim(journal: &Journal) {
    for _ in 0..20 {
        journal.writer.flush(common::PATIENCE).unwrap();
    }
}

/// Writes `rows` with a snapshot behind every `snapshot_every`, then gives the first row that is left.
fn check(limits: Limits, rows: u64, snapshot_every: u64, expected_first: u64) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open_with(dir.path(), limits);
    for end in (snapshot_every..=rows).step_by(usize::try_from(snapshot_every).unwrap()) {
        journal.write(end - snapshot_every + 1, end);
        journal.writer.save_snapshot(Seq(end), end.to_string().into_bytes()).unwrap();
    }
    let_it_trim(&journal);
    assert_eq!(journal.seqs(), (expected_first..=rows).collect::<Vec<_>>(), "{limits:?} {snapshot_every}");
    journal.close();
}

#[test]
fn rows_beyond_the_limit_go_once_two_snapshots_cover_them() {
    let limits = Limits { rows_max: 1000, ..ROOMY };
    check(limits, 5000, 500, 4001);
    // The older snapshot stands at 2000: nothing behind it may go.
    check(Limits { rows_max: 100, ..ROOMY }, 3000, 1000, 2001);
    // One snapshot is not enough.
    check(Limits { rows_max: 100, ..ROOMY }, 1000, 1000, 1);
    check(ROOMY, 2000, 500, 1);
}

#[test]
fn a_large_database_keeps_only_what_a_recovery_needs() {
    let limits = Limits { trim_above_bytes: 256 * 1024, ..ROOMY };
    check(limits, 4000, 400, 3601);
}

#[test]
fn the_file_stops_growing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open_with(dir.path(), Limits { rows_max: 500, ..ROOMY });
    let size = || std::fs::metadata(dir.path().join("journal.db")).unwrap().len();
    let mut sizes = Vec::new();
    for end in (250..=12_000).step_by(250) {
        journal.write(end - 249, end);
        journal.writer.save_snapshot(Seq(end), vec![7; 20_000]).unwrap();
        let_it_trim(&journal);
        sizes.push(size());
    }
    let all: usize = (1..=12_000).map(|seq| body(seq).len()).sum();
    let largest = sizes.iter().max().unwrap();
    assert!(*largest < u64::try_from(all).unwrap() / 4, "{largest} of {all}");
    journal.close();
    assert!(size() <= 2 * largest);
}

#[test]
fn positions_go_on_behind_a_snapshot_without_rows() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    journal.write(1, 10);
    journal.writer.save_snapshot(Seq(10), vec![1]).unwrap();
    journal.close();
    let database = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
    database.execute("DELETE FROM journal", []).unwrap();
    drop(database);
    let journal = Journal::open(dir.path());
    assert_eq!(journal.last, Seq(10));
    assert_eq!(journal.recovery.rows_after, 0);
    journal.write(11, 11);
    assert_eq!(journal.seqs(), [11]);
}

#[test]
fn a_delivery_is_forgotten_with_its_row_and_only_then() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open_with(dir.path(), Limits { rows_max: 100, ..ROOMY });
    for end in [500, 1000, 1500] {
        journal.write(end - 499, end);
        journal.writer.save_snapshot(Seq(end), vec![1]).unwrap();
    }
    let_it_trim(&journal);
    let kept = |journal: &Journal| {
        (1..=1500).filter(|seq| journal.deliveries.known(delivery(*seq))).collect::<Vec<_>>()
    };
    assert_eq!(kept(&journal), journal.seqs());
    assert_eq!(journal.seqs().first(), Some(&1001));
    journal.close();
    let journal = Journal::open(dir.path());
    assert_eq!(kept(&journal), (1001..=1500).collect::<Vec<_>>());
}
