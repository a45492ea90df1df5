//! The hook against a program that does nothing, against hooks as people write them, and against itself under load.
//!
//! All programs are spawned the same way by the same parent, take turns (so that a busy machine hurts all alike), and
//! get the same payload on standard input. Hooks talk to a real daemon; curl, which cannot, to a server in this program
//! that takes everything at once.

use anyhow::{Context as _, Result, bail, ensure};
use std::{
    fs,
    io::{Read, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Barrier, OnceLock},
    thread,
    time::{Duration, Instant},
};

use super::{Goal, Row, floor, spread::Spread};
use crate::{build, root, target_dir};

/// Turns of the quick programs; an odd number has a middle.
const TURNS: usize = 601;
/// The slow rivals take one turn in so many.
const SLOW_EVERY: usize = 6;
/// Turns of the rows that wait for the disk.
const DISK_TURNS: usize = 201;
/// Hooks at once, and how often.
const AT_ONCE: usize = 64;
const BURSTS: usize = 25;
/// The size of an ordinary tool event.
const PAYLOAD_BYTES: usize = 1_600;
/// `Taken` of the hook's protocol.
pub(super) const TAKEN: [u8; 8] = *b"WK\x01\x01\0\0\0\0";
/// The session of every event.
pub(super) const SESSION: &str = "0f3a2b1c-4d5e-6f70-8192-a3b4c5d6e7f8";

struct Bench {
    /// Removed at the end.
    dir: PathBuf,
    hook: PathBuf,
    run: PathBuf,
    payload: Vec<u8>,
}

/// Runs all rows of the hook against the daemon whose runtime directory is `run`.
pub(super) fn run(run: &Path) -> Result<Vec<Row>> {
    let dir = target_dir().join(format!("bench-hook-{}", std::process::id()));
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let hook = build::hook()?;
    let bench = Bench { run: run.to_owned(), dir, hook, payload: payload(SESSION) };
    let rows = bench.rows();
    drop(fs::remove_dir_all(&bench.dir));
    rows
}

impl Bench {
    fn rows(&self) -> Result<Vec<Row>> {
        let own_run = self.dir.join("run");
        fs::create_dir_all(&own_run)?;
        serve(&own_run.join("hook.sock"))?;
        let floor_exit = floor::compile(&self.dir, "floor_exit.c", &[])?;
        let size = format!("-DPAYLOAD_BYTES={PAYLOAD_BYTES}");
        let floor_spool = floor::compile(&self.dir, "floor_spool.c", &[&size])?;
        let mut rows = self.round_trip(&floor_exit, &own_run)?;
        rows.extend(self.burst(&floor_exit)?);
        rows.push(self.down(&floor_spool)?);
        let bytes = fs::metadata(&self.hook)?.len();
        rows.push(Row {
            what: "size of watchkeeper-hook".into(),
            ours: kib(bytes),
            against: "600 KiB".into(),
            theirs: 600.0,
            unit: "KiB",
            goal: Goal::AtMost(1.0),
        });
        println!("{TURNS} turns, payload {PAYLOAD_BYTES} bytes, disk of {}", self.dir.display());
        Ok(rows)
    }

