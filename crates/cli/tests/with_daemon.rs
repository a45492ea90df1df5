//! The command line against the real daemon of a private instance.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

mod common;

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use common::Instance;
use snapbox::{assert_data_eq, str};

fn up() -> Instance {
    let instance = Instance::new();
    let (code, out, err) = instance.said(&["up", "--no-hooks"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    instance
}

#[test]
fn first_run() {
    let instance = Instance::new();
    let (code, out, err) = instance.said(&["up"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_data_eq!(
        out,
        str![[r#"
The daemon is started.

No coding agent found that Watchkeeper knows; `watchkeeper install` looks again.

awake: no — no agent works
held: nothing   lid: [..]   power: [..]   external displays: [..]

No session yet. Start a coding agent and it appears here.

  watchkeeper hooks status   are the agents wired up?
  watchkeeper install        wire them up (shows the changes and asks first)
  watchkeeper up --demo      see a recorded session play

"#]]
    );
    // A second one finds it running.
    let (code, out, _) = instance.said(&["up", "--no-hooks"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("The daemon runs already."), "{out}");
}

#[test]
fn an_unknown_session_is_told_what_to_do() {
    let instance = up();
    let (code, out, err) = instance.said(&["explain", "zzz"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_data_eq!(
        err,
        str![[r#"
error: cannot explain 'zzz'
  why: no session matches 'zzz'
  do:  Run `watchkeeper status` to see the sessions; an unambiguous beginning of an id is enough.

"#]]
    );
}

#[test]
fn settings_go_through_the_daemon() {
    let instance = up();
    let (code, _, err) = instance.said(&["config", "set", "keep_awak", "on"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("keep_awake"), "{err}");
    let change = instance.json(&["config", "set", "keep_awake", "off"]);
    assert_eq!(change["after"], "off");
    let (code, out, _) = instance.said(&["why"]);
    assert_eq!(code, Some(1), "{out}");
}

#[test]
fn a_session_by_hand_from_start_to_end() {
    let instance = up();
    let started = instance.json(&["start", "opencode", "--id", "abc-1", "--title", "by hand"]);
    assert_eq!((&started["session"], &started["state"]), (&"opencode:abc-1".into(), &"working".into()));

    let status = instance.json(&["status"]);
    assert_eq!(status["machine"]["reasons"][0]["session"], "opencode:abc-1", "{status}");
    assert_eq!(status["sessions"][0]["title"], "by hand", "{status}");

    // A wait that began before sees the change; the pipe tells when it stands.
    let locked = instance.json(&["softlock", "abc", "--reason", "waiting_for_credentials"]);
    assert_eq!(locked["state"], "waiting", "{locked}");
    let waited = instance.json(&["wait", "abc", "--until", "waiting,ended"]);
    assert_eq!((&waited["state"], &waited["reached"]), (&"waiting".into(), &true.into()));
    let (code, out, _) = instance.said(&["wait", "abc", "--until", "working", "--timeout", "0s"]);
    assert_eq!(code, Some(5), "{out}");

    let explained = instance.json(&["explain", "abc"]);
    assert_eq!(explained["session"]["waiting_for"], "waiting_for_credentials");
    assert!(explained["evidence"].as_array().is_some_and(|rows| rows.len() >= 2), "{explained}");
    let (code, text, _) = instance.said(&["explain", "abc"]);
    assert!(code == Some(0) && text.starts_with("opencode:abc-1 is waiting for"), "{text}");

    assert_eq!(instance.json(&["clear-softlock", "abc"])["state"], "working");
    assert_eq!(instance.json(&["activity", "abc"])["state"], "working");
    assert_eq!(instance.json(&["stop", "abc"])["state"], "idle");
    assert_eq!(instance.json(&["stop", "abc", "--end"])["state"], "ended");
}

#[test]
fn a_wait_is_woken_by_the_change() {
    let instance = up();
    instance.json(&["start", "opencode", "--id", "w"]);
    let wait = instance
        .command(&["wait", "w", "--until", "idle", "--timeout", "1m", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    instance.json(&["stop", "w"]);
    let output = wait.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"reached\": true"));
}

#[test]
fn events_are_followed_row_by_row() {
    let instance = up();
    instance.json(&["start", "opencode", "--id", "e"]);
    let mut child =
        instance.command(&["events", "--follow", "--session", "e"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    let first = rows.next().unwrap();
    assert_eq!(first["session"], "opencode:e", "{first}");
    instance.json(&["stop", "e"]);
    let stopped = rows.find(|row| row["transitions"][0]["to"] == "idle").unwrap();
    assert!(stopped["seq"].as_u64() > first["seq"].as_u64());
    child.kill().unwrap();
    child.wait().unwrap();
    // What was pushed is also what is read later, and nothing before a given number.
    let since = (stopped["seq"].as_u64().unwrap() - 1).to_string();
    let (code, out, _) = instance.said(&["events", "--since", &since, "--session", "e"]);
    assert_eq!(code, Some(0));
    let row: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(row["seq"], stopped["seq"]);
}

#[test]
fn holds_are_taken_listed_and_let_go() {
    let instance = up();
    let hold = instance.json(&["hold", "--for", "5m", "--reason", "an upload"]);
    assert_eq!((&hold["length_s"], &hold["owner"]), (&300.into(), &"tester".into()));
    let listed = instance.json(&["hold", "--list"]);
    assert_eq!(listed["holds"][0]["id"], hold["id"]);
    let status = instance.json(&["status"]);
    assert_eq!(status["machine"]["reasons"][0]["hold"], hold["id"], "{status}");
    assert_eq!(instance.json(&["release"])["ids"][0], hold["id"]);
    assert_eq!(instance.json(&["release"])["ids"], serde_json::json!([]));
}

#[test]
fn the_daemon_describes_itself_restarts_and_stops() {
    let instance = up();
    let before = instance.json(&["daemon", "status"]);
    assert_eq!(before["place"]["private"], true, "{before}");
    let after = instance.json(&["daemon", "restart"]);
    // On Linux it hands over what it holds by staying the same process.
    assert_eq!(before["pid"] == after["pid"], cfg!(target_os = "linux"), "{before} {after}");
    assert_ne!(before["started_at"], after["started_at"]);
    assert_eq!(after["counters"].get("restart.failed"), None, "{after}");
    let (code, out, _) = instance.said(&["doctor"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.lines().any(|line| line.starts_with("ok") && line.contains("daemon")), "{out}");
    assert_eq!(instance.run(&["daemon", "stop"]).status.code(), Some(0));
    assert_eq!(instance.run(&["status"]).status.code(), Some(3));
}
