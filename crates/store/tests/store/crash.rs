//! SIGKILL of a real process at any moment: what it was told is stored is stored, once.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};
use watchkeeper_store::{Recovery, Seq, Store};

const KILLS: u64 = 50;
const SEED: u64 = 0x5EED_0F70_57A7_E11E;

/// What the child said over all its lives.
#[derive(Default)]
struct Told {
    through: u64,
    duplicates: BTreeSet<u64>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let (word, number) = line.split_once(' ').unwrap();
        let number = number.parse().unwrap();
        match word {
            "through" => {
                assert!(number > self.through, "{number} after {}", self.through);
                self.through = number;
            }
            "duplicate" => assert!(self.duplicates.insert(number), "{number} twice"),
            other => panic!("{other}"),
        }
    }
}

/// Dies with the test, however that ends.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn spawn(dir: &Path, seed: u64) -> Writer {
    let child = Command::new(env!("CARGO_BIN_EXE_store-crash-writer"))
        .arg(dir)
        .arg(seed.to_string())
        .stdout(Stdio::piped())
        .spawn();
    Writer(child.unwrap())
}

/// Lets a child live until it has reported `lines` times, kills it, and hears what it had still said.
fn live_and_die(dir: &Path, seed: u64, lines: u64, told: &mut Told) {
    let mut child = spawn(dir, seed);
    let mut output = BufReader::new(child.0.stdout.take().unwrap()).lines();
    for _ in 0..lines {
        told.hear(&output.next().expect("the child died by itself").unwrap());
    }
    drop(child);
    // No line is cut: the child writes less than a pipe's atomic size at a time.
    for line in output {
        told.hear(&line.unwrap());
    }
}

fn check(dir: &Path, told: &mut Told) {
    let opened = Store::open(dir).unwrap();
    let Recovery { snapshot, rows_after, notes } = opened.recovery;
    assert_eq!(notes, []);
    let last = opened.store.last_seq().0;
    // A duplicate at the very end leaves no trace; its position is given again.
    let must = (0..=told.through).rev().find(|seq| !told.duplicates.contains(seq)).unwrap();
    assert!(last >= must, "{last} < {must}");
    let (mut seqs, mut behind) = (Vec::new(), 0);
    let covered = snapshot.as_ref().map_or(Seq(0), |s| s.through);
    let reader = opened.store.reader().unwrap();
    let replayed = reader
        .replay(Seq(0), |seq, body| {
            assert!(body.starts_with(format!("{seq}:").as_bytes()));
            behind += u64::from(seq > covered);
            seqs.push(seq.0);
        })
        .unwrap();
    assert_eq!(replayed.damaged, 0);
    assert_eq!(rows_after, behind);
    let first = seqs[0];
    // Trimmed from the front only, and never what the recovery needs.
    assert!(first <= covered.0 + 1, "{first} {covered}");
    let expected: Vec<u64> = (first..=told.through).filter(|seq| !told.duplicates.contains(seq)).collect();
    let heard: Vec<u64> = seqs.iter().copied().filter(|seq| *seq <= told.through).collect();
    let differing = heard.iter().zip(&expected).find(|(heard, expected)| heard != expected);
    assert!(heard == expected, "{first}..={}: {differing:?}", told.through);
    // What was stored and never reported is there too, and the next life goes on behind it.
    let stored: BTreeSet<u64> = seqs.into_iter().collect();
    told.duplicates.retain(|seq| *seq <= last);
    told.duplicates.extend((told.through + 1..=last).filter(|seq| !stored.contains(seq)));
    told.through = last;
    if let Some(snapshot) = snapshot {
        let state = format!("state {} ", snapshot.through).repeat(2000);
        assert!(snapshot.bytes == state.as_bytes(), "snapshot {}", snapshot.through);
    }
}

#[test]
fn nothing_reported_is_lost_or_doubled_by_50_kills() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Told::default();
    let mut random = SEED;
    for round in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        live_and_die(dir.path(), random >> 1, 1 + (random >> 40) % 60, &mut told);
        check(dir.path(), &mut told);
        assert!(told.through > round, "no progress");
    }
    eprintln!("{KILLS} kills, {} entries, {} duplicates", told.through, told.duplicates.len());
}
