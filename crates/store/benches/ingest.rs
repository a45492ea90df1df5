//! Durable ingest from 64 connections that each wait for their own entry, against SQLite with one transaction an event.
//!
//! As in the daemon one dispatcher serves all connections; a second run gives each connection a thread of its own,
//! which mostly measures how fast the system switches threads. Both sides write the same rows into the same tables with the same settings; an entry counts when it would survive
//! the death of the process. The rival is a plain loop in one thread, the best case for it: it never waits for a lock.
//! Prints rates and their ratio, then what the process weighs with 50,000 rows and how it rests.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run should say so loudly"
)]

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, channel},
    },
    time::{Duration, Instant},
};
use watchkeeper_core::{AgentKind, DeliveryId, Incarnation, SessionKey, Wall};
use watchkeeper_store::{Entry, EventQuery, JournalWriter, Seq, Store, Urgency};

const CONNECTIONS: u64 = 64;
const ENTRIES: u64 = 50_000;
const ROUNDS: usize = 3;
const GOAL: f64 = 3.0;
/// Bytes of a body: about a hook's payload without its long fields.
const BODY_BYTES: usize = 700;

fn main() {
    // Cargo passes --bench; a filter is of no use with one benchmark.
    let (mut ratios, mut theirs, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let bare = rival(false);
        let unique = rival(true);
        let ours_normal = ours(dispatched, 0);
        let ours_urgent = ours(dispatched, 20);
        let ours_threads = ours(threaded, 0);
        ratios.push(bare.seconds / ours_normal.seconds);
        theirs.push(bare.micros_each());
        grouped.push(ours_normal.micros_each());
        println!("round {round}, {ENTRIES} entries:");
        println!("  one transaction an event                  {bare}");
        println!("  the same, deliveries unique by an index   {unique}");
        println!("  ours, {CONNECTIONS} connections                     {ours_normal}");
        println!("  ours, every 20th synced first             {ours_urgent}");
        println!("  ours, {CONNECTIONS} threads                         {ours_threads}");
        println!(
            "  ratio {:.2} by time, {:.2} by CPU; to the one with the index {:.2} by time, {:.2} by CPU",
            bare.seconds / ours_normal.seconds,
            bare.cpu_seconds / ours_normal.cpu_seconds,
            unique.seconds / ours_normal.seconds,
            unique.cpu_seconds / ours_normal.cpu_seconds
        );
    }
    let median = median(ratios);
    println!("ingest ratio, median of {ROUNDS}: {median:.2} (goal {GOAL})");
    at_rest();
    // For `cargo xtask bench`, which judges.
    println!("figure ingest.rival_us {:.3}", self::median(theirs));
    println!("figure ingest.ours_us {:.3}", self::median(grouped));
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// What a run took.
struct Cost {
    seconds: f64,
    /// Of all threads, producers included.
    cpu_seconds: f64,
    /// Of the writing thread alone, where there is one.
    writer_seconds: f64,
    /// Reports, where there are any.
    batches: u64,
}

impl Cost {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn micros_each(&self) -> f64 {
        self.seconds / ENTRIES as f64 * 1e6
    }
}

impl std::fmt::Display for Cost {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entries = ENTRIES as f64;
        write!(
            f,
            "{:>8.0}/s, {:>6.1} us of CPU each",
            entries / self.seconds,
            self.cpu_seconds / entries * 1e6
        )?;
        if self.batches > 0 {
            let (writer, batch) = (self.writer_seconds / entries * 1e6, entries / self.batches as f64);
            write!(f, " (the writer {writer:.1} us), {batch:.1} entries a report")?;
        }
        Ok(())
    }
}

fn measure<T>(work: impl FnOnce() -> T) -> (Cost, T) {
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let result = work();
    (
        Cost {
            seconds: began.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds() - cpu,
            writer_seconds: 0.0,
            batches: 0,
        },
        result,
    )
}

/// User and system time of the process so far; 0 where `/proc` does not tell. Ticks are 10 ms on Linux.
fn cpu_seconds() -> f64 {
    ticks(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

fn writer_ticks() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok())
        .filter(|stat| stat.contains("(journal)"))
        .map(|stat| ticks(&stat))
        .sum()
}

