//! `up --demo`: a recorded real session plays through a real daemon of its own, in a folder of its own. Its agent is a
//! process named like the agent that runs the real hook program at the recorded times; power is never touched.
//!
//! Two processes: the person's `up --demo` shows and cleans up; the agent watches its standard input, so that it cleans
//! up instead when `up` is interrupted.

use std::{
    env, fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::Value;
use watchkeeper_agents::install::HOOK_PROGRAM;
use watchkeeper_api::{
    Client, ClientOptions,
    method::{DaemonStop, Nothing, SubscribeParams},
};
use watchkeeper_core::AgentKind;
use watchkeeper_frame::Place;

use crate::{
    complaint::Complaint,
    instance::{Instance, InstanceKind},
    launch,
};

/// Claude Code 2.1.332: a command left in the background outlives its turn, its end starts another one, `/exit`. Only
/// the hooks of the recording, of which only times, names and payloads.
const RECORDING: &str = include_str!("../demo/claude-background-shell.jsonl");
/// The recording's home folder, which is replaced by the demo's.
const RECORDED_HOME: &str = "/home/dev";
/// The program's name by which the agent's process is recognised.
const AGENT: AgentKind = AgentKind::Claude;
/// No power, and no waiting once everybody has left.
const CONFIGURATION: &str = "# A demo does not touch power.\nkeep_awake = \"off\"\ncleanup_delay = \"10s\"\n";
/// Quiet stretches of the recording are cut to this.
const GAP_MAX: Duration = Duration::from_secs(6);
/// How long the last picture stays before everything is taken down.
const LINGER: Duration = Duration::from_secs(2);
/// How long its daemon may take to stop; then the folder is removed all the same.
const STOP_WITHIN: Duration = Duration::from_secs(5);
const WHAT: &str = "cannot play the demo";

/// One hook call of the recording.
#[derive(Debug, Deserialize)]
struct Step {
    /// Seconds since the recording began.
    t: f64,
    event: String,
    payload: Value,
}

/// A demo that plays.
#[derive(Debug)]
pub(crate) struct Demo {
    pub(crate) instance: Instance,
    home: PathBuf,
    agent: Child,
    /// When the agent was seen gone.
    over: Option<Instant>,
}

impl Demo {
    /// Makes the folder, starts its daemon and its agent. `beside`: the instance whose runtime folder has room for it.
    pub(crate) fn start(beside: &Instance) -> Result<Self, Complaint> {
        let failed = |error: &io::Error| Complaint::new(WHAT).caused_by(error);
        let hook = hook_program().map_err(|error| failed(&error))?;
        if !hook.is_file() {
            return Err(Complaint::new(WHAT)
                .because(format!("the hook program {} is not there", hook.display()))
                .todo("Build both programs: `cargo xtask build`."));
        }
        let home = beside.place.run.join(format!("demo{}", std::process::id()));
        let instance = Instance { place: Place::of_home(&home), kind: InstanceKind::Private(home.clone()) };
        instance.place.check().map_err(|error| Complaint::new(WHAT).caused_by(&error))?;
        let agent = prepare(&instance, &home).map_err(|error| failed(&error))?;
        if let Err(error) = launch::launch(&instance) {
            remove(&home);
            return Err(error.complaint(&instance));
        }
        let spawned = spawn_agent(&agent, &home);
        let agent = spawned.map_err(|error| {
            stop_daemon(&instance);
            remove(&home);
            failed(&error)
        })?;
        Ok(Self { instance, home, agent, over: None })
    }

    /// Whether the recording has been played and looked at.
    pub(crate) fn is_over(&mut self) -> bool {
        if self.over.is_none() && !matches!(self.agent.try_wait(), Ok(None)) {
            self.over = Some(Instant::now());
        }
        self.over.is_some_and(|over| over.elapsed() >= LINGER)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Its standard input ends, so it stops playing and cleans up; what it left is taken down here.
        drop(self.agent.stdin.take());
        _ = self.agent.wait();
        stop_daemon(&self.instance);
        remove(&self.home);
    }
}

fn hook_program() -> io::Result<PathBuf> {
    Ok(env::current_exe()?.with_file_name(format!("{HOOK_PROGRAM}{}", env::consts::EXE_SUFFIX)))
}

/// Everything of the demo that is a file; returns the agent's program.
fn prepare(instance: &Instance, home: &Path) -> io::Result<PathBuf> {
    for folder in [home, instance.place.config.as_path()] {
        launch::create_private(folder)?;
    }
    fs::write(instance.config_file(), CONFIGURATION)?;
    let agent = home.join(format!("{AGENT}{}", env::consts::EXE_SUFFIX));
    let own = env::current_exe()?;
    // A second name is enough; across file systems it is a copy.
    fs::hard_link(&own, &agent).or_else(|_| fs::copy(&own, &agent).map(|_| ()))?;
    Ok(agent)
}

fn spawn_agent(program: &Path, home: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg("--home").arg(home).arg("demo-agent").arg(hook_program()?);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C is for the view; the agent learns of its end by its standard input.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// The agent: plays, and cleans up when its viewer is gone.
pub(crate) fn play(instance: &Instance, hook: &Path) -> Result<(), Complaint> {
    let InstanceKind::Private(home) = &instance.kind else {
        return Err(Complaint::new(WHAT).because("it plays only in a folder of its own"));
    };
    let viewer_gone = viewer_gone();
    let mut at = 0.0;
    for line in RECORDING.lines() {
        let line = line.replace(RECORDED_HOME, &home.to_string_lossy());
        let step: Step =
            serde_json::from_str(&line).map_err(|error| Complaint::new(WHAT).caused_by(&error))?;
        let gap = Duration::try_from_secs_f64(step.t - at).unwrap_or_default().min(GAP_MAX);
        at = step.t;
        if !matches!(viewer_gone.recv_timeout(gap), Err(RecvTimeoutError::Timeout)) {
            stop_daemon(instance);
            remove(home);
            return Ok(());
        }
        call_hook(hook, home, &step).map_err(|error| Complaint::new(WHAT).caused_by(&error))?;
    }
    Ok(())
}

/// Something arrives, or the channel closes, when standard input ends.
fn viewer_gone() -> Receiver<()> {
    let (gone, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut byte = [0];
        while !matches!(io::stdin().lock().read(&mut byte), Ok(0) | Err(_)) {}
        // The player may have ended already.
        _ = gone.send(());
    });
    receiver
}

fn call_hook(hook: &Path, home: &Path, step: &Step) -> io::Result<()> {
    let mut child = Command::new(hook)
        .arg("--home")
        .arg(home)
        .arg(AGENT.name())
        .arg(&step.event)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(step.payload.to_string().as_bytes())?;
    }
    // The hook bounds its own time.
    child.wait().map(|_| ())
}

/// Stops the daemon and waits for its end. One that is gone already is as good.
fn stop_daemon(instance: &Instance) {
    let dial = || Client::connect(&instance.api(), &ClientOptions::new("watchkeeper demo"));
    let Ok(mut end) = dial().and_then(|client| client.subscribe(&SubscribeParams::default())) else { return };
    if dial().and_then(|mut client| client.call::<DaemonStop>(&Nothing {})).is_err() {
        return;
    }
    let deadline = Instant::now() + STOP_WITHIN;
    // Its connections close last.
    while matches!(end.next(Some(deadline.saturating_duration_since(Instant::now()))), Ok(Some(_))) {}
}

/// What cannot be removed stays in the runtime folder, which the system clears.
fn remove(home: &Path) {
    _ = fs::remove_dir_all(home);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_is_one_session_in_order() {
        let steps: Vec<Step> = RECORDING.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(steps.windows(2).all(|pair| pair[0].t <= pair[1].t));
        assert_eq!(steps.first().map(|step| step.event.as_str()), Some("SessionStart"));
        assert_eq!(steps.last().map(|step| step.event.as_str()), Some("SessionEnd"));
        assert!(steps.iter().all(|step| step.payload["session_id"] == steps[0].payload["session_id"]));
    }
}
