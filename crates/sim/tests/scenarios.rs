//! Turns of events that the corpus has not, written down by hand from what the agents are known to send.

use serde_json::{Value, json};
use watchkeeper_agents::ancestry::ProcessInfo;
use watchkeeper_core::{AgentKind, Wall};
use watchkeeper_sim::recordings::{Event, EventKind, Recording, Replay};

/// 2026-01-01T00:00:00Z.
const ZERO: i64 = 1_767_225_600_000;

fn time(t: f64) -> String {
    format!("2026-01-01T00:00:{t:06.3}Z")
}

/// A hook of a session, sent by the agent process `pid`.
fn hook(t: f64, event: &str, session: &str, pid: u32, exe: &str, mut fields: Value) -> Event {
    if let Some(fields) = fields.as_object_mut() {
        fields.entry("session_id").or_insert(session.into());
        fields.entry("hook_event_name").or_insert(event.into());
    }
    let process = |pid, ppid, exe: &str| ProcessInfo {
        pid,
        ppid,
        start: u64::from(pid),
        exe: exe.to_owned(),
        comm: String::new(),
        argv: Vec::new(),
    };
    let ancestry = vec![process(pid + 1, pid, "/usr/bin/watchkeeper-hook"), process(pid, 1, exe)];
    let payload = fields.to_string().into_bytes();
    let (event, argv) = (event.to_owned(), Vec::new());
    let kind = EventKind::Hook { begun: t, delivery: 0, event, argv, payload, ancestry, answered: false };
    Event { t, kind }
}

fn append(t: f64, path: &str, line: &Value) -> Event {
    let append = format!("{line}\n").into_bytes();
    Event { t, kind: EventKind::Transcript { path: path.to_owned(), append } }
}

fn exit(t: f64, pid: u32) -> Event {
    Event { t, kind: EventKind::Exit { pid } }
}

/// States expected at moments: (seconds, session, state); `-` for a session nobody knows.
fn check(agent: AgentKind, events: &[Event], expected: &[(f64, &str, &str)]) {
    let recording = Recording {
        name: "by/hand".to_owned(),
        folder: "by".to_owned(),
        agent,
        agent_version: String::new(),
        sessions: Vec::new(),
        wall_zero: Wall(ZERO),
        events: Vec::new(),
        labels: Vec::new(),
        protects_at_end: false,
    };
    let mut replay = Replay::new(&recording).expect("an adapter is built in");
    let mut events = events.iter().peekable();
    for (t, session, state) in expected {
        while let Some(event) = events.next_if(|e| e.t <= *t) {
            replay.event(event);
        }
        replay.advance(*t);
        let sessions = replay.core().sessions();
        let shown = sessions.iter().find(|s| s.key.id == *session).map_or("-", |s| s.state.name());
        assert_eq!(shown, *state, "{session} at {t}");
    }
    assert!(replay.violations.is_empty(), "{:?}", replay.violations);
    assert!(
        replay.malformed.is_empty() && replay.unknown.is_empty(),
        "{:?} {:?}",
        replay.malformed,
        replay.unknown
    );
}

const CLAUDE: &str = "/opt/claude/claude";
const CODEX: &str = "/opt/codex/codex";
const COPILOT: &str = "/opt/copilot/copilot";

fn claude(t: f64, event: &str, session: &str, pid: u32, mut fields: Value) -> Event {
    if let Some(fields) = fields.as_object_mut() {
        let path = format!("/h/.claude/projects/w/{session}.jsonl");
        fields.entry("transcript_path").or_insert(path.into());
        if event != "SessionStart" {
            fields.entry("prompt_id").or_insert(format!("{session}-1").into());
        }
    }
    hook(t, event, session, pid, CLAUDE, fields)
}

/// Claude's registry of live sessions.
fn registry(t: f64, session: &str, pid: u32, status: &str, waiting_for: Option<&str>) -> Event {
    #[expect(clippy::cast_possible_truncation, reason = "a few seconds")]
    let at = ZERO + (t * 1000.0) as i64;
    let content = json!({
        "pid": pid, "procStart": pid.to_string(), "sessionId": session, "status": status,
        "waitingFor": waiting_for, "statusUpdatedAt": at, "entrypoint": "cli",
    });
    let content = Some(content.to_string().into_bytes());
    Event { t, kind: EventKind::Registry { path: format!("/h/.claude/sessions/{pid}.json"), content } }
}

