//! What an agent says of itself in a file is believed only while the process lives that the file names.
#![cfg(target_os = "linux")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;
use watchkeeper_api::method::{Explain, ExplainParams};
use watchkeeper_core::ProcessRef;
use watchkeeper_os::clock;

use crate::{
    agent::Agent,
    rig::{Daemon, tell, until},
};

/// A daemon with a working session, and its agent's folder of state files.
struct Home {
    daemon: Daemon,
    sessions: PathBuf,
}

impl Home {
    fn begin(at: &Path) -> Self {
        let agent_home = at.join(".claude");
        let (projects, sessions) = (agent_home.join("projects/w"), agent_home.join("sessions"));
        fs::create_dir_all(&projects).unwrap();
        fs::create_dir_all(&sessions).unwrap();
        let transcript = projects.join("s.jsonl");
        fs::write(&transcript, "").unwrap();
        let daemon = Daemon::start(at);
        let prompt = json!({ "prompt": "p", "prompt_id": "t", "transcript_path": transcript });
        tell(&daemon, 1, "s", "UserPromptSubmit", prompt);
        assert_eq!(daemon.state_of("s"), Some("working"));
        Self { daemon, sessions }
    }

    /// Writes that the process says that it is idle, as an agent does it: whole, at once.
    fn state(&self, process: ProcessRef) -> PathBuf {
        let told = clock::now().wall;
        let at = until("it is later than the prompt", || Some(clock::now().wall).filter(|now| *now > told));
        let content = json!({
            "pid": process.pid, "procStart": process.start.to_string(), "sessionId": "s", "status": "idle",
            "statusUpdatedAt": at.0, "entrypoint": "cli",
        });
        let written = self.sessions.with_file_name("written");
        fs::write(&written, content.to_string()).unwrap();
        let file = self.sessions.join(format!("{}.json", process.pid));
        fs::rename(written, &file).unwrap();
        file
    }

    fn is_refused(&self) {
        until("the file is refused", || (self.daemon.counter("agent_state.stale") > 0).then_some(()));
        assert_eq!(self.daemon.state_of("s"), Some("working"));
    }
}

/// A state file that says idle, of the process that `named` makes of the agent.
fn check(named: impl Fn(Agent) -> (ProcessRef, Option<Agent>), believed: bool) {
    let home = tempfile::tempdir().unwrap();
    let (process, _alive) = named(Agent::start(home.path(), "claude", &[]));
    let begun = Home::begin(home.path());
    begun.state(process);
    if believed {
        until("the file is believed", || (begun.daemon.state_of("s") == Some("idle")).then_some(()));
    } else {
        begun.is_refused();
    }
    begun.daemon.stop();
}

#[test]
fn a_state_file_counts_while_its_process_lives() {
    check(|agent| (agent.identity(), Some(agent)), true);
}

#[test]
fn a_state_file_that_a_killed_agent_left_says_nothing() {
    check(
        |agent| {
            let process = agent.identity();
            agent.kill();
            (process, None)
        },
        false,
    );
}

#[test]
fn a_state_file_says_nothing_of_who_has_its_number_now() {
    check(
        |agent| {
            let own = agent.identity();
            (ProcessRef { start: own.start - 1, ..own }, Some(agent))
        },
        false,
    );
}

/// The file of an agent that was killed, removed when somebody else has its number: a stranger is no process of the session.
#[test]
fn a_removed_state_file_gives_its_session_no_process() {
    let home = tempfile::tempdir().unwrap();
    let stranger = Agent::start(home.path(), "claude", &[]);
    let begun = Home::begin(home.path());
    let own = stranger.identity();
    let file = begun.state(ProcessRef { start: own.start - 1, ..own });
    begun.is_refused();
    fs::remove_file(file).unwrap();
    until("the removal is told", || {
        let session = ExplainParams { session: "s".into() };
        let explained = begun.daemon.client().call::<Explain>(&session).unwrap();
        explained.evidence.iter().any(|row| row.what == "agent_state gone").then_some(())
    });
    let status = begun.daemon.status();
    let session = status.sessions.iter().find(|session| session.id == "s").unwrap();
    assert_eq!(session.pids, Vec::<u32>::new());
    begun.daemon.stop();
}
