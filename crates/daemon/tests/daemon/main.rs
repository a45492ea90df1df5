//! The daemon over its real sockets: what is acknowledged is remembered, what is hostile is counted and survived.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod agent;
mod alone;
mod declared;
mod provider_holds;
mod rig;
mod spool_process;
mod state_file;
mod transcript_place;
mod transcript_times;

use serde_json::json;
use std::{io::Write as _, os::unix::net::UnixStream};
use watchkeeper_api::{
    client::ClientError,
    method::{
        ConfigSet, ConfigSetParams, EventsParams, Explain, ExplainParams, GetEvents, HoldList, HoldRelease,
        HoldReleaseParams, HoldTake, HoldTakeParams, Nothing, SessionStart, SessionStartParams,
    },
};
use watchkeeper_core::AgentKind;
use watchkeeper_frame::spool::Spool;

use rig::{Daemon, frame, payload, raw_frame, send, tell, until};

/// Callers that say nothing, at once.
const SILENT: u64 = 2000;

fn prompt(text: &str) -> serde_json::Value {
    json!({ "prompt": text, "prompt_id": format!("turn-{text}") })
}

#[test]
fn a_turn_is_known_explained_and_survives_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    tell(&daemon, 1, "s", "SessionStart", json!({ "source": "startup" }));
    assert_eq!(daemon.state_of("s"), Some("idle"));
    tell(&daemon, 2, "s", "UserPromptSubmit", prompt("a"));
    assert_eq!(daemon.state_of("s"), Some("working"));
    let explained = daemon.client().call::<Explain>(&ExplainParams { session: "s".into() }).unwrap();
    assert!(explained.evidence.len() >= 2, "{explained:?}");
    daemon.stop();

    let daemon = Daemon::start(home.path());
    assert_eq!(daemon.state_of("s"), Some("working"), "the journal remembers");
    tell(
        &daemon,
        3,
        "s",
        "Stop",
        json!({ "stop_hook_active": false, "background_tasks": [], "prompt_id": "turn-a" }),
    );
    assert_eq!(daemon.state_of("s"), Some("idle"));
    let events = daemon.client().call::<GetEvents>(&EventsParams::default()).unwrap();
    let stops = events.rows.iter().filter(|row| row.what == "stop").count();
    assert_eq!(stops, 1, "{:?}", events.rows.iter().map(|r| &r.what).collect::<Vec<_>>());
    daemon.stop();
}

#[test]
fn a_delivery_counts_once_by_socket_and_by_spool() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let start = frame(7, "UserPromptSubmit", &payload("s", "UserPromptSubmit", prompt("a")));
    assert_eq!(send(&daemon.place, &start).as_deref(), Some("Taken"));
    assert_eq!(send(&daemon.place, &start).as_deref(), Some("Taken"));
    let spool = Spool::at(daemon.place.spool());
    spool.write(&start, b"").unwrap();
    until("the spool is drained", || spool.drain_order(0).unwrap().files.is_empty().then_some(()));
    let events = daemon.client().call::<GetEvents>(&EventsParams::default()).unwrap();
    assert_eq!(events.rows.iter().filter(|row| row.what == "start").count(), 1);
    daemon.stop();
}

#[test]
fn what_the_spool_holds_is_heard_in_order_before_the_doors_open() {
    let home = tempfile::tempdir().unwrap();
    let place = watchkeeper_daemon::Place::of_home(home.path());
    let spool = Spool::at(place.spool());
    for (delivery, event, more) in [
        (11, "SessionStart", json!({ "source": "startup" })),
        (12, "UserPromptSubmit", prompt("a")),
        (13, "SessionEnd", json!({ "reason": "other" })),
    ] {
        spool.write(&frame(delivery, event, &payload("gone", event, more)), b"").unwrap();
    }
    std::fs::write(place.spool().join(spool.drain_order(0).unwrap().files[0].file_name().unwrap()), b"torn")
        .unwrap();
    let daemon = Daemon::start(home.path());
    until("the session is reported ended", || (daemon.state_of("gone") == Some("ended")).then_some(()));
    let session = daemon.status().sessions.into_iter().find(|s| s.id == "gone").unwrap();
    assert_eq!(session.ended.as_deref(), Some("reported"));
    assert_eq!(daemon.counter("spool.bad"), 1);
    daemon.stop();
}

#[test]
fn hostile_input_is_counted_and_survived() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let huge = vec![b'x'; watchkeeper_frame::wire::PAYLOAD_MAX_BYTES];
    for (n, (agent, event, bytes)) in [
        ("claude", "Stop", &b""[..]),
        ("claude", "Stop", b"{"),
        ("claude", "Stop", b"\xff\xfe\x00"),
        ("claude", "Stop", deep.as_bytes()),
        ("claude", "Stop", &huge),
        ("nobody", "Stop", b"{}"),
        ("claude", "NeverHeardOf", br#"{"session_id":"s","hook_event_name":"NeverHeardOf"}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = send(&daemon.place, &raw_frame(100 + n as u128, agent, event, bytes));
        assert_eq!(answer.as_deref(), Some("Taken"), "{agent} {event}: the agent is never disturbed");
    }
    assert_eq!(daemon.counter("hook.unknown_agent"), 1);
    // Half a frame, a frame that is none, and silence.
    let whole = frame(9, "Stop", &payload("s", "Stop", json!({})));
    UnixStream::connect(daemon.place.hook_socket()).unwrap().write_all(&whole[..20]).unwrap();
    assert_eq!(send(&daemon.place, &[b'?'; 600]).as_deref(), Some("Refused(Malformed)"));
    let silent: Vec<UnixStream> =
        (0..SILENT).map(|_| UnixStream::connect(daemon.place.hook_socket()).unwrap()).collect();
    tell(&daemon, 200, "s", "UserPromptSubmit", prompt("among the silent"));
    assert_eq!(daemon.state_of("s"), Some("working"));
    drop(silent);
    until("half a frame is counted", || (daemon.counter("hook.half_frame") == 1).then_some(()));
    // On a slow machine some are sent away before they leave by themselves.
    let let_go = || daemon.counter("hook.said_nothing") + daemon.counter("hook.slow_frame");
    until("the silent are counted", || (let_go() >= SILENT).then_some(()));
    daemon.stop();
}

