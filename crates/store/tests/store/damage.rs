//! Damaged, foreign, newer and torn files.

use crate::common::{Journal, body, key};
use proptest::prelude::*;
use std::{
    fs,
    path::{Path, PathBuf},
};
use watchkeeper_store::{Cursor, FileIdentity, Note, OpenError, Seq, Snapshot, Store};

const PAGE: usize = 4096;
const ROWS: u64 = 1000;

/// A closed journal with rows, two snapshots and a cursor; gives its file.
fn sound(dir: &Path) -> PathBuf {
    let journal = Journal::open(dir);
    for (n, end) in [(1, ROWS / 2), (2, ROWS - 10)] {
        journal.write(journal.writer.last_submitted().0 + 1, end);
        journal.writer.save_snapshot(Seq(end), vec![n; 6000]).unwrap();
    }
    journal.write(ROWS - 9, ROWS);
    let cursor = Cursor {
        key: key(1),
        path: "/transcript".into(),
        file: FileIdentity { device: 1, inode: 2 },
        offset: 3,
        state_json: "{}".to_owned(),
    };
    journal.writer.save_cursor(cursor).unwrap();
    journal.close();
    dir.join("journal.db")
}

fn overwrite(file: &Path, at: usize, with: &[u8]) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at..at + with.len()].copy_from_slice(with);
    fs::write(file, bytes).unwrap();
}

fn find(file: &Path, what: &[u8]) -> usize {
    fs::read(file).unwrap().windows(what.len()).position(|w| w == what).unwrap()
}

/// Every row that comes back is one that was written.
fn assert_rows_are_true(journal: &Journal) -> u64 {
    let rows = journal.rows();
    for (seq, bytes) in &rows {
        assert!(bytes == &body(*seq), "row {seq}");
    }
    u64::try_from(rows.len()).unwrap()
}

#[test]
fn overwritten_pages_are_moved_aside_and_the_rest_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let file = sound(dir.path());
    // A page with rows, in the middle.
    let hurt = find(&file, &body(ROWS / 3)) / PAGE * PAGE;
    overwrite(&file, hurt, &[0xA5; PAGE]);
    let damaged = fs::read(&file).unwrap();

    let journal = Journal::open(dir.path());
    let [Note::MovedAside { to, rows, gaps, snapshots, cursors, .. }] = journal.recovery.notes.as_slice()
    else {
        panic!("{:?}", journal.recovery.notes)
    };
    assert_eq!(to, &dir.path().join("journal.db.corrupt-1"));
    assert!(fs::read(to).unwrap() == damaged);
    assert_eq!((*snapshots, *cursors), (2, 1));
    assert!(*gaps >= 1);
    assert!((ROWS - 40..ROWS).contains(rows), "{rows}");
    assert_eq!(assert_rows_are_true(&journal), *rows);
    assert_eq!(journal.recovery.snapshot.as_ref().unwrap().through, Seq(ROWS - 10));
    assert_eq!(journal.recovery.rows_after, 10);
    assert_eq!(journal.last, Seq(ROWS));
    assert_eq!(journal.reader.cursors().unwrap().cursors.len(), 1);
    assert!(journal.recovery.notes[0].to_string().contains("moved to"));
    // It works on, and the next damage gets a place of its own.
    journal.write(ROWS + 1, ROWS + 5);
    journal.close();
    overwrite(&file, 0, &[0xA5; 4 * PAGE]);
    let journal = Journal::open(dir.path());
    assert!(
        matches!(&journal.recovery.notes[..], [Note::MovedAside { to, .. }] if to.ends_with("journal.db.corrupt-2"))
    );
    assert!(fs::read(dir.path().join("journal.db.corrupt-1")).unwrap() == damaged);
    journal.close();
    assert!(Journal::open(dir.path()).recovery.notes.is_empty());
}

#[test]
fn a_file_that_is_no_database_is_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("journal.db"),
        b"not a database, and long enough to be read as one".repeat(100),
    )
    .unwrap();
    let journal = Journal::open(dir.path());
    assert!(
        matches!(&journal.recovery.notes[..], [Note::MovedAside { rows: 0, .. }]),
        "{:?}",
        journal.recovery.notes
    );
    journal.write(1, 3);
    assert_eq!(journal.seqs(), [1, 2, 3]);
}

#[test]
fn a_database_cut_short_is_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let file = sound(dir.path());
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2 / PAGE * PAGE]).unwrap();
    let journal = Journal::open(dir.path());
    assert!(matches!(&journal.recovery.notes[..], [Note::MovedAside { .. }]), "{:?}", journal.recovery.notes);
    let rows = assert_rows_are_true(&journal);
    assert!(rows > ROWS / 4, "{rows}: {:?}", journal.recovery.notes);
}

#[test]
fn a_changed_byte_in_a_body_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let file = sound(dir.path());
    let at = find(&file, &body(700)) + 3;
    overwrite(&file, at, b"!");
    let journal = Journal::open(dir.path());
    assert_eq!(journal.recovery.notes, []);
    let mut seqs = Vec::new();
    let replayed = journal.reader.replay(Seq(0), |seq, _| seqs.push(seq.0)).unwrap();
    assert_eq!((replayed.rows, replayed.damaged), (ROWS - 1, 1));
    assert_eq!(seqs, (1..=ROWS).filter(|seq| *seq != 700).collect::<Vec<_>>());
}

