//! The plugin for OpenCode as it is installed, run by node with a hook that writes down what it is told: what it hands over of
//! the recorded sessions is enough to be right, and what it hands over can be read.

#![cfg(unix)]

use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, SystemTime},
};
use tempfile::TempDir;
use watchkeeper_agents::{
    adapter,
    install::{Edit, Instance, Shell, Timeouts, Wiring},
};
use watchkeeper_core::AgentKind;
use watchkeeper_sim::recordings::{Event, EventKind, Recording, Replay, find, judge};

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opencode_plugin/drive.mjs");
/// Waiting for the plugin takes at most this.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where a step says which one it is.
const NUMBER: &str = "recorded";
/// How our own steps are named, which say that those before them were told.
const MARK: &str = "permission.mark-";
/// So many events the plugin keeps until they are told; only beyond that it drops some.
const QUEUE_MAX: usize = 256;

/// What the hook was told in one call.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    event: String,
    payload: Value,
    /// As it came.
    text: String,
}

impl Call {
    fn number(&self) -> Option<u64> {
        let said = self.payload.get("input").unwrap_or(&self.payload);
        said.get(NUMBER)?.as_u64()
    }
}

/// OpenCode with the plugin in it.
struct OpenCode {
    folder: TempDir,
    child: Child,
    input: Option<ChildStdin>,
    /// What it prints.
    lines: Receiver<String>,
    marks: usize,
}

impl OpenCode {
    /// `state`: the folder for payloads, below the test's own unless it is absolute. The hook answers `answers` by event, and
    /// fails on `failing`.
    fn start(surface: &str, state: &str, answers: &[(&str, Value)], failing: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["calls", "answers", "failing", "state"] {
            fs::create_dir(at(name)).expect("a folder");
        }
        for (event, answer) in answers {
            fs::write(at("answers").join(event), answer.to_string()).expect("an answer");
        }
        for event in failing {
            fs::write(at("failing").join(event), "").expect("a mark");
        }
        let hook = at("hook");
        fs::write(&hook, hook_program(folder.path())).expect("a hook");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).expect("a hook");
        let plugin = at("plugin.mjs");
        fs::write(&plugin, plugin_text(&hook, &at(state))).expect("a plugin");
        let mut command = Command::new("node");
        command.arg(DRIVER).arg(plugin).arg(surface).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("node runs (`cargo xtask test tools` installs it)");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = channel();
        // It ends with the output.
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { folder, child, input, lines, marks: 0 }
    }

    fn step(&mut self, step: &Value) {
        let input = self.input.as_mut().expect("it runs");
        writeln!(input, "{step}").expect("it listens");
    }

    fn bus(&mut self, kind: &str, properties: Value) {
        self.step(&json!({ "bus": { "type": kind, "properties": properties } }));
    }

    /// The next thing that it prints.
    fn printed(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("it says something in time and before its end");
        serde_json::from_str(&line).expect("JSON")
    }

    /// All calls so far by their numbers, which are the order of the steps. None may be under way.
    fn calls(&self) -> Vec<Call> {
        let mut calls: Vec<Call> = fs::read_dir(self.folder.path().join("calls"))
            .expect("the calls")
            .map(|entry| entry.expect("a call").path())
            .map(|path| {
                let is_begun = path.extension().is_some_and(|extension| extension == "begun");
                assert!(!is_begun, "a hook ended before it had written what it was told: {}", path.display());
                let text = fs::read_to_string(path).expect("a call in UTF-8");
                let (event, text) = text.split_once('\n').expect("the event and the payload");
                let payload = serde_json::from_str(text).expect("a payload in JSON");
                Call { event: event.to_owned(), payload, text: text.to_owned() }
            })
            .collect();
        calls.sort_by_key(Call::number);
        calls
    }

    /// Waits until the hooks of all steps before this have ended, and for what they were told.
    fn told(&mut self) -> Vec<Call> {
        self.marks += 1;
        let kind = format!("{MARK}{}", self.marks);
        self.step(&json!({ "bus": { "type": kind, "properties": { "sessionID": "mark" } }, "settle": true }));
        let settled = self.printed();
        let mut calls = self.calls();
        assert_eq!(settled, json!({ "settled": calls.len() }), "each hook that was run has told");
        calls.retain(|call| !call.event.starts_with(MARK));
        assert_eq!(settled, json!({ "settled": calls.len() + self.marks }), "each mark once");
        calls
    }

    /// Ends it, which must not take its patience, and nothing of the payloads may stay behind.
    fn end(mut self) {
        drop(self.input.take());
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}");
        let left: Vec<_> = fs::read_dir(self.folder.path().join("state")).expect("its folder").collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for OpenCode {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Writes each call into a file of its own, whole or not at all.
fn hook_program(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "#!/bin/sh\n\
         cd '{folder}' || exit 9\n\
         {{ printf '%s\\n' \"$2\"; cat; }} > \"calls/$$.begun\" && mv \"calls/$$.begun\" \"calls/$$\"\n\
         [ ! -p \"pipe-$2\" ] || cat \"pipe-$2\"\n\
         [ ! -e \"answers/$2\" ] || cat \"answers/$2\"\n\
         [ ! -e \"failing/$2\" ]\n"
    )
}