#[test]
fn a_second_daemon_is_refused_and_a_stolen_socket_is_mended() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let second = watchkeeper_daemon::run(daemon.place.clone(), true, watchkeeper_daemon::Origin::default());
    assert!(second.unwrap_err().is_already_running());
    std::fs::remove_file(daemon.place.hook_socket()).unwrap();
    until("the hook socket is there again", || UnixStream::connect(daemon.place.hook_socket()).ok());
    tell(&daemon, 1, "s", "UserPromptSubmit", prompt("a"));
    assert_eq!(daemon.counter("door.stolen"), 1);
    daemon.stop();
}

#[test]
fn the_manual_interface_starts_holds_and_configures() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let started = daemon
        .client()
        .call::<SessionStart>(&SessionStartParams {
            agent: AgentKind::Mcp,
            namespace: Some("n".into()),
            id: None,
            prompt: Some("p".into()),
            title: None,
            cwd: None,
            transcript: None,
            pid: Some(std::process::id()),
        })
        .unwrap();
    assert_eq!(started.incarnation, Some(1));
    let session = daemon.status().sessions.remove(0);
    assert!(session.watched && session.pid == Some(std::process::id()), "{session:?}");
    let hold =
        HoldTakeParams { id: None, owner: "me".into(), reason: "a download".into(), length_s: Some(60) };
    let hold = daemon.client().call::<HoldTake>(&hold).unwrap();
    assert_eq!(hold.length_s, 60);
    let bad = ConfigSetParams { key: "keep_awke".into(), value: "busy".into() };
    let Err(ClientError::Remote { failure, .. }) = daemon.client().call::<ConfigSet>(&bad) else {
        panic!("a bad key is refused")
    };
    assert!(failure.message.contains("keep_awake"), "{failure}");
    daemon.stop();
}

#[test]
fn a_hold_outlives_a_restart_and_can_be_let_go_after_it() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let wanted = HoldTakeParams {
        owner: "me".into(),
        reason: "a long copy".into(),
        length_s: Some(600),
        id: Some("copy".into()),
    };
    let taken = daemon.client().call::<HoldTake>(&wanted).unwrap();
    daemon.stop();

    let daemon = Daemon::start(home.path());
    let mut client = daemon.client();
    let holds = client.call::<HoldList>(&Nothing {}).unwrap().holds;
    assert_eq!(holds.iter().map(|h| (h.id.as_str(), h.since)).collect::<Vec<_>>(), [("copy", taken.since)]);
    let released = client.call::<HoldRelease>(&HoldReleaseParams { id: None, all: false }).unwrap();
    assert_eq!(released.ids, ["copy"]);
    assert!(client.call::<HoldList>(&Nothing {}).unwrap().holds.is_empty());
    drop(client);
    daemon.stop();
}

/// A transcript far longer than one turn of reading: the last record still counts, and so does the page that lists it all.
#[test]
fn a_long_transcript_is_read_to_its_end_and_long_lists_come_in_pages() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let transcript = home.path().join("s.jsonl");
    std::fs::write(&transcript, "").unwrap();
    let mut more = prompt("a");
    more["transcript_path"] = json!(transcript);
    tell(&daemon, 1, "s", "UserPromptSubmit", more);
    assert_eq!(daemon.state_of("s"), Some("working"));
    let mut text = String::new();
    while text.len() < 7 << 20 {
        text.push_str(&json!({ "type": "mode", "mode": "x".repeat(1000), "sessionId": "s" }).to_string());
        text.push('\n');
    }
    let now = watchkeeper_api::Time(watchkeeper_os::clock::now().wall).to_string();
    let interrupted = json!({ "type": "user", "isSidechain": false, "sessionId": "s", "uuid": "u", "timestamp": now,
        "message": { "role": "user", "content": [{ "type": "text", "text": "[Request interrupted by user]" }] } });
    text.push_str(&interrupted.to_string());
    text.push('\n');
    let mut file = std::fs::OpenOptions::new().append(true).open(&transcript).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    until("the interrupt is seen", || (daemon.state_of("s") == Some("idle")).then_some(()));

    for n in 0..60 {
        let tool =
            json!({ "tool_name": "x".repeat(40_000), "tool_use_id": format!("t{n}"), "tool_input": {} });
        tell(&daemon, 100 + n, &format!("many{n}"), "PreToolUse", tool);
    }
    let (mut after_seq, mut rows) = (0, 0);
    loop {
        let params =
            EventsParams { after_seq: Some(after_seq), limit: Some(1000), ..EventsParams::default() };
        let page = daemon.client().call::<GetEvents>(&params).unwrap();
        rows += page.rows.len() as u64;
        after_seq = page.next;
        if !page.more {
            break;
        }
    }
    assert!(rows >= 62, "{rows}");
    daemon.stop();
}