fn ticks(stat: &str) -> f64 {
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn ours(ingest: fn(&Path, u64) -> (Cost, JournalWriter), urgent_every: u64) -> Cost {
    let dir = tempfile::tempdir_in(base()).unwrap();
    let (cost, writer) = ingest(dir.path(), urgent_every);
    writer.close(Duration::from_secs(60)).unwrap();
    cost
}

/// The given place, or the build's own, which is on a disk more often than the system's temporary directory.
fn base() -> std::path::PathBuf {
    std::env::var_os("BENCH_DIR").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), Into::into)
}

/// One thread serves all connections: each has one entry on its way, and sends the next when told of that one.
fn dispatched(dir: &Path, urgent_every: u64) -> (Cost, JournalWriter) {
    let store = Store::open(dir).unwrap().store;
    let (report, reports) = channel::<watchkeeper_store::Committed>();
    let writer = store.start_writer(move |committed| report.send(committed).unwrap_or_default()).unwrap();
    let (mut next, mut through, mut batches) = (1, 0, 0);
    let writer_cpu = writer_ticks();
    let (mut cost, ()) = measure(|| {
        while through < ENTRIES {
            while next <= (through + CONNECTIONS).min(ENTRIES) {
                writer.submit(Seq(next), entry(next), urgency(next, urgent_every)).unwrap();
                next += 1;
            }
            let report = reports.recv().unwrap();
            assert_eq!(report.failed, None);
            through = report.through.0;
            batches += 1;
        }
    });
    cost.batches = batches;
    cost.writer_seconds = writer_ticks() - writer_cpu;
    (cost, writer)
}

fn urgency(seq: u64, urgent_every: u64) -> Urgency {
    if seq.is_multiple_of(urgent_every) { Urgency::SyncFirst } else { Urgency::Normal }
}

/// Positions are given and submitted under one lock.
struct Line {
    next: u64,
    /// Whom to tell, in order of position.
    waiting: std::collections::VecDeque<(u64, Sender<()>)>,
}

fn threaded(dir: &Path, urgent_every: u64) -> (Cost, JournalWriter) {
    let store = Store::open(dir).unwrap().store;
    let line = Arc::new(Mutex::new(Line { next: 1, waiting: std::collections::VecDeque::new() }));
    // The writing thread hands the report over, another one tells those who wait.
    let (report, reports) = channel::<watchkeeper_store::Committed>();
    let writer = store.start_writer(move |committed| report.send(committed).unwrap_or_default()).unwrap();
    let told = Arc::clone(&line);
    let batches = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&batches);
    std::thread::spawn(move || {
        for report in reports {
            counted.fetch_add(1, Ordering::Relaxed);
            assert_eq!(report.failed, None);
            let mut line = told.lock().unwrap();
            let done = line.waiting.partition_point(|(seq, _)| *seq <= report.through.0);
            let done: Vec<_> = line.waiting.drain(..done).collect();
            drop(line);
            for (_, waiter) in done {
                waiter.send(()).unwrap();
            }
        }
    });
    let left = AtomicU64::new(ENTRIES);
    let writer_cpu = writer_ticks();
    let (mut cost, ()) = measure(|| {
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let (done, wait) = channel();
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                        .is_ok()
                    {
                        let mut line = line.lock().unwrap();
                        let seq = line.next;
                        line.next += 1;
                        line.waiting.push_back((seq, done.clone()));
                        writer.submit(Seq(seq), entry(seq), urgency(seq, urgent_every)).unwrap();
                        drop(line);
                        wait.recv().unwrap();
                    }
                });
            }
        });
    });
    cost.batches = batches.load(Ordering::Relaxed);
    cost.writer_seconds = writer_ticks() - writer_cpu;
    (cost, writer)
}

