use super::*;
use serde_json::json;

fn check(event: &str, fields: Value, expected: &[&str]) {
    let mut payload = json!({ "session_id": "s", "turn_id": "t", "hook_event_name": event });
    if let (Some(all), Value::Object(fields)) = (payload.as_object_mut(), fields) {
        all.extend(fields);
    }
    let parsed = parse(None, &[], payload.to_string().as_bytes());
    let said: Vec<String> =
        parsed.observations.iter().map(|o| format!("{:?} {:?}", o.thread, o.body)).collect();
    assert_eq!(said, expected, "{payload}");
}

#[test]
fn a_question_is_a_tool_call() {
    check(
        "PreToolUse",
        json!({ "tool_name": "request_user_input", "tool_use_id": "c" }),
        &[
            r#"Main ToolStarted { id: "c", name: "request_user_input" }"#,
            r#"Main SoftLocked { reason: "question", subject: Tool("c") }"#,
        ],
    );
    check(
        "PreToolUse",
        json!({ "tool_name": "Bash", "tool_use_id": "c" }),
        &[r#"Main ToolStarted { id: "c", name: "Bash" }"#],
    );
}

#[test]
fn an_interrupt_leaves_commands_running() {
    check("Interrupt", json!({}), &["Main Aborted { tools_to_work: true, call: None }"]);
}

#[test]
fn a_subagents_prompt_is_work() {
    check(
        "UserPromptSubmit",
        json!({ "agent_id": "a", "agent_type": "default", "prompt": "x" }),
        &[r#"Subagent("a") WorkStarted { id: "a", what: Subagent, label: Some("default"), process: None }"#],
    );
    check("Stop", json!({ "agent_id": "a" }), &[r#"Subagent("a") Displayed { what: "Stop of a subagent" }"#]);
    check(
        "SubagentStop",
        json!({ "agent_id": "a" }),
        &[r#"Subagent("a") WorkFinished { id: "a", cause: Completed }"#],
    );
}

/// Following it instead of the session's own, nothing more would be heard of the session.
#[test]
fn a_subagents_rollout_is_not_the_sessions() {
    let followed = |fields: Value| {
        let mut payload =
            json!({ "session_id": "s", "hook_event_name": "PreToolUse", "transcript_path": "/r.jsonl" });
        if let (Some(all), Value::Object(fields)) = (payload.as_object_mut(), fields) {
            all.extend(fields);
        }
        let parsed = parse(None, &[], payload.to_string().as_bytes());
        parsed.observations.into_iter().find_map(|o| o.facts.transcript)
    };
    let call = json!({ "tool_name": "Bash", "tool_use_id": "c" });
    assert_eq!(followed(call.clone()).as_deref(), Some("/r.jsonl"));
    let mut of_subagent = call;
    of_subagent["agent_id"] = json!("a");
    assert_eq!(followed(of_subagent), None);
}

#[test]
fn the_legacy_notice_ends_exec() {
    let notice = |client: &str| {
        let argument =
            json!({ "type": "agent-turn-complete", "thread-id": "s", "turn-id": "t", "client": client });
        let parsed = parse(Some("notify-legacy"), &[argument.to_string().as_bytes()], b"");
        parsed.observations.iter().map(|o| format!("{:?}", o.body)).collect::<Vec<_>>()
    };
    let stopped = "Stopped { final_message: None, can_continue: false, continued: false, live: None }";
    assert_eq!(notice("codex-tui"), [stopped]);
    assert_eq!(notice("codex_exec"), [stopped, "SessionEnded { reason: Reported, successor: None }"]);
}