#[test]
fn claude_moves_to_the_background_with_its_shell() {
    let shell = json!({ "background_tasks": [{ "id": "b", "type": "shell", "status": "running" }] });
    let path = "/h/.claude/projects/w/old.jsonl";
    let end = "<task-notification><task-id>b</task-id><status>completed</status></task-notification>";
    check(
        AgentKind::Claude,
        &[
            claude(1.0, "SessionStart", "old", 100, json!({ "source": "startup" })),
            claude(2.0, "UserPromptSubmit", "old", 100, json!({ "prompt": "x" })),
            append(2.1, path, &json!({ "type": "mode", "sessionId": "old" })),
            claude(4.0, "Stop", "old", 100, shell),
            // The exit dialog is on the screen; the person moves the session to the background.
            registry(6.0, "old", 100, "waiting", Some("dialog open")),
            claude(8.0, "SessionEnd", "old", 100, json!({ "reason": "prompt_input_exit" })),
            append(
                8.1,
                path,
                &json!({ "type": "continued-in", "continuedInSessionId": "new", "sessionId": "old" }),
            ),
            exit(8.3, 100),
            claude(9.0, "SessionStart", "new", 300, json!({ "source": "fork" })),
            claude(15.0, "UserPromptSubmit", "new", 300, json!({ "prompt": end })),
            claude(16.0, "Stop", "new", 300, json!({ "background_tasks": [] })),
        ],
        &[
            (1.5, "old", "idle"),
            (3.0, "old", "working"),
            (7.0, "old", "background"),
            (8.4, "old", "ended"),
            (10.0, "new", "background"),
            (15.5, "new", "working"),
            (17.0, "new", "idle"),
        ],
    );
}

#[test]
fn claude_is_interrupted_before_the_first_byte() {
    check(
        AgentKind::Claude,
        &[
            claude(1.0, "SessionStart", "s", 100, json!({ "source": "startup" })),
            claude(2.0, "UserPromptSubmit", "s", 100, json!({ "prompt": "x" })),
            registry(2.2, "s", 100, "busy", None),
            registry(4.0, "s", 100, "idle", None),
        ],
        &[(3.0, "s", "working"), (4.1, "s", "idle")],
    );
}

#[test]
fn a_stale_registry_file_says_nothing() {
    let mut stale = registry(4.0, "s", 100, "idle", None);
    let EventKind::Registry { content: Some(content), .. } = &mut stale.kind else { panic!("made above") };
    *content = String::from_utf8_lossy(content)
        .replace("\"procStart\":\"100\"", "\"procStart\":\"99\"")
        .into_bytes();
    check(
        AgentKind::Claude,
        &[claude(2.0, "UserPromptSubmit", "s", 100, json!({ "prompt": "x" })), stale],
        &[(5.0, "s", "working")],
    );
}

#[test]
fn claudes_subagent_asks_behind_the_turn() {
    let agent = json!([{ "id": "a", "type": "subagent", "status": "running" }]);
    let asks = json!({ "agent_id": "a", "tool_name": "Bash" });
    let call = json!({ "agent_id": "a", "tool_name": "Bash", "tool_use_id": "t" });
    check(
        AgentKind::Claude,
        &[
            claude(1.0, "UserPromptSubmit", "s", 100, json!({ "prompt": "x" })),
            claude(1.5, "SubagentStart", "s", 100, json!({ "agent_id": "a" })),
            claude(2.0, "Stop", "s", 100, json!({ "background_tasks": agent })),
            claude(3.0, "PreToolUse", "s", 100, call.clone()),
            claude(3.1, "PermissionRequest", "s", 100, asks),
            claude(6.0, "PostToolUse", "s", 100, call),
            claude(8.0, "SubagentStop", "s", 100, json!({ "agent_id": "a", "background_tasks": agent })),
        ],
        &[
            (2.5, "s", "background"),
            (4.0, "s", "waiting"),
            (7.0, "s", "background"),
            // It may still wake the model by itself, then it is over.
            (9.0, "s", "background"),
            (19.0, "s", "idle"),
        ],
    );
}

