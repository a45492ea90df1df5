//! An agent that a file declares, from its hook to the status, and what becomes of it when the file does not stay.

use serde_json::json;
use watchkeeper_api::method::{CheckLevel, GetDoctor, Nothing, SessionStart, SessionStartParams};
use watchkeeper_core::AgentKind;

use watchkeeper_frame::spool::Spool;

use crate::rig::{Daemon, raw_frame, send, until};

fn example() -> &'static str {
    let document = include_str!("../../../../docs/adding-an-agent.md");
    let (_, behind) = document.split_once("```toml\n").unwrap();
    behind.split_once("```").unwrap().0
}

fn say(daemon: &Daemon, delivery: u128, event: &str) {
    let payload = json!({"conversation_id": "c", "hook_event_name": event, "workspace_roots": ["/p"]});
    let answer = send(&daemon.place, &raw_frame(delivery, "cursor", event, payload.to_string().as_bytes()));
    assert!(answer.is_some(), "{event}");
}

/// Level and detail of the file's check, when it is there.
fn file_check(daemon: &Daemon) -> Option<(CheckLevel, String)> {
    let doctor = daemon.client().call::<GetDoctor>(&Nothing {}).unwrap();
    doctor.checks.into_iter().find(|c| c.name == "adapter-cursor").map(|c| (c.level, c.detail))
}

/// A daemon that starts while the file has a mistake has no earlier version of it: what the agent says waits until it is mended.
#[test]
fn what_is_said_while_its_file_is_broken_is_heard_when_it_is_mended() {
    let home = tempfile::Builder::new().prefix("wk").tempdir().unwrap();
    let place = watchkeeper_daemon::Place::of_home(home.path());
    let folder = place.config.join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("cursor.toml");
    std::fs::write(&file, example().replace("\"turn_started\"", "\"turn_strated\"")).unwrap();
    let payload =
        json!({"conversation_id": "c", "hook_event_name": "beforeSubmitPrompt", "workspace_roots": ["/p"]});
    let spooled = raw_frame(1, "cursor", "beforeSubmitPrompt", payload.to_string().as_bytes());
    Spool::at(place.spool()).write(&spooled, &[]).unwrap();
    let daemon = Daemon::start(home.path());
    let answer = send(&daemon.place, &raw_frame(2, "cursor", "stop", payload.to_string().as_bytes()));
    assert!(
        answer.as_ref().is_some_and(|answer| answer.contains("Refused")),
        "its hook keeps it: {answer:?}"
    );
    assert_eq!(daemon.counter("hook.not_yet_declared"), 1);
    assert_eq!((daemon.state_of("c"), daemon.counter("hook.unknown_agent")), (None, 0));
    std::fs::write(&file, example()).unwrap();
    until("it is heard", || (daemon.state_of("c") == Some("working")).then_some(()));
    daemon.stop();
}

#[test]
fn its_sessions_are_as_any_others() {
    let home = tempfile::Builder::new().prefix("wk").tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    say(&daemon, 1, "beforeSubmitPrompt");
    assert_eq!(daemon.state_of("c"), None);
    assert_eq!(daemon.counter("hook.unknown_agent"), 1);

    // The file is taken as soon as it is there, although even its folder is new.
    let folder = daemon.place.config.join("agents");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("cursor.toml");
    std::fs::write(&file, example()).unwrap();
    until("the file is taken", || file_check(&daemon).filter(|(level, _)| *level == CheckLevel::Ok));
    say(&daemon, 2, "beforeSubmitPrompt");
    until("it works", || (daemon.state_of("c") == Some("working")).then_some(()));
    say(&daemon, 3, "stop");
    until("it is idle", || (daemon.state_of("c") == Some("idle")).then_some(()));

    // Broken, it stays as it was, and its mistake is named.
    std::fs::write(&file, example().replace("\"turn_started\"", "\"turn_strated\"")).unwrap();
    let (_, detail) =
        until("the mistake is seen", || file_check(&daemon).filter(|(level, _)| *level == CheckLevel::Fail));
    assert!(detail.contains("did you mean 'turn_started'?"), "{detail}");
    say(&daemon, 4, "beforeSubmitPrompt");
    until("it works again", || (daemon.state_of("c") == Some("working")).then_some(()));

    // Without its file the agent is unknown; what it did is remembered, also by the next daemon.
    std::fs::remove_file(&file).unwrap();
    until("the file is gone", || file_check(&daemon).is_none().then_some(()));
    say(&daemon, 5, "stop");
    until("it is counted", || (daemon.counter("hook.unknown_agent") == 2).then_some(()));
    assert_eq!(daemon.state_of("c"), Some("working"));
    daemon.stop();
    let daemon = Daemon::start(home.path());
    assert!(daemon.state_of("c").is_some());
    daemon.stop();
}

#[test]
fn only_declared_names_begin_sessions() {
    let home = tempfile::Builder::new().prefix("wk").tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let start = |name: &str| {
        let params = SessionStartParams {
            agent: AgentKind::named(name).unwrap(),
            namespace: None,
            id: Some("x".to_owned()),
            prompt: None,
            title: None,
            cwd: None,
            transcript: None,
            pid: None,
        };
        daemon.client().call::<SessionStart>(&params).map_err(|error| error.to_string())
    };
    let refused = start("cladue").unwrap_err();
    assert!(
        refused.contains("unknown agent 'cladue'") && refused.contains("did you mean 'claude'?"),
        "{refused}"
    );
    let folder = daemon.place.config.join("agents");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("cursor.toml"), example()).unwrap();
    until("it is declared", || start("cursor").ok());
    assert!(daemon.status().sessions.iter().any(|session| session.key == "cursor:x"));
    daemon.stop();
}
