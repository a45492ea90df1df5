//! Writing and reading back: order, duplicates, snapshots, cursors, facts.

use crate::common::{self, Journal, body, delivery, entry, key};
use std::path::PathBuf;
use watchkeeper_store::{
    Cursor, DeliveryState, EventQuery, FileIdentity, OpenError, Seq, Snapshot, Store, SubmitError, Urgency,
};

#[test]
fn what_was_written_is_replayed_in_order_after_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    journal.write(1, 2500);
    let before = journal.rows();
    assert_eq!(before, (1..=2500).map(|seq| (seq, body(seq))).collect::<Vec<_>>());
    journal.close();

    let journal = Journal::open(dir.path());
    assert_eq!(journal.rows(), before);
    assert_eq!((journal.last, journal.recovery.rows_after), (Seq(2500), 2500));
    assert_eq!(journal.recovery.notes, []);
    let mut tail = Vec::new();
    let replayed = journal.reader.replay(Seq(2400), |seq, _| tail.push(seq.0)).unwrap();
    assert_eq!(tail, (2401..=2500).collect::<Vec<_>>());
    assert_eq!((replayed.rows, replayed.damaged, replayed.last), (100, 0, Seq(2500)));
}

#[test]
fn a_delivery_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    assert_eq!(journal.deliveries.state(delivery(1)), DeliveryState::New);
    journal.write(1, 10);
    assert_eq!(journal.deliveries.state(delivery(1)), DeliveryState::Stored);
    while journal.reports.try_recv().is_ok() {}

    let mut again = entry(3);
    again.body = b"other".to_vec();
    journal.writer.submit(Seq(11), again.clone(), Urgency::Normal).unwrap();
    assert!(journal.deliveries.known(delivery(3)));
    journal.writer.submit(Seq(12), entry(12), Urgency::SyncFirst).unwrap();
    let mut duplicates = Vec::new();
    loop {
        let report = journal.reports.recv_timeout(common::PATIENCE).unwrap();
        assert_eq!(report.failed, None);
        duplicates.extend(report.duplicates);
        if report.through == Seq(12) {
            break;
        }
    }
    assert_eq!(duplicates, [Seq(11)]);
    assert_eq!(journal.seqs(), (1..=10).chain([12]).collect::<Vec<_>>());
    assert_eq!(journal.rows()[2].1, body(3));

    // And across a restart.
    journal.close();
    let journal = Journal::open(dir.path());
    assert!(journal.deliveries.known(delivery(12)));
    assert!(!journal.deliveries.known(delivery(13)));
    assert_eq!(journal.last, Seq(12));
}

#[test]
fn entries_without_a_delivery_are_never_duplicates() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    for seq in 1..=3 {
        let anonymous = watchkeeper_store::Entry { delivery: None, ..entry(1) };
        journal.writer.submit(Seq(seq), anonymous, Urgency::Normal).unwrap();
    }
    journal.wait_for(3);
    assert_eq!(journal.seqs(), [1, 2, 3]);
}

#[test]
fn positions_must_ascend_and_bodies_have_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    journal.write(1, 5);
    let out_of_order = journal.writer.submit(Seq(5), entry(6), Urgency::Normal);
    assert_eq!(out_of_order, Err(SubmitError::OutOfOrder { given: 5, last: 5 }));
    let early = journal.writer.save_snapshot(Seq(6), vec![]);
    assert_eq!(early, Err(SubmitError::OutOfOrder { given: 6, last: 5 }));
    let mut large = entry(6);
    large.body = vec![0; watchkeeper_store::BODY_BYTES_MAX + 1];
    let refused = journal.writer.submit(Seq(6), large, Urgency::Normal);
    assert!(matches!(refused, Err(SubmitError::TooLarge { what: "a body", .. })), "{refused:?}");
    assert_eq!(journal.seqs(), [1, 2, 3, 4, 5]);
}

#[test]
fn the_newest_snapshot_and_the_rows_behind_it_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    for n in 1..=3u8 {
        journal.write(u64::from(n) * 10 - 9, u64::from(n) * 10);
        journal.writer.save_snapshot(Seq(u64::from(n) * 10), vec![n; 1000]).unwrap();
    }
    journal.writer.submit(Seq(31), entry(31), Urgency::SyncFirst).unwrap();
    assert_eq!(journal.wait_for(31).since_snapshot, 1);
    journal.close();

    let journal = Journal::open(dir.path());
    assert_eq!(journal.recovery.snapshot, Some(Snapshot { through: Seq(30), bytes: vec![3; 1000] }));
    assert_eq!(journal.recovery.rows_after, 1);
    journal.close();
    let database = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
    let kept: Vec<i64> = database
        .prepare("SELECT through FROM snapshot ORDER BY through")
        .unwrap()
        .query_map([], |r| r.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(kept, [20, 30]);
}

#[test]
fn cursors_and_facts_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    let cursor = |n: u64, offset| Cursor {
        key: key(n),
        path: PathBuf::from(format!("/home/someone/transcript {n}.jsonl")),
        file: FileIdentity { device: u64::MAX, inode: n },
        offset,
        state_json: format!("{{\"at\":{offset}}}"),
    };
    for (n, offset) in [(1, 5), (2, 7), (1, u64::MAX), (3, 1)] {
        journal.writer.save_cursor(cursor(n, offset)).unwrap();
    }
    journal.writer.delete_cursors(&key(3), None).unwrap();
    journal.writer.put_fact("clean", b"no".to_vec()).unwrap();
    journal.writer.put_fact("clean", b"yes".to_vec()).unwrap();
    journal.writer.flush(common::PATIENCE).unwrap();
    journal.close();

    let journal = Journal::open(dir.path());
    let found = journal.reader.cursors().unwrap();
    assert_eq!(found.cursors, [cursor(1, u64::MAX), cursor(2, 7)]);
    assert_eq!(found.unreadable, 0);
    assert_eq!(journal.reader.fact("clean").unwrap().as_deref(), Some(b"yes".as_slice()));
    assert_eq!(journal.reader.fact("other").unwrap(), None);
}

#[test]
fn events_are_paged_and_filtered() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    journal.write(1, 100);
    let query = EventQuery { after: Seq(90), key: None, since: None, limit: 5 };
    let rows = journal.reader.events(&query).unwrap();
    assert_eq!(rows.iter().map(|r| r.seq.0).collect::<Vec<_>>(), [91, 92, 93, 94, 95]);
    assert_eq!(rows[0].entry, entry(91));
    let query = EventQuery { after: Seq(0), key: Some(key(3)), since: None, limit: 1000 };
    let rows = journal.reader.events(&query).unwrap();
    assert_eq!(rows.iter().map(|r| r.seq.0).collect::<Vec<_>>(), (3..=100).step_by(7).collect::<Vec<_>>());
}

#[test]
fn a_second_opener_is_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    let error = Store::open(dir.path()).unwrap_err();
    let OpenError::Locked { holder, .. } = &error else { panic!("{error}") };
    // Windows names nobody.
    assert_eq!(*holder, cfg!(unix).then(std::process::id));
    assert!(error.to_string().contains("is locked by another process"), "{error}");
    journal.close();
    drop(Store::open(dir.path()).unwrap());
    drop(Store::open(dir.path()).unwrap());
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("a/state");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(dir.join("journal.db"), b"").unwrap();
    std::fs::set_permissions(dir.join("journal.db"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let journal = Journal::open(&dir);
    journal.write(1, 1);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for name in ["journal.db", "journal.db-wal", "journal.db-shm", "journal.lock"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
}
