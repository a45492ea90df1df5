//! Another user of the machine at the doors. Needs root, to become that user; without it the test fails.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

#[path = "daemon/rig.rs"]
mod rig;

use std::{
    fs::{Permissions, set_permissions},
    io::Write as _,
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

use rig::{Daemon, frame, payload, tell, until};

/// The user `nobody` of Debian and most others.
const NOBODY: u32 = 65_534;

/// Says what comes on standard input, and prints how much the other side said before it closed.
const CALLER: &str = "
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(30); s.connect(sys.argv[1])
got = 0
try:
    s.sendall(sys.stdin.buffer.read())
    while chunk := s.recv(4096): got += len(chunk)
except (BrokenPipeError, ConnectionResetError): pass
print(got)
";

/// Calls as `nobody`; returns how many bytes were answered.
fn call_as_nobody(socket: &Path, words: &[u8]) -> String {
    let mut caller = Command::new("/usr/bin/python3")
        .args(["-c", CALLER])
        .arg(socket)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    caller.stdin.take().unwrap().write_all(words).unwrap();
    let output = caller.wait_with_output().unwrap();
    assert!(output.status.success(), "it reached the socket");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn it_is_let_in_nowhere_even_where_the_files_would_allow_it() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let place = &daemon.place;
    for folder in [home.path(), &place.run] {
        set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    let hook = frame(1, "UserPromptSubmit", &payload("theirs", "UserPromptSubmit", json!({ "prompt": "x" })));
    let hello = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1,"client":"x"}}"#;
    let doors = [
        (place.hook_socket(), &hook[..], "hook.stranger"),
        (place.api_socket(), &[&hello[..], b"\n"].concat(), "api.stranger"),
    ];
    for (socket, words, counter) in doors {
        set_permissions(&socket, Permissions::from_mode(0o666)).unwrap();
        assert_eq!(call_as_nobody(&socket, words), "0", "{counter}: nothing is said to a stranger");
        until(counter, || (daemon.counter(counter) == 1).then_some(()));
    }
    assert_eq!(daemon.state_of("theirs"), None);
    tell(&daemon, 2, "ours", "UserPromptSubmit", json!({ "prompt": "y", "prompt_id": "t" }));
    assert_eq!(daemon.state_of("ours"), Some("working"));
    daemon.stop();
}

/// Both are there, and both notices come in this order, before the state is asked for.
#[test]
fn their_transcript_says_nothing_of_our_session() {
    let home = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(home.path());
    let at = |id: &str| home.path().join(format!("{id}.jsonl"));
    for (delivery, id) in [(1, "a"), (2, "b")] {
        let path = at(id).to_str().map(str::to_owned);
        let more = json!({ "prompt": "x", "prompt_id": "t", "transcript_path": path });
        tell(&daemon, delivery, id, "UserPromptSubmit", more);
        assert_eq!(daemon.state_of(id), Some("working"));
    }
    let now = watchkeeper_api::Time(watchkeeper_os::clock::now().wall).to_string();
    for id in ["a", "b"] {
        let words = json!([{ "type": "text", "text": "[Request interrupted by user]" }]);
        let message = json!({ "role": "user", "content": words });
        let record =
            json!({ "type": "user", "uuid": "u", "sessionId": id, "timestamp": now, "message": message });
        let aside = home.path().join(id);
        std::fs::write(&aside, format!("{record}\n")).unwrap();
        if id == "a" {
            chown(&aside, Some(NOBODY), None).unwrap();
        }
        std::fs::rename(aside, at(id)).unwrap();
    }
    until("ours is read", || (daemon.state_of("b") == Some("idle")).then_some(()));
    assert_eq!(daemon.state_of("a"), Some("working"));
    chown(at("a"), Some(0), None).unwrap();
    until("it is ours", || (daemon.state_of("a") == Some("idle")).then_some(()));
    daemon.stop();
}
