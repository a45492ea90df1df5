//! Copilot CLI's hooks name no transcript before the first stop: it is found below the home of the agent's own environment.
#![cfg(target_os = "linux")]

use std::{fs, path::Path};

use serde_json::{Value, json};
use watchkeeper_frame::{ancestry::Namespaces, spool::Spool};

use crate::{
    agent::Agent,
    rig::{Daemon, raw_frame, send, until},
};

const SESSION: &str = "a0c60621-e4b0-4cfe-9ede-fd83a5984655";

/// A hook of Copilot CLI without the transcript's path.
fn hook(delivery: u128, event: &str, more: Value) -> Vec<u8> {
    let mut payload = json!({ "hook_event_name": event, "session_id": SESSION, "cwd": "/somewhere" });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    raw_frame(delivery, "copilot", event, payload.to_string().as_bytes())
}

/// `variables`: what the agent is started with; `agent_home`: where it then keeps its files.
fn check(home: &Path, variables: &[(&str, &Path)], agent_home: &Path) {
    let agent = Agent::start(home, "copilot", variables);
    let daemon = Daemon::start(home);
    let transcript = || {
        let session = daemon.status().sessions.into_iter().find(|s| s.id == SESSION)?;
        assert_eq!(session.pid, Some(agent.identity().pid), "{session:?}");
        Some(session.transcript)
    };
    let spool = Spool::at(daemon.place.spool());
    let ancestry = agent.ancestry(Namespaces::own());
    spool.write(&hook(1, "SessionStart", json!({ "source": "new" })), &ancestry).unwrap();
    assert_eq!(until("the session is known", transcript), None, "its folder is not there yet");

    let folder = agent_home.join("session-state").join(SESSION);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("events.jsonl");
    let prompt = hook(2, "UserPromptSubmit", json!({ "prompt": "p" }));
    assert_eq!(send(&daemon.place, &prompt).as_deref(), Some("Taken"));
    assert_eq!(transcript(), Some(file.to_str().map(str::to_owned)));
    assert_eq!(daemon.state_of(SESSION), Some("working"));

    // The file comes after the hook. Esc: no hook tells of it.
    let now = watchkeeper_api::Time(watchkeeper_os::clock::now().wall).to_string();
    let abort = json!({ "type": "abort", "data": { "reason": "user_abort" }, "id": "e", "timestamp": now });
    fs::write(&file, format!("{abort}\n")).unwrap();
    until("the interrupt is seen", || (daemon.state_of(SESSION) == Some("idle")).then_some(()));
    daemon.stop();
}

/// Codex may say `null`: then the only file that names the session is its transcript.
#[test]
fn a_codex_transcript_is_found_by_the_sessions_id() {
    let home = tempfile::tempdir().unwrap();
    let moved = home.path().join("moved");
    let agent = Agent::start(home.path(), "codex", &[("CODEX_HOME", &moved)]);
    let day = moved.join("sessions/2026/11/30");
    fs::create_dir_all(&day).unwrap();
    let rollout = |id: &str| day.join(format!("rollout-2026-11-30T08-00-00-{id}.jsonl"));
    for id in [SESSION, "another", "twice"] {
        fs::write(rollout(id), "").unwrap();
    }
    fs::write(moved.join("sessions/2026/rollout-copied-twice.jsonl"), "").unwrap();
    let daemon = Daemon::start(home.path());
    let prompt = |delivery: u128, id: &str| {
        let payload = json!({
            "hook_event_name": "UserPromptSubmit", "session_id": id, "turn_id": "t", "prompt": "p", "transcript_path": null,
        });
        let frame = raw_frame(delivery, "codex", "UserPromptSubmit", payload.to_string().as_bytes());
        let spool = Spool::at(daemon.place.spool());
        spool.write(&frame, &agent.ancestry(Namespaces::own())).unwrap();
        let told = || daemon.status().sessions.into_iter().find(|session| session.id == id);
        until("the session is known", told).transcript
    };
    assert_eq!(prompt(1, SESSION).as_deref(), rollout(SESSION).to_str());
    assert_eq!(prompt(2, "twice"), None, "nobody knows which");
    assert_eq!(prompt(3, "none"), None);
    assert_eq!(daemon.counter("transcript.not_followed"), 2);
    daemon.stop();
}

#[test]
fn a_copilot_transcript_is_found_where_its_home_was_moved() {
    let home = tempfile::tempdir().unwrap();
    let moved = home.path().join("moved");
    check(home.path(), &[("COPILOT_HOME", &moved)], &moved);
}

#[test]
fn and_below_the_home_folder_that_the_agent_was_given() {
    let home = tempfile::tempdir().unwrap();
    let person = home.path().join("person");
    check(home.path(), &[("HOME", &person), ("COPILOT_HOME", Path::new(""))], &person.join(".copilot"));
}