/// The plugin as the installer writes it.
fn plugin_text(hook: &Path, state: &Path) -> String {
    let wiring = Wiring {
        program: hook.display().to_string(),
        instance: Instance::Default,
        state: state.display().to_string(),
        timeouts: Timeouts::default(),
        shell: Shell::Posix,
        mcp: None,
    };
    let installer = adapter(AgentKind::OpenCode).and_then(|a| a.installer()).expect("an installer");
    let [file] = installer.files else { panic!("one file") };
    match file.install(None, &wiring).expect("it can be written") {
        Edit::Write(text) => text,
        other @ (Edit::Keep | Edit::Delete) => panic!("{other:?}"),
    }
}

/// The step that a recorded event is, under its number; `None` for what OpenCode gives to no plugin.
fn step_of(event: &Event, number: usize) -> Option<Value> {
    let EventKind::Hook { event: name, payload, .. } = &event.kind else { return None };
    let mut data: Value = serde_json::from_slice(payload).ok()?;
    if data.get("type").is_some() {
        data[NUMBER] = json!(number);
        return Some(json!({ "bus": data }));
    }
    data.get("input")?;
    data["input"][NUMBER] = json!(number);
    Some(json!({ "call": name, "input": data["input"], "output": data["output"] }))
}

/// The recording with what the plugin handed over in place of all that it got.
fn through_the_plugin(mut recording: Recording) -> (Recording, usize) {
    let mut opencode = OpenCode::start("server", "state", &[], &[]);
    for (number, event) in recording.events.iter().enumerate() {
        if let Some(step) = step_of(event, number) {
            opencode.step(&step);
        }
    }
    let calls = opencode.told();
    opencode.end();
    let handed = calls.len();
    assert!(handed < QUEUE_MAX, "{}: of {handed} events some may have been dropped", recording.name);
    let mut calls = calls.into_iter().peekable();
    let mut kept = Vec::new();
    for (number, mut event) in recording.events.into_iter().enumerate() {
        if let EventKind::Hook { event: name, payload, .. } = &mut event.kind {
            // All that it told is here, so of any other event it tells nothing.
            let Some(call) = calls.next_if(|call| call.number() == Some(number as u64)) else { continue };
            assert_eq!(call.event, *name);
            *payload = call.text.into_bytes();
        }
        kept.push(event);
    }
    assert_eq!(calls.next(), None, "every call is of a recorded event");
    recording.events = kept;
    (recording, handed)
}

#[test]
fn what_it_hands_over_is_enough() {
    let corpus: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/opencode");
    let found = find(&corpus).expect("the corpus is part of the repository");
    let (mut all, mut handed) = (0, 0);
    for path in &found {
        let recording = Recording::load(path).unwrap_or_else(|e| panic!("{}: {e:#}", path.display()));
        let end = recording.end();
        all += recording.events.iter().filter(|e| matches!(e.kind, EventKind::Hook { .. })).count();
        let (recording, count) = through_the_plugin(recording);
        handed += count;
        let mut replay = Replay::new(&recording).expect("an adapter is built in");
        replay.run(&recording.events, end);
        let judged = judge(&recording, &replay);
        assert!(judged.right(), "{}: {:?} {:?}", recording.name, judged.wrong, judged.violations);
        for names in [&replay.unknown, &replay.malformed] {
            assert!(names.is_empty(), "{}: {names:?}", recording.name);
        }
    }
    println!("{} recordings, {handed} of {all} events handed over", found.len());
    assert!(found.len() >= 20 && handed >= 150 && handed * 2 < all, "{handed} of {all}");
}

