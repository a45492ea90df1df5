//! Transcripts: how fast one is read, how soon an appended line is known, and what long and many ones cost.

use anyhow::{Context as _, Result, ensure};
use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    Goal, Row,
    conversation::{self, Conversation, Told, lines_of},
    daemon::{Idlers, PrivateDaemon},
    figures::Figures,
    floor,
    reading::{Reading, forget_peak},
    spread::Spread,
};

/// Appends of which each changes the state; even.
const APPENDS: usize = 600;
const LONG_BYTES: u64 = 2 << 30;
const SHORT_BYTES: u64 = 10_000_000;
const LINE_BYTES: usize = 200_000_000;
/// A tool's output in the long files.
const OUTPUT_BYTES: usize = 100_000;
const MEMORY_MAX_KIB: f64 = 16.0 * 1024.0;
const RESTARTS: usize = 7;
const WRITERS: u32 = 100;
/// What all writers together write, and in which time: 1 MB a second each.
const WRITTEN_BYTES: usize = 1_000_000_000;
const WRITTEN_FOR: Duration = Duration::from_secs(10);
/// A floor's answer that takes longer is none.
const FLOOR_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn run(watchkeeper: &Path) -> Result<Vec<Row>> {
    let mut rows = scan(watchkeeper)?;
    rows.extend(appends(watchkeeper)?);
    rows.extend(long_ones(watchkeeper)?);
    rows.push(many(watchkeeper)?);
    Ok(rows)
}

/// The first look at a long transcript through the daemon, and every line of one through the reader alone.
fn scan(watchkeeper: &Path) -> Result<Vec<Row>> {
    let figures = Figures::of("watchkeeper-agents", "transcript")?;
    let row = |what: &str, ours, theirs, goal| Row {
        what: what.into(),
        ours,
        against: "wc -l".into(),
        theirs,
        unit: "ms",
        goal,
    };
    let wc = figures.get("transcript.outputs.wc_ms")?;
    Ok(vec![
        row("first sight of a transcript of 1 GiB", first_sight(watchkeeper)?, wc, Goal::AtMost(2.0)),
        row("every line of 1 GiB, long outputs", figures.get("transcript.outputs.scan_ms")?, wc, Goal::Shown),
        row(
            "every line of 1 GiB, short lines",
            figures.get("transcript.recorded.scan_ms")?,
            figures.get("transcript.recorded.wc_ms")?,
            Goal::Shown,
        ),
    ])
}

/// Milliseconds from the hook that tells of it to what its last line says.
fn first_sight(watchkeeper: &Path) -> Result<f64> {
    let daemon = PrivateDaemon::start(watchkeeper, "first-sight")?;
    let agent = Idlers::start(1)?;
    let pid = agent.pids().next().context("no agent")?;
    let path = conversation::transcript_path(&daemon, 0);
    fs::create_dir_all(path.parent().context("no folder")?)?;
    // A conversation elsewhere fills the file; ours begins when it is that long.
    let mut filler = conversation::begin(&daemon, 1, pid)?;
    fill(&mut filler, 1 << 30)?;
    fs::rename(conversation::transcript_path(&daemon, 1), &path)?;
    let told = Told::by(&daemon)?;
    let began = Instant::now();
    let mut ours = conversation::begin(&daemon, 0, pid)?;
    ours.prompt()?;
    let took = told.when(&ours, "working")?.duration_since(began);
    drop(told);
    daemon.stop()?;
    Ok(took.as_secs_f64() * 1e3)
}

/// Appends tool results until so much is written.
fn fill(conversation: &mut Conversation, bytes: u64) -> Result<()> {
    for _ in 0..bytes / OUTPUT_BYTES as u64 {
        conversation.result(OUTPUT_BYTES)?;
    }
    Ok(())
}

/// From the append to what a client is told, against a program that reads the kernel's notice, in turns.
fn appends(watchkeeper: &Path) -> Result<Vec<Row>> {
    let daemon = PrivateDaemon::start(watchkeeper, "appends")?;
    let agent = Idlers::start(1)?;
    let mut ours = conversation::begin(&daemon, 0, agent.pids().next().context("no agent")?)?;
    let told = Told::by(&daemon)?;

    let noticed = daemon.home().join("noticed");
    let mut appended = OpenOptions::new().append(true).create(true).open(&noticed)?;
    let program = floor::compile(daemon.home(), "floor_inotify.c", &[])?;
    let mut watcher = Command::new(program).arg(&noticed).stdout(Stdio::piped()).spawn()?;
    let notices = lines_of(&mut watcher)?;
    notices.recv_timeout(FLOOR_WITHIN).context("the floor does not watch")?;

    let (mut times, mut floor_times) = (Vec::new(), Vec::new());
    for turn in 0..APPENDS {
        let began = Instant::now();
        let at = if turn % 2 == 0 {
            ours.prompt()?;
            told.when(&ours, "working")?
        } else {
            ours.end_of_turn()?;
            told.when(&ours, "idle")?
        };
        times.push(at.duration_since(began));
        let began = Instant::now();
        appended.write_all(b"a line\n")?;
        let (at, _) = notices.recv_timeout(FLOOR_WITHIN).context("the floor notices nothing")?;
        floor_times.push(at.duration_since(began));
    }
    watcher.kill()?;
    watcher.wait()?;
    drop(told);
    daemon.stop()?;
    let (own, floor) = (Spread::of(&mut times), Spread::of(&mut floor_times));
    let row = |what: &str, ours, against: &str, theirs, goal| Row {
        what: format!("transcript append to told state, {what}"),
        ours,
        against: against.into(),
        theirs,
        unit: "µs",
        goal,
    };
    Ok(vec![
        row("median", own.median, "inotify read", floor.median, Goal::Shown),
        row("p99", own.p99, "10 ms", 10_000.0, Goal::AtMost(1.0)),
    ])
}

