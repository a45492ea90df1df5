//! What an agent says of itself in a file is believed only while the process lives that the file names.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::json;
use watchkeeper_core::ProcessRef;
use watchkeeper_os::clock;

use crate::{
    agent::Agent,
    rig::{Daemon, tell, until},
};

/// A working session whose agent's home has a state file that says idle, of the process that `named` makes of the agent.
fn check(named: impl Fn(Agent) -> (ProcessRef, Option<Agent>), believed: bool) {
    let home = tempfile::tempdir().unwrap();
    let agent_home = home.path().join(".claude");
    let (projects, sessions) = (agent_home.join("projects/w"), agent_home.join("sessions"));
    fs::create_dir_all(&projects).unwrap();
    fs::create_dir_all(&sessions).unwrap();
    let transcript = projects.join("s.jsonl");
    fs::write(&transcript, "").unwrap();
    let (process, _alive) = named(Agent::start(home.path(), "claude", &[]));

    let daemon = Daemon::start(home.path());
    let prompt = json!({ "prompt": "p", "prompt_id": "t", "transcript_path": transcript });
    tell(&daemon, 1, "s", "UserPromptSubmit", prompt);
    assert_eq!(daemon.state_of("s"), Some("working"));
    let told = clock::now().wall;
    let at = until("it is later than the prompt", || Some(clock::now().wall).filter(|now| *now > told));
    let content = json!({
        "pid": process.pid, "procStart": process.start.to_string(), "sessionId": "s", "status": "idle",
        "statusUpdatedAt": at.0, "entrypoint": "cli",
    });
    let written = home.path().join("written");
    fs::write(&written, content.to_string()).unwrap();
    fs::rename(written, sessions.join(format!("{}.json", process.pid))).unwrap();
    if believed {
        until("the file is believed", || (daemon.state_of("s") == Some("idle")).then_some(()));
    } else {
        until("the file is refused", || (daemon.counter("agent_state.stale") > 0).then_some(()));
        assert_eq!(daemon.state_of("s"), Some("working"));
    }
    daemon.stop();
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
