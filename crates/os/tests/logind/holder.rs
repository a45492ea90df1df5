//! The holder program.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::Instant,
};

use crate::rig::PATIENCE;

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
