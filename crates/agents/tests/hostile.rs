//! Whatever an agent, or something that pretends to be one, sends: every adapter gives bounded observations or passes
//! it over, and never panics.

use proptest::prelude::*;
use watchkeeper_agents::{Adapter, LineScanner, Parsed, adapter};
use watchkeeper_core::AgentKind;

fn adapters() -> Vec<&'static dyn Adapter> {
    AgentKind::ALL.into_iter().filter_map(adapter).collect()
}

/// No payload says more than this.
const OBSERVATIONS_MAX: usize = 2 * 4096 + 2;

fn check(event: Option<&str>, payload: &[u8]) {
    for adapter in adapters() {
        let parsed = adapter.payload(event, &[payload], payload);
        assert!(parsed.observations.len() <= OBSERVATIONS_MAX);
        assert!(parsed.unknown.len() <= 16 && parsed.unknown.iter().all(|name| name.len() <= 64));
        assert!(parsed.malformed.is_none() || parsed.observations.is_empty());
        assert!(parsed.work_pids.len() <= parsed.observations.len());
        for observation in &parsed.observations {
            assert!(observation.session.as_ref().is_some_and(|id| !id.is_empty() && id.len() <= 256));
        }
        check_transcript(adapter, payload);
        for name in ["1.json", "state.json", "inuse.1.lock", ""] {
            let _ = adapter.state_file(name, Some(payload));
        }
    }
}

fn check_transcript(adapter: &dyn Adapter, bytes: &[u8]) {
    let Some(mut reader) = adapter.transcript("s", None) else { return };
    let mut parsed = Parsed::default();
    let mut scanner = LineScanner::new();
    scanner.push(bytes, reader.as_mut(), &mut parsed);
    scanner.push(b"\n", reader.as_mut(), &mut parsed);
    let saved = reader.save();
    let again = adapter.transcript("s", Some(&saved)).expect("it was there before");
    assert_eq!(again.save(), saved, "what is saved comes back");
}

const EVENTS: [&str; 26] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolBatch",
    "Notification",
    "Stop",
    "SubagentStop",
    "SessionEnd",
    "agentStop",
    "BeforeAgent",
    "AfterAgent",
    "AfterTool",
    "PostToolUseFailure",
    "session.created",
    "session.updated",
    "session.status",
    "session.idle",
    "session.error",
    "chat.message",
    "tool.execute.after",
    "message.part.updated",
    "permission.asked",
    "question.rejected",
    "NeverHeardOf",
];

/// Fields that some event has, with values of every kind.
fn field() -> impl Strategy<Value = (String, serde_json::Value)> {
    let names = prop::sample::select(vec![
        "session_id",
        "sessionId",
        "prompt_id",
        "turn_id",
        "agent_id",
        "agentId",
        "parent_agent_id",
        "tool_name",
        "tool_use_id",
        "tool_input",
        "tool_response",
        "tool_calls",
        "background_tasks",
        "session_crons",
        "reason",
        "source",
        "prompt",
        "notification_type",
        "timestamp",
        "type",
        "payload",
        "message",
        "content",
        "data",
        "toolUseResult",
        "thread-id",
        "client",
        "item",
        "id",
        "call_id",
        "output",
        "status",
        "kind",
        "pid",
        "properties",
        "sessionID",
        "info",
        "parentID",
        "input",
        "tool",
        "callID",
        "part",
        "parts",
        "state",
        "error",
        "details",
    ]);
    (names.prop_map(str::to_owned), value())
}

/// Names of fields below the outermost object: those that adapters look at, and others.
fn inner_name() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "sessionID",
        "id",
        "info",
        "parentID",
        "title",
        "type",
        "text",
        "message",
        "parts",
        "part",
        "state",
        "status",
        "functionResponse",
        "response",
        "error",
        "llmContent",
        "output",
        "input",
        "callID",
        "tool",
        "name",
        "content",
        "data",
    ]);
    prop_oneof![known.prop_map(str::to_owned), "[a-z_]{1,12}"]
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[a-z<>/ -]{0,40}".prop_map(Into::into),
        prop::sample::select(vec![
            "<task-notification><task-id>b</task-id><status>completed</status></task-notification>",
            "Process running with session ID 7",
            "<subagent_notification>{\"agent_path\":\"x\",\"status\":\"done\"}",
            "<shellId: 0 completed with exit code 0>",
            "<task id=\"c\" state=\"running\">",
            "Command moved to background (PID: 7).",
            "Background shell started.\nid: b\npid: 7",
            "[Operation Cancelled] Reason: x",
            "notification",
            "tool_result",
            "gemini",
            "2026-11-30T08:08:48.698Z",
            "function_call",
            "item_completed",
            "user",
            "assistant",
            "event_msg",
            "response_item",
        ])
        .prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((inner_name(), inner), 0..4)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600), event in prop::option::of(prop::sample::select(&EVENTS[..]))) {
        check(event, &bytes);
    }

    #[test]
    fn any_fields(fields in prop::collection::vec(field(), 0..12), event in prop::sample::select(&EVENTS[..])) {
        let object: serde_json::Map<String, serde_json::Value> = fields.into_iter().collect();
        check(Some(event), serde_json::Value::Object(object).to_string().as_bytes());
    }
}

#[test]
fn large_and_deep() {
    let huge =
        format!("{{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"x\":\"{}\"}}", "y".repeat(20 << 20));
    check(None, huge.as_bytes());
    check(None, "{\"a\":".repeat(100_000).as_bytes());
    check(None, format!("{{\"session_id\":\"s\",\"tool_calls\":[{}]}}", "{},".repeat(1 << 20)).as_bytes());
    check(Some("Stop"), b"");
    check(None, b"\0\0\0\0");
    let calls = r#"{"tool_use_id":"t","tool_name":"x"},"#.repeat(100_000);
    let many = format!("{{\"session_id\":\"s\",\"tool_calls\":[{calls}{{}}]}}");
    check(Some("PostToolBatch"), many.as_bytes());
}

#[test]
fn an_id_is_printable_and_short() {
    for id in ["a\\u0000b", "\\n", &"x".repeat(257), ""] {
        let session = format!("\"session_id\":\"{id}\",\"properties\":{{\"sessionID\":\"{id}\"}}");
        let payload = format!("{{{session},\"hook_event_name\":\"Stop\"}}");
        for adapter in adapters() {
            let event = if adapter.kind() == AgentKind::OpenCode { "session.idle" } else { "Stop" };
            let parsed = adapter.payload(Some(event), &[], payload.as_bytes());
            assert!(parsed.observations.is_empty() && parsed.malformed.is_some(), "{id}");
        }
    }
}
