//! Children that live until told otherwise, and leave nothing behind.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use watchkeeper_core::identity::ProcessRef;
use watchkeeper_os::process::identity;

/// What must happen soon has happened by then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// `cat` with an open stdin. Killed and reaped on drop.
pub(crate) struct Cat(Child);

impl Cat {
    pub(crate) fn start() -> Self {
        Self::start_at(Path::new("cat"))
    }

    pub(crate) fn start_at(program: &Path) -> Self {
        Self(Command::new(program).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// `sh` with a `cat` below it, whose pid is returned.
    pub(crate) fn start_below_shell() -> (Self, u32) {
        // A job in the background would have its stdin on the null device.
        let script = "exec 3<&0; cat <&3 >/dev/null & echo $!; wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.trim().parse().unwrap();
        // Between fork and exec it is a second shell.
        let until = Instant::now() + PATIENCE;
        while fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() != "cat\n" {
            assert!(Instant::now() < until, "{pid} does not become cat");
        }
        (Self(child), pid)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn process(&self) -> ProcessRef {
        identity::identify(self.pid()).yes().unwrap()
    }

    /// Kills it and waits until it is a zombie, which it stays.
    pub(crate) fn become_zombie(&mut self) {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        self.0.kill().unwrap();
        let pid = Pid::from_child(&self.0);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    }

    pub(crate) fn reap(&mut self) {
        self.0.wait().unwrap();
    }

    pub(crate) fn end_of_input(&mut self) {
        drop(self.0.stdin.take());
    }
}

impl Drop for Cat {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