#[test]
fn a_cut_text_is_still_text() {
    let mut opencode = OpenCode::start("server", "state", &[], &[]);
    // One unit before the cut stands half of a character; an event may have halves of its own, and words that look like one.
    let long = format!("{}{}", "x".repeat(16383), "😀".repeat(10));
    let step = json!({ "bus": { "type": "session.error", "properties": { "sessionID": "s", "error": { "name": long } } } });
    opencode.step(&step);
    let halves = r#"{"bus":{"type":"question.asked","properties":{"sessionID":"s","a\ud83d":"\ud83d\ud83d\\ud83d \\\udc00"}}}"#;
    writeln!(opencode.input.as_mut().expect("it runs"), "{halves}").expect("it listens");
    let calls = opencode.told();
    let said = |event: &str| {
        let call = calls.iter().find(|call| call.event == event).expect("it is told");
        call.payload["properties"].clone()
    };
    assert_eq!(said("session.error")["error"]["name"].as_str().map(str::len), Some(16383));
    assert_eq!(said("question.asked")["a\u{fffd}"], json!("\u{fffd}\u{fffd}\\ud83d \\\u{fffd}"));
    opencode.end();
}

#[test]
fn without_its_folder_it_tells_by_a_pipe() {
    let mut opencode = OpenCode::start("server", "not there", &[], &[]);
    opencode.bus("question.asked", json!({ "sessionID": "s", "text": "x".repeat(10_000) }));
    let calls = opencode.told();
    assert_eq!(calls[0].payload["properties"]["text"].as_str().map(str::len), Some(10_000));
    opencode.end();
}

#[test]
fn what_a_killed_opencode_left_behind_goes_when_it_is_old() {
    let state = tempfile::tempdir().expect("a folder");
    let [old, young] = ["4bd9c6fc-0c6a-4b4c-9d1a-6f2f1f0f9a01", "4bd9c6fc-0c6a-4b4c-9d1a-6f2f1f0f9a02"];
    let stray = format!(".opencode-77-{old}");
    let stay = [
        format!(".opencode-77-{young}"),
        format!(".opencode-{old}"),
        format!(".opencode-77-{old}.bak"),
        format!("x.opencode-77-{old}"),
        ".opencode-77".to_owned(),
        "journal".to_owned(),
    ];
    let hours_ago = SystemTime::now() - Duration::from_hours(2);
    for name in &stay {
        let file = fs::File::create(state.path().join(name)).expect("a file");
        if *name != stay[0] {
            file.set_modified(hours_ago).expect("its age");
        }
    }
    let folder = format!(".opencode-78-{old}");
    fs::create_dir(state.path().join(&folder)).expect("a folder");
    fs::File::open(state.path().join(&folder)).and_then(|f| f.set_modified(hours_ago)).expect("its age");
    for surface in ["server", "setup"] {
        fs::File::create(state.path().join(&stray))
            .and_then(|f| f.set_modified(hours_ago))
            .expect("what was left behind");
        let mut opencode = OpenCode::start(surface, state.path().to_str().expect("text"), &[], &[]);
        assert_eq!(opencode.told(), []);
        // What it began is done then.
        opencode.end();
        let entries = fs::read_dir(state.path()).expect("the folder");
        let left: BTreeSet<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in text"))
            .collect();
        assert_eq!(left, stay.iter().chain([&folder]).cloned().collect(), "{surface}");
    }
}

#[test]
fn answers_are_carried_out() {
    // More than a pipe holds, so that it comes in pieces, and these end within characters.
    let words = "😀".repeat(20_000);
    let answers = [
        ("permission.asked", json!({ "permission": "once" })),
        ("session.status", json!({ "prompt": words })),
    ];
    let mut opencode = OpenCode::start("server", "state", &answers, &[]);
    opencode.bus("permission.asked", json!({ "sessionID": "s", "id": "p" }));
    let permission = opencode.printed();
    assert_eq!(permission["permission"]["path"], json!({ "id": "s", "permissionID": "p" }));
    assert_eq!(permission["permission"]["body"], json!({ "response": "once" }));
    opencode.bus("session.status", json!({ "sessionID": "s", "status": { "type": "idle" } }));
    let prompt = opencode.printed();
    assert_eq!(prompt["prompt"]["body"]["parts"][0]["text"], json!(words));
    assert!(opencode.told().iter().all(|call| call.payload.get("unanswerable").is_none()));
    opencode.end();
}