    fn round_trip(&self, floor: &Path, own_run: &Path) -> Result<Vec<Row>> {
        let socket = self.run.join("hook.sock");
        let programs = root().join("xtask/src/bench/programs");
        let python = interpreter("python3", &["-c", "import sys; print(sys.executable)"])?;
        let node = interpreter("node", &["-p", "process.execPath"])?;
        let curl = format!(
            "curl --silent --fail --unix-socket '{}' --data-binary @- http://localhost/hook",
            own_run.join("hook.sock").display()
        );
        let state = self.dir.join("state");
        let mut floor_times = Vec::new();
        let mut ours = Vec::new();
        let mut rivals = [Vec::new(), Vec::new(), Vec::new()];
        for turn in 0..TURNS {
            floor_times.push(self.timed(&mut Command::new(floor))?);
            ours.push(self.timed(&mut self.ours(&state))?);
            if turn % SLOW_EVERY == 0 {
                let [sh, py, js] = &mut rivals;
                sh.push(self.timed(Command::new("sh").args(["-c", &curl]))?);
                py.push(self.timed(Command::new(&python).arg(programs.join("rival_hook.py")).arg(&socket))?);
                js.push(self.timed(Command::new(&node).arg(programs.join("rival_hook.js")).arg(&socket))?);
            }
        }
        // Not answered within the hook's own deadline: slower than any that was, and counted as what they took.
        let spooled = fs::read_dir(state.join("spool")).map_or(0, Iterator::count);
        ensure!(spooled * 2 < TURNS, "{spooled} of {TURNS} hooks were not answered and went to the spool");
        let own = Spread::of(&mut ours);
        println!(
            "hook round trip: median {:.0} µs, p99 {:.0} µs; {spooled} of {TURNS} went to the spool",
            own.median, own.p99
        );
        let row = |against: &str, times: &mut [Duration], goal| Row {
            what: "hook round trip, median".into(),
            ours: own.median,
            against: against.into(),
            theirs: Spread::of(times).median,
            unit: "µs",
            goal,
        };
        let [sh, py, js] = &mut rivals;
        Ok(vec![
            row("static C program that does nothing", &mut floor_times, Goal::AtMost(1.3)),
            row("sh -c 'curl --unix-socket …'", sh, Goal::AtLeast(5.0)),
            row("Python hook", py, Goal::AtLeast(15.0)),
            row("Node hook", js, Goal::AtLeast(50.0)),
        ])
    }

    /// Many hooks at the same moment. Every clock starts at that moment, also of those that must wait for a processor
    /// before they can even be started.
    fn burst(&self, floor: &Path) -> Result<Vec<Row>> {
        let state = self.dir.join("state-burst");
        let mut floor_times = Vec::new();
        let mut ours = Vec::new();
        for _ in 0..BURSTS {
            floor_times.extend(self.at_once(|| Command::new(floor))?);
            ours.extend(self.at_once(|| self.ours(&state))?);
        }
        let spooled = fs::read_dir(state.join("spool")).map_or(0, Iterator::count);
        let (floor, own) = (Spread::of(&mut floor_times), Spread::of(&mut ours));
        println!(
            "{AT_ONCE} at once: ours median {:.0} µs, p99 {:.0} µs; the floor's {:.0} and {:.0}; {spooled} of {} went to the spool",
            own.median,
            own.p99,
            floor.median,
            floor.p99,
            AT_ONCE * BURSTS
        );
        let what = format!("hook, {AT_ONCE} at once");
        Ok(vec![
            Row {
                what: format!("{what}, p99"),
                ours: own.p99,
                against: "its own median".into(),
                theirs: own.median,
                unit: "µs",
                goal: Goal::AtMost(3.0),
            },
            Row {
                what: format!("{what}, median"),
                ours: own.median,
                against: "static C program that does nothing, likewise".into(),
                theirs: floor.median,
                unit: "µs",
                goal: Goal::AtMost(1.3),
            },
        ])
    }

    /// No daemon: both write into the same directory.
    fn down(&self, floor: &Path) -> Result<Row> {
        let home = self.dir.join("away");
        let spool = home.join("state/spool");
        let mut floor_times = Vec::new();
        let mut ours = Vec::new();
        for turn in 0..DISK_TURNS {
            if turn % 50 == 0 {
                drop(fs::remove_dir_all(&spool));
                fs::create_dir_all(&spool)?;
            }
            floor_times.push(self.timed(Command::new(floor).arg(&spool))?);
            let mut command = Command::new(&self.hook);
            command.arg("--home").arg(&home).args(["claude", "PostToolUse"]);
            ours.push(self.timed(&mut command)?);
        }
        let frames =
            fs::read_dir(&spool)?.flatten().filter(|e| e.path().extension().is_some_and(|x| x == "frame"));
        ensure!(frames.count() == (DISK_TURNS - 1) % 50 + 1, "an event is missing in the spool");
        let (floor, own) = (Spread::of(&mut floor_times), Spread::of(&mut ours));
        println!("daemon down: p99 {:.0} µs, the floor's {:.0} µs", own.p99, floor.p99);
        Ok(Row {
            what: "hook with the daemon down, median".into(),
            ours: own.median,
            against: "static C program: write, fdatasync, rename".into(),
            theirs: floor.median,
            unit: "µs",
            goal: Goal::AtMost(1.3),
        })
    }

