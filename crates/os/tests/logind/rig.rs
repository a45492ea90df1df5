//! The rig, an observer of logind's own list that is not our code (`busctl`), and the holder program.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver},
    },
    time::{Duration, Instant},
};

/// Anything that must happen soon has happened by then; tests say themselves what is in time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// One test's turn with the rig.
pub(crate) struct Rig {
    _turn: MutexGuard<'static, ()>,
}

impl Rig {
    pub(crate) fn take() -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        for name in ["DBUS_SYSTEM_BUS_ADDRESS", "RIG_CTL", "RIG_RUN"] {
            assert!(
                std::env::var_os(name).is_some(),
                "{name} is not set: run this by tests/power/with-rig.sh"
            );
        }
        let rig = Self { _turn: turn };
        rig.turn("SetLid", Some("false"));
        rig.turn("ResetSleeps", None);
        rig
    }

    pub(crate) fn turn(&self, knob: &str, value: Option<&str>) -> String {
        run(Command::new(std::env::var_os("RIG_CTL").unwrap()).arg(knob).args(value))
    }

    pub(crate) fn sleeps(&self) -> String {
        self.turn("Sleeps", None)
    }

    /// Kinds that logind lists under this pid, with their modes.
    pub(crate) fn listed(&self, pid: u32) -> Vec<String> {
        let text = run(Command::new("busctl").args([
            "--json=short",
            "call",
            "org.freedesktop.login1",
            "/org/freedesktop/login1",
            "org.freedesktop.login1.Manager",
            "ListInhibitors",
        ]));
        let reply: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = reply["data"][0].as_array().unwrap();
        let mut kinds: Vec<String> = rows
            .iter()
            .filter(|row| row[5] == pid)
            .map(|row| {
                format!(
                    "{} {} {}",
                    row[1].as_str().unwrap(),
                    row[0].as_str().unwrap(),
                    row[3].as_str().unwrap()
                )
            })
            .collect();
        kinds.sort();
        kinds
    }

    /// How long it took until logind listed exactly this; looked at without pause.
    #[track_caller]
    pub(crate) fn wait_listed(&self, pid: u32, expected: &[&str]) -> Duration {
        let begun = Instant::now();
        loop {
            let listed = self.listed(pid);
            if listed == expected {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < PATIENCE, "logind lists {listed:?} for {pid}, not {expected:?}");
        }
    }
}

pub(crate) const BOTH: [&str; 2] = ["Watchkeeper handle-lid-switch block", "Watchkeeper idle block"];

#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The holder program at work. Killed on drop.
pub(crate) struct Holder {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Holder {
    pub(crate) fn start(kinds: &[&str]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_wk-os-holder")).args(kinds))
    }

    /// As a user of the rig, from a copy that this user can reach.
    pub(crate) fn start_as(user: &str, kinds: &[&str]) -> Self {
        let copy: PathBuf = Path::new(&std::env::var_os("RIG_RUN").unwrap()).join("wk-os-holder");
        fs::copy(env!("CARGO_BIN_EXE_wk-os-holder"), &copy).unwrap();
        Self::spawn(
            Command::new("setpriv")
                .args([&format!("--reuid={user}"), "--clear-groups", "--"])
                .arg(copy)
                .args(kinds),
        )
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn say(&mut self, word: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{word}").unwrap();
    }

    /// The next line that starts so; others are passed over.
    #[track_caller]
    pub(crate) fn line(&self, start: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if line.starts_with(start) {
                return line;
            }
            seen.push(line);
        }
        panic!("the holder did not say '{start}...', but {seen:?}");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
