//! A real daemon of its own: private folders, a home without agents, and no say over the machine's power.

use anyhow::{Context as _, Result, bail, ensure};
use std::{
    fs,
    io::PipeWriter,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::target_dir;

/// From its start to listening.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// From being told to stop to its end; past it, it is killed and the benchmark fails.
const GONE_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Killed and removed when dropped.
#[derive(Debug)]
pub(super) struct PrivateDaemon {
    program: PathBuf,
    home: PathBuf,
    child: Child,
}

impl PrivateDaemon {
    /// Starts it and waits until it says that it listens. `name` tells its folder from others'.
    pub(super) fn start(program: &Path, name: &str) -> Result<Self> {
        let home = target_dir().join(format!("bench-{name}-daemon-{}", std::process::id()));
        fs::create_dir_all(home.join("config")).with_context(|| format!("cannot make {}", home.display()))?;
        fs::write(home.join("config/config.toml"), "keep_awake = \"off\"\ncleanup_delay = \"off\"\n")?;
        let child = begin(program, &home)?;
        Ok(Self { program: program.to_owned(), home, child })
    }

    /// Ends it and starts it again; returns how long the new one took to listen.
    pub(super) fn restart(&mut self) -> Result<Duration> {
        self.end()?;
        let began = Instant::now();
        self.child = begin(&self.program, &self.home)?;
        Ok(began.elapsed())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// `watchkeeper`, about to be run against it.
    pub(super) fn command(&self) -> Command {
        command(&self.program, &self.home)
    }

    pub(super) fn run_dir(&self) -> PathBuf {
        self.home.join("run")
    }

    /// Runs `watchkeeper ARGS` against it; returns what it printed.
    pub(super) fn ask(&self, args: &[&str]) -> Result<String> {
        let output = self.command().args(args).output()?;
        ensure!(
            output.status.success(),
            "watchkeeper {} failed: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Ends it as a person would.
    pub(super) fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.ask(&["daemon", "stop"])?;
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the daemon ended with {status}");
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the daemon did not end");
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for PrivateDaemon {
    fn drop(&mut self) {
        // Both fail harmlessly when it ended in order.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.home));
    }
}

/// Starts a daemon below `home`; returns when it listens.
fn begin(program: &Path, home: &Path) -> Result<Child> {
    let ready = home.join("ready.sock");
    drop(fs::remove_file(&ready));
    let socket =
        UnixDatagram::bind(&ready).with_context(|| format!("cannot listen on {}", ready.display()))?;
    socket.set_read_timeout(Some(READY_WITHIN))?;
    let mut command = command(program, home);
    command.args(["daemon", "run"]).env("NOTIFY_SOCKET", &ready).stdout(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    if let Err(error) = socket.recv(&mut [0; 64]) {
        drop(child.kill());
        drop(child.wait());
        return Err(error).context("the daemon did not come up");
    }
    Ok(child)
}

fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--home").arg(home).env("HOME", home).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("WATCHKEEPER_") || name.starts_with("XDG_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// Processes that only wait, in place of agents. They end with this program, however it ends: each reads a pipe whose
/// other end only we hold.
#[derive(Debug)]
pub(super) struct Idlers {
    children: Vec<Child>,
    _alive: PipeWriter,
}

impl Idlers {
    pub(super) fn start(count: usize) -> Result<Self> {
        let (input, alive) = std::io::pipe()?;
        let start = |_| {
            let mut cat = Command::new("cat");
            anyhow::Ok(cat.stdin(input.try_clone()?).stdout(Stdio::null()).spawn()?)
        };
        Ok(Self { children: (0..count).map(start).collect::<Result<_>>()?, _alive: alive })
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.children.iter().map(Child::id)
    }
}

impl Drop for Idlers {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
