//! Full disks, failing syncs, full queues: reported, retried, survived.

use crate::common::{self, Journal, delivery, entry};
#[cfg(unix)]
use std::path::Path;
use std::time::Duration;
use watchkeeper_store::{
    CloseError, DeliveryState, FailureKind, FlushError, Limits, Seq, SubmitError, Urgency,
};

/// Submits from `from` on until a failure is reported; gives the last position submitted and the last durable one.
fn fill(journal: &Journal, from: u64) -> (u64, u64, watchkeeper_store::Failure) {
    let mut through = from - 1;
    for seq in from.. {
        let mut large = entry(seq);
        large.body = vec![b'x'; 20_000];
        journal.writer.submit(Seq(seq), large, Urgency::Normal).unwrap();
        // One at a time, so that the failure is of this one.
        let report = journal.reports.recv_timeout(common::PATIENCE).unwrap();
        through = report.through.0.max(through);
        if let Some(failure) = report.failed {
            return (seq, through, failure);
        }
    }
    unreachable!("positions ended");
}

#[test]
fn a_full_database_is_reported_and_what_was_reported_stays() {
    let dir = tempfile::tempdir().unwrap();
    let small = Limits { bytes_max: 400 * 1024, ..Limits::default() };
    let journal = Journal::open_with(dir.path(), small);
    let (last, through, failure) = fill(&journal, 1);
    assert!(through >= 5, "{through}");
    assert_eq!(failure.kind, FailureKind::Full);
    assert_eq!(failure.not_stored, Some(Seq(through + 1)..=Seq(last)));
    assert_eq!(journal.deliveries.state(delivery(last)), DeliveryState::InFlight);
    assert_eq!(journal.deliveries.state(delivery(through)), DeliveryState::Stored);
    assert_eq!(journal.seqs(), (1..=through).collect::<Vec<_>>());

    // It goes on refusing, counting, and taking until the queue is full; it neither dies nor loses order.
    let mut next = last + 1;
    let full = loop {
        match journal.writer.submit(Seq(next), entry(next), Urgency::Normal) {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, SubmitError::Full { .. }), "{full}");
    let report = journal.wait_for_failure();
    assert!(report.failed.is_some_and(|f| f.failures > failure.failures));
    assert_eq!(journal.writer.flush(Duration::ZERO), Err(FlushError::Submit(full)));
    let waiting = usize::try_from(next - 1 - through).unwrap();
    drop((journal.reader, journal.deliveries));
    assert_eq!(journal.writer.close(common::PATIENCE), Err(CloseError::NotStored(waiting)));

    let journal = Journal::open(dir.path());
    assert_eq!(journal.seqs(), (1..=through).collect::<Vec<_>>());
    journal.write(through + 1, through + 3);
    assert_eq!(journal.seqs(), (1..=through + 3).collect::<Vec<_>>());
}

/// A small file system of its own, unmounted at the end.
#[cfg(target_os = "linux")]
struct SmallDisk<'d>(&'d Path);

#[cfg(target_os = "linux")]
impl<'d> SmallDisk<'d> {
    fn mount(at: &'d Path) -> Option<Self> {
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m", "none"])
            .arg(at)
            .output();
        mount.is_ok_and(|m| m.status.success()).then_some(Self(at))
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg("-l").arg(self.0).status();
        assert!(unmounted.is_ok_and(|s| s.success()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_survived_and_nothing_is_lost_once_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(dir.path()) else {
        eprintln!(
            "not run: mounting a small tmpfs needs root; the full database above covers the writer's side"
        );
        return;
    };
    let ballast = dir.path().join("ballast");
    std::fs::write(&ballast, vec![0; 700 * 1024]).unwrap();
    let journal = Journal::open(dir.path());
    let (last, through, failure) = fill(&journal, 1);
    assert!(through >= 2, "{through}");
    assert!(matches!(failure.kind, FailureKind::Full | FailureKind::Io), "{failure:?}");
    assert!(through < last);
    // Readers are not disturbed.
    assert_eq!(journal.seqs(), (1..=through).collect::<Vec<_>>());

    std::fs::remove_file(&ballast).unwrap();
    journal.writer.submit(Seq(last + 1), entry(last + 1), Urgency::SyncFirst).unwrap();
    journal.wait_for(last + 1);
    assert_eq!(journal.seqs(), (1..=last + 1).collect::<Vec<_>>());
    assert_eq!(journal.deliveries.state(delivery(last)), DeliveryState::Stored);
    journal.close();
    let journal = Journal::open(dir.path());
    assert_eq!(journal.recovery.notes, []);
    assert_eq!(journal.seqs(), (1..=last + 1).collect::<Vec<_>>());
    journal.close();
}

/// Puts a directory where the log was: SQLite keeps the file it has open, the writer cannot sync it.
#[cfg(unix)]
fn hide_the_log(dir: &Path) {
    let log = dir.join("journal.db-wal");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
}

#[cfg(unix)]
#[test]
fn an_urgent_entry_is_not_reported_before_it_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    hide_the_log(dir.path());
    journal.writer.submit(Seq(1), entry(1), Urgency::SyncFirst).unwrap();
    let report = journal.reports.recv_timeout(common::PATIENCE).unwrap();
    assert_eq!(report.through, Seq(0));
    let failure = report.failed.unwrap();
    assert_eq!((failure.kind, failure.not_stored), (FailureKind::Io, Some(Seq(1)..=Seq(1))));
    assert_eq!(journal.seqs(), [1]);
    // The next attempt does not believe a sync any more and copies the log into the database, which is synced.
    journal.writer.submit(Seq(2), entry(2), Urgency::Normal).unwrap();
    assert_eq!(journal.wait_for(2).failed, None);
    let database = std::fs::read(dir.path().join("journal.db")).unwrap();
    for seq in [1, 2] {
        let body = common::body(seq);
        assert!(database.windows(body.len()).any(|w| w == body), "{seq}");
    }
}

#[cfg(unix)]
#[test]
fn a_normal_entry_is_reported_at_once_and_synced_later() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    hide_the_log(dir.path());
    journal.writer.submit(Seq(1), entry(1), Urgency::Normal).unwrap();
    let report = journal.reports.recv_timeout(common::PATIENCE).unwrap();
    assert_eq!((report.through, report.failed), (Seq(1), None));
    // By itself, within a second: the grouped sync, which fails here.
    let failure = journal.wait_for_failure().failed.unwrap();
    assert_eq!((failure.kind, failure.not_stored), (FailureKind::Io, None));
    // And by itself again: the retry, which ends well, since a flush is answered.
    journal.writer.flush(common::PATIENCE).unwrap();
}

#[test]
fn the_queue_has_a_limit_in_bytes() {
    let dir = tempfile::tempdir().unwrap();
    // Nothing can be stored, so everything stays queued.
    let journal = Journal::open_with(dir.path(), Limits { bytes_max: 64 * 1024, ..Limits::default() });
    let mut taken = 0;
    let error = loop {
        let mut large = entry(taken + 1);
        large.body = vec![0; 1 << 20];
        match journal.writer.submit(Seq(taken + 1), large, Urgency::Normal) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, SubmitError::Full { bytes, .. } if bytes <= watchkeeper_store::QUEUE_BYTES_MAX));
    assert_eq!(taken, 7);
}