#[test]
fn a_schedule_keeps_nothing_awake() {
    let crons = json!({ "background_tasks": [], "session_crons": [{ "id": "c", "schedule": "0 9 * * *" }] });
    check(
        AgentKind::Claude,
        &[
            claude(1.0, "UserPromptSubmit", "s", 100, json!({ "prompt": "x" })),
            claude(2.0, "Stop", "s", 100, crons),
        ],
        &[(1.5, "s", "working"), (3.0, "s", "idle")],
    );
}

#[test]
fn a_prompt_is_refused_in_print_mode_without_a_wait() {
    check(
        AgentKind::Claude,
        &[
            claude(1.0, "UserPromptSubmit", "s", 100, json!({ "prompt": "x" })),
            append(
                1.1,
                "/h/.claude/projects/w/s.jsonl",
                &json!({
                    "type": "user", "promptId": "s-1", "timestamp": time(1.05), "entrypoint": "sdk-cli",
                    "sessionId": "s", "message": { "role": "user", "content": "x" },
                }),
            ),
            claude(2.0, "PermissionRequest", "s", 100, json!({ "tool_name": "Bash" })),
        ],
        &[(3.0, "s", "working")],
    );
}

#[test]
fn codex_is_denied_and_the_command_never_began() {
    let turn = |mut fields: Value| {
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("turn_id".to_owned(), "t1".into());
        }
        fields
    };
    let call = turn(json!({ "tool_name": "Bash", "tool_use_id": "c" }));
    let codex = |t, event, fields| hook(t, event, "s", 100, CODEX, fields);
    check(
        AgentKind::Codex,
        &[
            codex(1.0, "UserPromptSubmit", turn(json!({ "prompt": "x" }))),
            codex(2.0, "PreToolUse", call),
            codex(2.1, "PermissionRequest", turn(json!({ "tool_name": "Bash" }))),
            codex(6.0, "Interrupt", turn(json!({}))),
        ],
        &[(1.5, "s", "working"), (3.0, "s", "waiting"), (7.0, "s", "idle")],
    );
}

#[test]
fn copilots_subagent_asks() {
    let copilot = |t, event, fields| hook(t, event, "s", 100, COPILOT, fields);
    let path = "/h/.copilot/session-state/s/events.jsonl";
    let record = |t: f64, kind: &str, data: Value| {
        append(t, path, &json!({ "type": kind, "data": data, "timestamp": time(t), "agentId": "a" }))
    };
    check(
        AgentKind::Copilot,
        &[
            append(0.5, path, &json!({ "type": "session.start", "data": {}, "timestamp": time(0.5) })),
            copilot(1.0, "UserPromptSubmit", json!({ "prompt": "x" })),
            record(1.5, "subagent.started", json!({})),
            copilot(2.0, "Stop", json!({})),
            record(3.0, "permission.requested", json!({ "requestId": "r" })),
            record(
                5.0,
                "permission.completed",
                json!({ "requestId": "r", "result": { "kind": "approved" } }),
            ),
            record(7.0, "subagent.completed", json!({})),
            copilot(7.5, "UserPromptSubmit", json!({ "prompt": "<system_notification>\nidle" })),
            copilot(8.0, "Stop", json!({})),
        ],
        &[
            (1.2, "s", "working"),
            (2.5, "s", "background"),
            (4.0, "s", "waiting"),
            (6.0, "s", "background"),
            (7.7, "s", "working"),
            (9.0, "s", "idle"),
        ],
    );
}

#[test]
fn copilots_request_fails_for_good() {
    let copilot = |t, event, fields| hook(t, event, "s", 100, COPILOT, fields);
    let path = "/h/.copilot/session-state/s/events.jsonl";
    check(
        AgentKind::Copilot,
        &[
            append(0.5, path, &json!({ "type": "session.start", "data": {}, "timestamp": time(0.5) })),
            copilot(1.0, "UserPromptSubmit", json!({ "prompt": "x" })),
            copilot(2.0, "ErrorOccurred", json!({ "recoverable": true })),
            append(
                4.0,
                path,
                &json!({ "type": "session.error", "data": { "message": "400" }, "timestamp": time(4.0) }),
            ),
        ],
        &[(3.0, "s", "working"), (4.5, "s", "idle")],
    );
}
