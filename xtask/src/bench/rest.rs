//! The daemon at rest: a hundred idle sessions whose agents live, and nothing happens for a minute.

use anyhow::{Context as _, Result, ensure};
use std::{path::Path, thread, time::Duration};

use super::{
    Goal, Row, conversation,
    daemon::{Idlers, PrivateDaemon},
    reading::Reading,
};

const SESSIONS: usize = 100;
const REST: Duration = Duration::from_secs(60);
/// Settled: nothing woke for this long.
const QUIET: Duration = Duration::from_secs(5);
/// Looks for such a quiet while; without one the minute is measured as it is.
const LOOKS_MAX: usize = 12;
const RESIDENT_MAX_KIB: f64 = 12.0 * 1024.0;

pub(super) fn run(watchkeeper: &Path) -> Result<Vec<Row>> {
    let daemon = PrivateDaemon::start(watchkeeper, "rest")?;
    let agents = Idlers::start(SESSIONS)?;
    for (index, pid) in agents.pids().enumerate() {
        conversation::begin(&daemon, index, pid)?;
    }
    let idle = idle_sessions(&daemon)?;
    ensure!(idle == SESSIONS, "{idle} of {SESSIONS} sessions are idle");

    let pid = daemon.pid();
    let mut before = Reading::of(pid)?;
    for _ in 0..LOOKS_MAX {
        thread::sleep(QUIET);
        let now = Reading::of(pid)?;
        let settled = now.switches == before.switches;
        before = now;
        if settled {
            break;
        }
    }
    thread::sleep(REST);
    let after = Reading::of(pid)?;
    for (thread, (name, count)) in &after.switches {
        let then = before.switches.get(thread).map_or(0, |(_, count)| *count);
        println!(
            "thread {thread} {name}: voluntary context switches {then} -> {count} in {} s",
            REST.as_secs()
        );
    }
    println!(
        "resident {:.0} KiB (anonymous {:.0}, files {:.0}), processor time {:.0} -> {:.0} ms",
        after.resident_kib, after.anonymous_kib, after.file_kib, before.cpu_ms, after.cpu_ms
    );
    ensure!(idle_sessions(&daemon)? == SESSIONS, "sessions changed meanwhile");
    daemon.stop()?;
    let row = |what: &str, ours, theirs, unit, goal| Row {
        what: format!("{SESSIONS} idle sessions: {what}"),
        ours,
        against: if theirs > 0.0 { "12 MiB".into() } else { "nothing".into() },
        theirs,
        unit,
        goal,
    };
    Ok(vec![
        row("wake-ups in 60 s", after.wakes() - before.wakes(), 0.0, "", Goal::Nothing),
        row("processor time in 60 s", after.cpu_ms - before.cpu_ms, 0.0, "ms", Goal::Nothing),
        row("resident", after.resident_kib, RESIDENT_MAX_KIB, "KiB", Goal::AtMost(1.0)),
    ])
}

fn idle_sessions(daemon: &PrivateDaemon) -> Result<usize> {
    let status: serde_json::Value = serde_json::from_str(&daemon.ask(&["status", "--json"])?)?;
    let sessions = status.get("sessions").and_then(|sessions| sessions.as_array()).context("no sessions")?;
    Ok(sessions.iter().filter(|session| session.get("state").is_some_and(|state| state == "idle")).count())
}
