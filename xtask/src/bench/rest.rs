//! The daemon at rest: a hundred idle sessions whose agents live, and nothing happens for a minute.

use anyhow::{Context as _, Result, ensure};
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use super::{
    Goal, Row,
    daemon::{Idlers, PrivateDaemon},
};
use crate::build;

const SESSIONS: usize = 100;
const REST: Duration = Duration::from_secs(60);
/// Settled: nothing woke for this long.
const QUIET: Duration = Duration::from_secs(5);
/// Looks for such a quiet while; without one the minute is measured as it is.
const LOOKS_MAX: usize = 12;
const RESIDENT_MAX_KIB: f64 = 12.0 * 1024.0;

pub(super) fn run(watchkeeper: &Path) -> Result<Vec<Row>> {
    let hook = build::hook()?;
    let daemon = PrivateDaemon::start(watchkeeper, "rest")?;
    let agents = Idlers::start(SESSIONS)?;
    for (index, pid) in agents.pids().enumerate() {
        begin_and_stop(&daemon, &hook, index, pid)?;
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

/// One session with a living agent and a transcript, which has had its turn.
fn begin_and_stop(daemon: &PrivateDaemon, hook: &Path, index: usize, pid: u32) -> Result<()> {
    let id = format!("0b1c2d3e-0000-4000-8000-{index:012}");
    let folder = daemon.home().join("claude/projects").join(format!("project-{}", index % 10));
    fs::create_dir_all(&folder)?;
    let transcript = folder.join(format!("{id}.jsonl"));
    fs::write(&transcript, "{\"type\":\"summary\"}\n")?;
    daemon.ask(&["start", "claude", "--id", &id, "--pid", &pid.to_string()])?;
    let payload = serde_json::json!({
        "session_id": id, "transcript_path": transcript, "cwd": daemon.home(),
        "hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": "Done.",
    });
    let mut child = Command::new(hook)
        .arg("--home")
        .arg(daemon.home())
        .args(["claude", "Stop"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    child.stdin.take().context("no standard input")?.write_all(payload.to_string().as_bytes())?;
    ensure!(child.wait()?.success(), "a hook failed");
    Ok(())
}

fn idle_sessions(daemon: &PrivateDaemon) -> Result<usize> {
    let status: serde_json::Value = serde_json::from_str(&daemon.ask(&["status", "--json"])?)?;
    let sessions = status.get("sessions").and_then(|sessions| sessions.as_array()).context("no sessions")?;
    Ok(sessions.iter().filter(|session| session.get("state").is_some_and(|state| state == "idle")).count())
}

/// What the kernel knows of a process at one moment.
struct Reading {
    /// By thread: name and voluntary context switches.
    switches: BTreeMap<u32, (String, u64)>,
    resident_kib: f64,
    anonymous_kib: f64,
    file_kib: f64,
    cpu_ms: f64,
}

impl Reading {
    fn of(pid: u32) -> Result<Self> {
        let mut switches = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?;
            let status = fs::read_to_string(task.path().join("status"))?;
            let thread = task.file_name().to_string_lossy().parse()?;
            let name = field(&status, "Name:")?.to_owned();
            switches.insert(thread, (name, field(&status, "voluntary_ctxt_switches:")?.parse()?));
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        // A tick is 10 ms on every Linux that people use.
        let cpu_ms = ticks.map(|ticks| ticks.parse::<f64>().unwrap_or(f64::NAN)).sum::<f64>() * 10.0;
        Ok(Self {
            switches,
            resident_kib: field(&status, "VmRSS:")?.parse()?,
            anonymous_kib: field(&status, "RssAnon:")?.parse()?,
            file_kib: field(&status, "RssFile:")?.parse()?,
            cpu_ms,
        })
    }

    fn wakes(&self) -> f64 {
        let sum: u64 = self.switches.values().map(|(_, count)| count).sum();
        u32::try_from(sum).map_or(f64::INFINITY, f64::from)
    }
}

fn field<'a>(status: &'a str, name: &str) -> Result<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next())
        .with_context(|| format!("the kernel tells no {name}"))
}
