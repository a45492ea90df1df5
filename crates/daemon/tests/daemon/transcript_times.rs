//! The times that a transcript's records carry, in whatever order.

use std::{fs::OpenOptions, io::Write as _, path::Path};

use serde_json::{Value, json};
use watchkeeper_core::Wall;

use crate::rig::{Daemon, tell, until};

const HOUR_MS: i64 = 3_600_000;
const THOUSAND_YEARS_MS: i64 = 1000 * 365 * 24 * HOUR_MS;

/// Appends a record of a person's words, written `ahead_ms` from now, and one that gives the session this title; waits until
/// both are read.
fn say(daemon: &Daemon, transcript: &Path, ahead_ms: i64, words: &str, title: &str) {
    let at = watchkeeper_api::Time(Wall(watchkeeper_os::clock::now().wall.0 + ahead_ms)).to_string();
    let message = json!({ "role": "user", "content": [{ "type": "text", "text": words }] });
    let said = json!({ "type": "user", "uuid": title, "sessionId": "s", "timestamp": at, "promptId": title, "message": message });
    let titled = json!({ "type": "ai-title", "sessionId": "s", "aiTitle": title });
    let mut file = OpenOptions::new().append(true).create(true).open(transcript).unwrap();
    file.write_all(format!("{said}\n{titled}\n").as_bytes()).unwrap();
    let is_read = || daemon.status().sessions.iter().any(|s| s.title.as_deref() == Some(title));
    until(title, || is_read().then_some(()));
}

#[test]
fn times_that_go_backwards_undo_nothing_and_times_ahead_hold_nothing() {
    const INTERRUPT: &str = "[Request interrupted by user]";
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let transcript = home.path().join("s.jsonl");
    let more: Value = json!({ "prompt": "a", "prompt_id": "turn", "transcript_path": transcript });
    tell(&daemon, 1, "s", "UserPromptSubmit", more);
    let state = || daemon.state_of("s").unwrap();
    assert_eq!(state(), "working");

    say(&daemon, &transcript, -HOUR_MS, INTERRUPT, "an interrupt of another hour");
    assert_eq!(state(), "working");
    say(&daemon, &transcript, 0, INTERRUPT, "an interrupt of now");
    assert_eq!(state(), "idle");
    say(&daemon, &transcript, -HOUR_MS, "go on", "a prompt of another hour");
    assert_eq!(state(), "idle");
    say(&daemon, &transcript, THOUSAND_YEARS_MS, "go on", "a prompt of another age is one of now");
    assert_eq!(state(), "working");
    say(&daemon, &transcript, 0, INTERRUPT, "an interrupt after it");
    assert_eq!(state(), "idle");
    daemon.stop();
}