    fn ours(&self, state: &Path) -> Command {
        let mut command = Command::new(&self.hook);
        command.arg("--run").arg(&self.run).arg("--state").arg(state).args(["claude", "PostToolUse"]);
        command
    }

    /// From before the spawn until the program has ended.
    fn timed(&self, command: &mut Command) -> Result<Duration> {
        self.timed_from(Instant::now(), command)
    }

    fn timed_from(&self, started: Instant, command: &mut Command) -> Result<Duration> {
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read, as the floor, may be gone.
            drop(stdin.write_all(&self.payload));
        }
        let status = child.wait()?;
        let elapsed = started.elapsed();
        ensure!(status.success(), "{} ended with {status}", command.get_program().display());
        Ok(elapsed)
    }

    fn at_once(&self, command: impl Fn() -> Command) -> Result<Vec<Duration>> {
        let barrier = Arc::new(Barrier::new(AT_ONCE));
        let started = Arc::new(OnceLock::new());
        thread::scope(|scope| {
            let threads: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    let (mut command, barrier, started) =
                        (command(), Arc::clone(&barrier), Arc::clone(&started));
                    scope.spawn(move || {
                        barrier.wait();
                        self.timed_from(*started.get_or_init(Instant::now), &mut command)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread failed")))
                .collect()
        })
    }
}

/// The real program behind a name that may be a version manager's script, which would only be slower.
fn interpreter(name: &str, ask: &[&str]) -> Result<PathBuf> {
    let output = Command::new(name).args(ask).output().with_context(|| format!("this row needs {name}"))?;
    ensure!(output.status.success(), "{name} does not say where it is");
    Ok(String::from_utf8(output.stdout)?.trim().into())
}

/// An event of this session as Claude Code sends it, filled up to the ordinary size.
pub(super) fn payload(session: &str) -> Vec<u8> {
    let mut text = format!(
        r#"{{"session_id":"{session}","hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":{{"stdout":""#,
    );
    let end = r#""}}"#;
    text.push_str(&"x".repeat(PAYLOAD_BYTES - text.len() - end.len()));
    text.push_str(end);
    text.into_bytes()
}

/// Takes curl's requests, one after the other, for the rest of this program's life.
fn serve(socket: &Path) -> Result<()> {
    let listener =
        UnixListener::bind(socket).with_context(|| format!("cannot listen on {}", socket.display()))?;
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok((mut stream, _)) = listener.accept() {
            // A client that leaves early fails its own turn.
            drop(answer(&mut stream, &mut buffer));
        }
    });
    Ok(())
}

fn answer(stream: &mut UnixStream, buffer: &mut [u8]) -> Result<()> {
    let mut have = 0;
    loop {
        let free = buffer.get_mut(have..).unwrap_or_default();
        let len = stream.read(free)?;
        ensure!(len > 0, "left early");
        have += len;
        let bytes = buffer.get(..have).unwrap_or_default();
        if bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .is_some_and(|at| have >= at + 4 + PAYLOAD_BYTES)
        {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
            return Ok(());
        }
    }
}

fn kib(bytes: u64) -> f64 {
    u32::try_from(bytes).map_or(f64::INFINITY, |bytes| f64::from(bytes) / 1024.0)
}
