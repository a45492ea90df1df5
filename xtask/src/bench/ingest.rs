//! Durable ingest: the journal's own benchmark, and the whole daemon behind its hook socket.

use anyhow::{Context as _, Result, ensure};
use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use watchkeeper_frame::{Head, wire};

use super::{
    Goal, Row,
    daemon::{Idlers, PrivateDaemon},
    figures::Figures,
    hook,
};

/// Senders at once; each has a session of its own and a connection for every event, as hooks have.
const CONNECTIONS: usize = 64;
const EVENTS_EACH: u32 = 500;
/// Rounds, of which the middle one counts.
const ROUNDS: usize = 3;
/// An answer that takes longer is none.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

pub(super) fn run(watchkeeper: &Path) -> Result<Vec<Row>> {
    let figures = Figures::of("watchkeeper-store", "ingest")?;
    let rival = figures.get("ingest.rival_us")?;
    let row = |what: &str, ours, against: &str, theirs, goal| Row {
        what: what.into(),
        ours,
        against: against.into(),
        theirs,
        unit: "µs",
        goal,
    };
    let one_each = "SQLite WAL, one transaction an event";
    Ok(vec![
        row(
            "durable ingest, 64 at once, an event",
            figures.get("ingest.ours_us")?,
            one_each,
            rival,
            Goal::AtLeast(3.0),
        ),
        row(
            "the same through the daemon's hook socket",
            through_the_daemon(watchkeeper)?,
            one_each,
            rival,
            Goal::Shown,
        ),
    ])
}

/// Microseconds an event, from connecting to the acknowledgement, with all senders together.
fn through_the_daemon(watchkeeper: &Path) -> Result<f64> {
    let daemon = PrivateDaemon::start(watchkeeper, "ingest")?;
    let agents = Idlers::start(CONNECTIONS)?;
    for (index, pid) in agents.pids().enumerate() {
        daemon.ask(&["start", "claude", "--id", &session(index), "--pid", &pid.to_string()])?;
    }
    let socket = daemon.run_dir().join("hook.sock");
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let began = Instant::now();
        thread::scope(|scope| {
            let senders: Vec<_> = (0..CONNECTIONS)
                .map(|index| {
                    let socket = &socket;
                    scope.spawn(move || send(socket, round, index))
                })
                .collect();
            senders
                .into_iter()
                .try_for_each(|sender| sender.join().unwrap_or_else(|_| anyhow::bail!("a sender failed")))
        })?;
        let events = f64::from(EVENTS_EACH) * f64::from(u8::try_from(CONNECTIONS)?);
        let each = began.elapsed().as_secs_f64() * 1e6 / events;
        println!(
            "daemon, {CONNECTIONS} senders, a connection an event: {:.0} events/s acknowledged",
            1e6 / each
        );
        rounds.push(each);
    }
    daemon.stop()?;
    rounds.sort_by(f64::total_cmp);
    rounds.get(ROUNDS / 2).copied().context("no round was measured")
}

fn session(index: usize) -> String {
    format!("0b1c2d3e-0000-4000-8000-{index:012}")
}

fn send(socket: &Path, round: usize, index: usize) -> Result<()> {
    let payload = hook::payload(&session(index));
    // Deliveries are unique within this daemon's life, which is all that has to hold.
    let sender = (u128::try_from(round)? << 64) | (u128::try_from(index)? << 32);
    let (uptime, began) = (uptime_ns()?, Instant::now());
    for event in 0..EVENTS_EACH {
        let now = uptime + u64::try_from(began.elapsed().as_nanos())?;
        let frame = frame(sender | u128::from(event) | (1 << 120), now, &payload)?;
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.write_all(&frame)?;
        let mut answer = [0; 8];
        stream.read_exact(&mut answer)?;
        ensure!(answer == hook::TAKEN, "an event was not taken");
    }
    Ok(())
}

/// A request as the hook writes it.
fn frame(delivery: u128, started_ns: u64, payload: &[u8]) -> Result<Vec<u8>> {
    let head = Head {
        delivery,
        started_boot_ns: started_ns,
        wall_ms: i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?,
        hook_pid: std::process::id(),
        wait_ms: 250,
        original_payload_bytes: u64::try_from(payload.len())?,
        ..Head::default()
    };
    let mut room = vec![0; wire::PREFIX_MAX_BYTES + payload.len()];
    let mut draft =
        wire::draft(&mut room, head, b"claude", b"PostToolUse", []).context("no room for a frame")?;
    draft
        .payload_room()
        .get_mut(..payload.len())
        .context("no room for the payload")?
        .copy_from_slice(payload);
    Ok(draft.seal(payload.len()).to_vec())
}

/// The boot clock, rounded down to what `/proc/uptime` tells.
fn uptime_ns() -> Result<u64> {
    let text = fs::read_to_string("/proc/uptime")?;
    let (seconds, hundredths) =
        text.split_whitespace().next().and_then(|word| word.split_once('.')).context("no uptime")?;
    Ok(seconds.parse::<u64>()? * 1_000_000_000 + hundredths.parse::<u64>()? * 10_000_000)
}
