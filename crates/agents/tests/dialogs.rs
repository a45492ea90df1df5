//! Whatever an agent asks its person is a wait, whichever tool it is about and whichever of its signals tells of it.

use serde_json::{Value, json};
use watchkeeper_agents::adapter;
use watchkeeper_core::{
    AgentKind, SignalBody,
    signal::{AgentState, LockSubject},
};

/// What a hook of this agent says.
fn said(agent: AgentKind, event: &str, payload: &Value) -> Vec<SignalBody> {
    let adapter = adapter(agent).expect("an adapter is built in");
    let parsed = adapter.payload(Some(event), &[], payload.to_string().as_bytes());
    assert_eq!(parsed.malformed, None, "{agent} {event} {payload}");
    parsed.observations.into_iter().map(|o| o.body).collect()
}

fn waits(bodies: &[SignalBody]) -> bool {
    bodies.iter().any(|body| matches!(body, SignalBody::SoftLocked { .. }))
}

/// Names of tools: the agent's own, a server's, one that no version has yet, and none.
const TOOLS: [Option<&str>; 12] = [
    Some("Bash"),
    Some("Edit"),
    Some("Write"),
    Some("WebFetch"),
    Some("Agent"),
    Some("Skill"),
    Some("run_shell_command"),
    Some("apply_patch"),
    Some("mcp__server__tool"),
    Some("BrandNew"),
    Some(""),
    None,
];

#[test]
fn a_permission_for_any_tool_is_a_wait() {
    for name in TOOLS {
        for agent in [AgentKind::Claude, AgentKind::Codex, AgentKind::Qwen] {
            let mut payload = json!({ "session_id": "s", "hook_event_name": "PermissionRequest" });
            if let Some(name) = name {
                payload["tool_name"] = name.into();
            }
            let bodies = said(agent, "PermissionRequest", &payload);
            let subject = LockSubject::ToolNamed(name.unwrap_or_default().to_owned());
            let expected = SignalBody::SoftLocked { reason: "permission_prompt".to_owned(), subject };
            assert!(bodies.contains(&expected), "{agent} {name:?}: {bodies:?}");
        }
        let kind = name.unwrap_or_default();
        let gemini = json!({
            "session_id": "s", "notification_type": "ToolPermission", "details": { "type": kind },
        });
        assert!(waits(&said(AgentKind::Gemini, "Notification", &gemini)), "{kind}");
        let opencode = json!({ "properties": { "sessionID": "s", "id": "q", "permission": kind } });
        for event in ["permission.asked", "permission.v2.asked"] {
            assert!(waits(&said(AgentKind::OpenCode, event, &opencode)), "{event} {kind}");
        }
        let copilot =
            json!({ "session_id": "s", "notification_type": "permission_prompt", "tool_name": kind });
        assert!(waits(&said(AgentKind::Copilot, "Notification", &copilot)), "{kind}");
    }
}

#[test]
fn each_of_claudes_three_signals_tells_of_a_permission_alone() {
    let request = json!({ "session_id": "s", "tool_name": "Bash" });
    assert!(waits(&said(AgentKind::Claude, "PermissionRequest", &request)));
    let notice = json!({ "session_id": "s", "notification_type": "permission_prompt" });
    assert!(waits(&said(AgentKind::Claude, "Notification", &notice)));
    // Its own state file, wherever the home of that system is.
    let claude = adapter(AgentKind::Claude).expect("an adapter is built in");
    for (transcript, folder) in [
        ("/home/dev/.claude/projects/-p/s.jsonl", "/home/dev/.claude/sessions"),
        ("C:\\Users\\dev\\.claude\\projects\\p\\s.jsonl", "C:\\Users\\dev\\.claude\\sessions"),
    ] {
        assert_eq!(claude.state_dirs(transcript), [folder]);
    }
    let content = json!({
        "pid": 7, "procStart": "99", "sessionId": "s", "status": "waiting", "waitingFor": "permission prompt",
    });
    let stated = claude.state_file("7.json", Some(content.to_string().as_bytes())).expect("it is one");
    let waiting = SignalBody::AgentStated {
        state: AgentState::Waiting,
        waiting_for: Some("permission prompt".to_owned()),
    };
    assert_eq!(stated.observation.body, waiting);
}