#[test]
fn where_nothing_can_be_answered_nobody_is_asked() {
    let mut opencode =
        OpenCode::start("setup", "state", &[("permission.asked", json!({ "permission": "once" }))], &[]);
    opencode.bus("permission.asked", json!({ "sessionID": "s", "id": "p" }));
    opencode.bus("session.status", json!({ "sessionID": "s", "status": { "type": "idle" } }));
    opencode.bus("session.execution.succeeded", json!({ "sessionID": "s" }));
    opencode.bus("permission.replied", json!({ "sessionID": "s", "requestID": "p" }));
    let calls = opencode.told();
    let adapter = adapter(AgentKind::OpenCode).expect("it is built in");
    assert_eq!(calls.len(), 4);
    for call in calls {
        assert_eq!(
            call.payload.get("unanswerable").is_some(),
            call.event != "permission.replied",
            "{call:?}"
        );
        let parsed = adapter.payload(Some(&call.event), &[], call.text.as_bytes());
        assert_eq!((parsed.question, parsed.malformed), (None, None), "{call:?}");
    }
    opencode.end();
}

/// Lets what reads this pipe go on, as soon as it does.
fn open(pipe: PathBuf) {
    let (sender, opened) = channel();
    // Without a reader this never ends; it goes with the test.
    thread::spawn(move || sender.send(fs::OpenOptions::new().write(true).open(pipe).map(drop)));
    opened.recv_timeout(PATIENCE).expect("its reader is there in time").expect("a pipe");
}

#[test]
fn a_prompt_waits_for_no_portrait_of_its_session() {
    let mut opencode = OpenCode::start("server", "state", &[], &[]);
    // The hooks of the first event and of the prompt, and OpenCode, which is busy with itself then: until each one's pipe is opened.
    let pipes =
        ["pipe-session.created", "busy", "pipe-chat.message"].map(|name| opencode.folder.path().join(name));
    assert!(Command::new("mkfifo").args(&pipes).status().expect("mkfifo runs").success());
    let [created, busy, prompt] = pipes;
    opencode.bus("session.created", json!({ "sessionID": "s", "info": { "id": "s" } }));
    opencode.bus("session.updated", json!({ "sessionID": "s", "info": { "id": "s", "title": "t" } }));
    opencode.step(&json!({ "call": "chat.message", "input": { "sessionID": "s" }, "output": {} }));
    opencode.step(&json!({ "busy": busy }));
    open(prompt);
    open(busy);
    open(created);
    assert!(opencode.told().iter().any(|call| call.event == "session.updated"));
    opencode.end();
}

/// How often a status is told of these steps.
fn statuses(failing: &[&str], steps: &[Value]) -> usize {
    let mut opencode = OpenCode::start("server", "state", &[], failing);
    for step in steps {
        opencode.step(&json!({ "bus": step }));
        // The hook must have ended before the next one, or its failure comes too late.
        opencode.told();
    }
    let count = opencode.told().iter().filter(|call| call.event == "session.status").count();
    opencode.end();
    count
}

#[test]
fn a_status_is_told_once_unless_it_got_lost() {
    let busy =
        json!({ "type": "session.status", "properties": { "sessionID": "s", "status": { "type": "busy" } } });
    let other =
        json!({ "type": "session.status", "properties": { "sessionID": "t", "status": { "type": "busy" } } });
    let error =
        json!({ "type": "session.error", "properties": { "sessionID": "s", "error": { "name": "x" } } });
    let idle = json!({ "type": "session.idle", "properties": { "sessionID": "s" } });
    let twice = [busy.clone(), busy.clone()];
    assert_eq!(statuses(&[], &twice), 1);
    assert_eq!(statuses(&["session.status"], &twice), 2);
    assert_eq!(statuses(&[], &[busy.clone(), other, busy.clone()]), 2);
    assert_eq!(statuses(&[], &[busy.clone(), error, busy.clone()]), 2);
    assert_eq!(statuses(&[], &[busy.clone(), idle, busy]), 2);
}