fn rival(unique: bool) -> Cost {
    let dir = tempfile::tempdir_in(base()).unwrap();
    // The same tables, made by the store itself.
    drop(Store::open(dir.path()).unwrap());
    let connection = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
    connection.pragma_update(None, "synchronous", "NORMAL").unwrap();
    connection.pragma_update(None, "cache_size", -1024).unwrap();
    if unique {
        connection.execute_batch("CREATE UNIQUE INDEX by_delivery ON journal (delivery)").unwrap();
    }
    let mut insert = connection
        .prepare(
            "INSERT INTO journal (seq, wall_ms, kind, session, incarnation, delivery, checksum, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )
        .unwrap();
    let (cost, ()) = measure(|| {
        for seq in 1..=ENTRIES {
            let entry = entry(seq);
            let delivery = entry.delivery.unwrap().0.to_be_bytes();
            insert
                .execute(rusqlite::params![
                    seq.cast_signed(),
                    entry.wall.0,
                    entry.kind,
                    format!("[\"claude\",null,\"{}\"]", entry.key.unwrap().id),
                    1,
                    delivery.as_slice(),
                    0,
                    entry.body
                ])
                .unwrap();
        }
    });
    cost
}

fn delivery(seq: u64) -> DeliveryId {
    DeliveryId(u128::from(seq).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
}

fn entry(seq: u64) -> Entry {
    Entry {
        delivery: Some(delivery(seq)),
        key: Some(SessionKey::new(AgentKind::Claude, format!("0b1c2d3e-0000-4000-8000-{:012}", seq % 100))),
        incarnation: Some(Incarnation(1)),
        kind: "tool_started".to_owned(),
        wall: Wall(1_700_000_000_000),
        body: format!("{seq:0BODY_BYTES$}").into_bytes(),
    }
}

/// Memory and wake-ups of a process that holds a full journal.
fn at_rest() {
    let dir = tempfile::tempdir_in(base()).unwrap();
    let (_, writer) = dispatched(dir.path(), 0);
    writer.close(Duration::from_secs(60)).unwrap();
    let before = status("VmRSS:");
    let began = Instant::now();
    let opened = Store::open(dir.path()).unwrap();
    let open = began.elapsed();
    let (reader, deliveries) = (opened.store.reader().unwrap(), opened.store.deliveries());
    let began = Instant::now();
    let mut bytes = 0;
    reader.replay(Seq(0), |_, body| bytes += body.len()).unwrap();
    let replay = began.elapsed();
    let began = Instant::now();
    let key = Some(entry(7).key.unwrap());
    let rows = reader.events(&EventQuery { after: Seq(0), key, since: None, limit: 1000 }).unwrap().len();
    let filter = began.elapsed();
    let writer = opened.store.start_writer(|_| ()).unwrap();
    let began = Instant::now();
    for seq in ENTRIES + 1..=ENTRIES + 10_000 {
        assert!(!deliveries.known(delivery(seq)));
    }
    let unknown = began.elapsed() / 10_000;
    let began = Instant::now();
    for seq in 1..=10_000 {
        assert!(deliveries.known(delivery(seq)));
    }
    let known = began.elapsed() / 10_000;
    writer.submit(Seq(ENTRIES + 1), entry(ENTRIES + 1), Urgency::Normal).unwrap();
    writer.flush(Duration::from_secs(10)).unwrap();
    println!(
        "{ENTRIES} rows of {BODY_BYTES} bytes: open {open:?}, replay {replay:?} ({bytes} bytes), events of one session \
         {filter:?} ({rows} rows), delivery lookup new {unknown:?}, known {known:?}"
    );
    let switches = writer_switches();
    std::thread::sleep(Duration::from_secs(3));
    println!(
        "resident {} KiB, {} KiB before it was opened; the writer's wake-ups in 3 s at rest: {}",
        status("VmRSS:"),
        before,
        writer_switches() - switches
    );
    writer.close(Duration::from_secs(10)).unwrap();
}

/// A number from `/proc/self/status`; 0 where there is none.
fn status(field: &str) -> u64 {
    number(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), field)
}

fn writer_switches() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
        .filter(|text| text.lines().next().is_some_and(|name| name.ends_with("journal")))
        .map(|text| number(&text, "voluntary_ctxt_switches:"))
        .sum()
}

fn number(text: &str, field: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}
