//! Floors, rivals and ours in one run, as ratios. Nothing here is a test: figures depend on the machine, ratios less so.

mod conversation;
mod daemon;
mod figures;
mod floor;
mod hook;
mod ingest;
mod reading;
mod rest;
mod row;
mod spread;
mod transcript;

use row::{Goal, Row};

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};

use crate::build;
use daemon::PrivateDaemon;
use figures::Figures;

/// What runs when nothing is named, in the order in which it runs.
const ALL: [&str; 5] = ["hook", "ingest", "exit", "rest", "reducer"];
/// Runs only when it is named: it writes six gigabytes.
const TRANSCRIPT: &str = "transcript";

/// Runs the benchmarks named in `args` ([`ALL`] without a name) and prints their rows as one table; fails when a row misses
/// its goal by more than a factor of two. `--against-daemon DIR` takes a daemon that runs already for the hook's rows.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut names: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut daemon = None;
    if let Some(at) = names.iter().position(|name| *name == "--against-daemon") {
        names.remove(at);
        if at == names.len() {
            bail!("--against-daemon needs the runtime directory of a running daemon");
        }
        daemon = Some(PathBuf::from(names.remove(at)));
    }
    if let Some(other) = names.iter().find(|name| **name != TRANSCRIPT && !ALL.contains(*name)) {
        bail!("unknown benchmark '{other}'; known: {}, {TRANSCRIPT}", ALL.join(", "));
    }
    let watchkeeper = build::release()?;
    let mut rows = Vec::new();
    let mut broken = Vec::new();
    for name in if names.is_empty() { ALL.to_vec() } else { names } {
        println!("== {name}: load {}", load());
        let outcome = match name {
            "hook" => hooks(&watchkeeper, daemon.as_deref()),
            "ingest" => ingest::run(&watchkeeper),
            "exit" => exit(),
            "rest" => rest::run(&watchkeeper),
            "reducer" => reducer(),
            _ => transcript::run(&watchkeeper),
        };
        match outcome {
            Ok(some) => rows.extend(some),
            Err(error) => {
                println!("{name} could not be measured: {error:#}");
                broken.push(name);
            }
        }
    }
    println!("\nload at the end {}\n", load());
    row::print(&rows);
    if !broken.is_empty() {
        bail!("could not be measured: {}", broken.join(", "));
    }
    let failed: Vec<&str> = rows.iter().filter(|row| row.fails()).map(|row| row.what.as_str()).collect();
    if !failed.is_empty() {
        bail!("twice beyond the goal: {}", failed.join(", "));
    }
    Ok(())
}

fn hooks(watchkeeper: &Path, given: Option<&Path>) -> Result<Vec<Row>> {
    if let Some(run) = given {
        return hook::run(run);
    }
    let daemon = PrivateDaemon::start(watchkeeper, "hook")?;
    // As in life: the session's agent is known and watched before most of its hooks come.
    daemon.ask(&["start", "claude", "--id", hook::SESSION, "--pid", &std::process::id().to_string()])?;
    let rows = hook::run(&daemon.run_dir())?;
    daemon.stop()?;
    Ok(rows)
}

fn exit() -> Result<Vec<Row>> {
    let figures = Figures::of("watchkeeper-os", "exit_watch")?;
    let p99 = figures.get("exit.p99_us")?;
    let row = |against: &str, theirs, goal| Row {
        what: "process exit, 10,000 watched, p99".into(),
        ours: p99,
        against: against.into(),
        theirs,
        unit: "µs",
        goal,
    };
    Ok(vec![
        row("poll of one pidfd", figures.get("exit.floor_p99_us")?, Goal::AtMost(2.0)),
        row("5 ms", 5_000.0, Goal::AtMost(1.0)),
        Row {
            what: "its watcher's wake-ups in 2 s at rest".into(),
            ours: figures.get("exit.switches")?,
            against: "nothing".into(),
            theirs: 0.0,
            unit: "",
            goal: Goal::Nothing,
        },
    ])
}

fn reducer() -> Result<Vec<Row>> {
    let figures = Figures::of("watchkeeper-core", "reducer")?;
    let (few, many) = (figures.get("reducer.ns.10")?, figures.get("reducer.ns.10000")?);
    let row = |what: &str, ours, against: &str, theirs, goal| Row {
        what: what.into(),
        ours,
        against: against.into(),
        theirs,
        unit: "ns",
        goal,
    };
    Ok(vec![
        row("a signal in the core, 10 sessions", few, "1 M signals/s", 1_000.0, Goal::AtMost(1.0)),
        row("a signal in the core, 10,000 sessions", many, "10 sessions", few, Goal::AtMost(1.5)),
    ])
}

/// The machine's load averages: figures of a busy machine are to be read as such.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").context("no load averages here");
    text.map_or_else(|error| error.to_string(), |text| text.trim().to_owned())
}