/// What a long file and a long line cost in memory, and the long file at a restart.
fn long_ones(watchkeeper: &Path) -> Result<Vec<Row>> {
    let (line, _agent, line_peak) =
        grown(watchkeeper, "long-line", |conversation| conversation.result(LINE_BYTES))?;
    line.stop()?;
    let (mut long, _agent, long_peak) =
        grown(watchkeeper, "long-file", |conversation| fill(conversation, LONG_BYTES))?;
    let (mut short, _agent, _) =
        grown(watchkeeper, "short-file", |conversation| fill(conversation, SHORT_BYTES))?;
    let (mut long_times, mut short_times) = (Vec::new(), Vec::new());
    for _ in 0..RESTARTS {
        long_times.push(long.restart()?);
        short_times.push(short.restart()?);
    }
    long.stop()?;
    short.stop()?;
    let memory = |what: &str, ours| Row {
        what: format!("memory beyond rest, {what}"),
        ours,
        against: "16 MiB".into(),
        theirs: MEMORY_MAX_KIB,
        unit: "KiB",
        goal: Goal::AtMost(1.0),
    };
    Ok(vec![
        memory("a transcript of 2 GiB", long_peak),
        memory("a line of 200 MB", line_peak),
        Row {
            what: "restart with a transcript of 2 GiB, median".into(),
            ours: Spread::of(&mut long_times).median,
            against: "with one of 10 MB".into(),
            theirs: Spread::of(&mut short_times).median,
            unit: "µs",
            goal: Goal::AtMost(1.2),
        },
    ])
}

/// A daemon that has read what `grow` writes, with its agent, and how much more memory than before it held at most, in KiB.
fn grown(
    watchkeeper: &Path,
    name: &str,
    grow: impl FnOnce(&mut Conversation) -> Result<()>,
) -> Result<(PrivateDaemon, Idlers, f64)> {
    let daemon = PrivateDaemon::start(watchkeeper, name)?;
    let agent = Idlers::start(1)?;
    let mut conversation = conversation::begin(&daemon, 0, agent.pids().next().context("no agent")?)?;
    let told = Told::by(&daemon)?;
    let before = Reading::of(daemon.pid())?;
    forget_peak(daemon.pid())?;
    grow(&mut conversation)?;
    conversation.end_of_turn()?;
    conversation.prompt()?;
    told.when(&conversation, "working")?;
    conversation.end_of_turn()?;
    told.when(&conversation, "idle")?;
    let peak = Reading::of(daemon.pid())?.peak_kib - before.resident_kib;
    Ok((daemon, agent, peak))
}

/// Processor time while many sessions write much, as a share of one core.
fn many(watchkeeper: &Path) -> Result<Row> {
    let daemon = PrivateDaemon::start(watchkeeper, "writers")?;
    let agents = Idlers::start(usize::try_from(WRITERS)?)?;
    let mut conversations = agents
        .pids()
        .enumerate()
        .map(|(index, pid)| conversation::begin(&daemon, index, pid))
        .collect::<Result<Vec<_>>>()?;
    let before = Reading::of(daemon.pid())?;
    let began = Instant::now();
    let lines = u32::try_from(WRITTEN_BYTES / OUTPUT_BYTES)?;
    let each = WRITTEN_FOR / lines;
    for line in 0..lines {
        let conversation =
            conversations.get_mut(usize::try_from(line % WRITERS)?).context("no such writer")?;
        conversation.result(OUTPUT_BYTES)?;
        thread::sleep((each * (line + 1)).saturating_sub(began.elapsed()));
    }
    let wrote_for = began.elapsed();
    ensure!(wrote_for < WRITTEN_FOR * 2, "the writers took {:.1} s", wrote_for.as_secs_f64());
    let used = Reading::of(daemon.pid())?.cpu_ms - before.cpu_ms;
    daemon.stop()?;
    Ok(Row {
        what: format!("{WRITERS} transcripts at 1 MB/s each: processor time a second"),
        ours: used / wrote_for.as_secs_f64(),
        against: "10 % of one core".into(),
        theirs: 100.0,
        unit: "ms",
        goal: Goal::AtMost(1.0),
    })
}