#[test]
fn a_changed_byte_in_the_snapshot_brings_back_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = sound(dir.path());
    let at = find(&file, &[2; 3000]) + 1000;
    overwrite(&file, at, b"!");
    let journal = Journal::open(dir.path());
    assert_eq!(journal.recovery.notes, [Note::SnapshotDamaged { through: Seq(ROWS - 10) }]);
    assert_eq!(journal.recovery.snapshot, Some(Snapshot { through: Seq(ROWS / 2), bytes: vec![1; 6000] }));
    assert_eq!(journal.recovery.rows_after, ROWS / 2);
}

#[test]
fn a_torn_log_is_cut_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path());
    for seq in 1..=40 {
        journal.write(seq, seq);
    }
    let (database, log) = (dir.path().join("journal.db"), dir.path().join("journal.db-wal"));
    let (database, log) = (fs::read(database).unwrap(), fs::read(log).unwrap());
    assert!(log.len() > 20 * PAGE);
    let mut seen = std::collections::BTreeSet::new();
    for cut in (0..log.len()).step_by(4111).chain([log.len()]) {
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("journal.db"), &database).unwrap();
        fs::write(copy.path().join("journal.db-wal"), &log[..cut]).unwrap();
        let torn = Journal::open(copy.path());
        assert_eq!(torn.recovery.notes, [], "cut at {cut}");
        let rows = assert_rows_are_true(&torn);
        assert_eq!(torn.seqs(), (1..=rows).collect::<Vec<_>>());
        seen.insert(rows);
        torn.write(rows + 1, rows + 1);
    }
    assert!(seen.contains(&0) && seen.contains(&40), "{seen:?}");
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = sound(dir.path());
    rusqlite::Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&file).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("use the newer program"), "{error}");
    assert!(fs::read(&file).unwrap() == before);
    assert!(!dir.path().join("journal.db.corrupt-1").exists());
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("journal.db");
    rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = fs::read(&file).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert!(fs::read(&file).unwrap() == before);
}

#[test]
fn a_database_without_its_tables_is_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let file = sound(dir.path());
    rusqlite::Connection::open(&file).unwrap().execute_batch("DROP TABLE transcript_cursor").unwrap();
    let journal = Journal::open(dir.path());
    let [Note::MovedAside { rows, snapshots, cursors, .. }] = &journal.recovery.notes[..] else {
        panic!("{:?}", journal.recovery.notes)
    };
    assert_eq!((*rows, *snapshots, *cursors), (ROWS, 2, 0));
}

#[test]
fn damage_is_not_piled_up_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    for n in 1..=32 {
        fs::write(dir.path().join(format!("journal.db.corrupt-{n}")), b"kept").unwrap();
    }
    fs::write(dir.path().join("journal.db"), [1; 5000]).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, OpenError::TooManyDamaged { kept: 32, .. }), "{error}");
    assert!(fs::read(dir.path().join("journal.db")).unwrap() == [1; 5000]);
}

/// `PROPTEST_CASES` overrides the number (`cargo xtask explore`).
fn cases(n: u32) -> ProptestConfig {
    let wanted = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { wanted.cases } else { n };
    ProptestConfig { cases, failure_persistence: None, ..wanted }
}

proptest! {
    #![proptest_config(cases(48))]

    /// Whatever is overwritten: opening succeeds or refuses a foreign or newer file, nothing panics, and every row
    /// and snapshot that comes back is one that was written.
    #[test]
    fn random_damage_never_invents_data(wounds in prop::collection::vec((any::<prop::sample::Index>(), 1..600usize, any::<u8>()), 1..6)) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("journal.db");
        let mut bytes = template().to_vec();
        for (at, length, seed) in &wounds {
            let wound = bytes.iter_mut().skip(at.index(template().len())).take(*length);
            for (byte, n) in wound.zip((0u8..=255).cycle()) {
                *byte = seed.wrapping_mul(31).wrapping_add(n.wrapping_mul(*seed | 1));
            }
        }
        fs::write(&file, &bytes).unwrap();
        match Store::open(dir.path()) {
            Err(OpenError::Foreign { .. } | OpenError::Newer { .. }) => prop_assert!(fs::read(&file).unwrap() == bytes),
            Err(other) => prop_assert!(false, "{other}: {:?}", std::error::Error::source(&other)),
            Ok(opened) => {
                if let Some(snapshot) = &opened.recovery.snapshot {
                    let n = if snapshot.through == Seq(ROWS / 2) { 1 } else { 2 };
                    prop_assert_eq!(&snapshot.bytes, &vec![n; 6000]);
                }
                let reader = opened.store.reader().unwrap();
                let mut wrong = 0;
                let replayed = reader.replay(Seq(0), |seq, bytes| wrong += u64::from(bytes != body(seq.0)));
                prop_assert_eq!(wrong, 0);
                prop_assert!(replayed.is_ok(), "{replayed:?}");
            }
        }
    }
}

fn template() -> &'static [u8] {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BYTES.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        fs::read(sound(dir.path())).unwrap()
    })
}
