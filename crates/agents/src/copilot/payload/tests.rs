use super::*;
use serde_json::json;

fn check(event: &str, fields: Value, expected: &[&str]) {
    let parsed = parse(Some(event), fields.to_string().as_bytes());
    let said: Vec<String> = parsed
        .observations
        .iter()
        .map(|o| format!("{} {:?} {:?}", o.session.as_deref().unwrap_or("-"), o.thread, o.body))
        .collect();
    assert_eq!(said, expected, "{event} {fields}");
}

#[test]
fn one_spelling_counts() {
    check("agentStop", json!({ "sessionId": "s" }), &[]);
    check(
        "Stop",
        json!({ "session_id": "s" }),
        &["s Main Stopped { final_message: None, can_continue: true, continued: false, live: None }"],
    );
}

#[test]
fn a_childs_event_is_its_parents_work() {
    check(
        "UserPromptSubmit",
        json!({ "session_id": "c", "agent_id": "c", "parent_agent_id": "s", "prompt": "x" }),
        &[r#"s Subagent("c") WorkStarted { id: "c", what: Subagent, label: None, process: None }"#],
    );
    check(
        "Stop",
        json!({ "session_id": "c", "agent_id": "c", "parent_agent_id": "s" }),
        &[r#"s Subagent("c") Displayed { what: "Stop" }"#],
    );
    check(
        "SubagentStop",
        json!({ "session_id": "s", "agent_id": "c", "parent_agent_id": "s" }),
        &[r#"s Subagent("c") WorkFinished { id: "c", cause: Completed }"#],
    );
}

#[test]
fn a_request_for_permission_is_no_wait() {
    check(
        "PermissionRequest",
        json!({ "sessionId": "s" }),
        &[r#"s Main Displayed { what: "PermissionRequest" }"#],
    );
    check(
        "Notification",
        json!({ "sessionId": "s", "notification_type": "permission_prompt" }),
        &[r#"s Main SoftLocked { reason: "permission_prompt", subject: Session }"#],
    );
    check(
        "Notification",
        json!({ "sessionId": "s", "notification_type": "elicitation_dialog" }),
        &[r#"s Main SoftLocked { reason: "elicitation_dialog", subject: ToolNamed("AskUserQuestion") }"#],
    );
}

#[test]
fn print_modes_end_is_per_turn() {
    check(
        "SessionEnd",
        json!({ "session_id": "s", "reason": "complete" }),
        &[r#"s Main Displayed { what: "SessionEnd" }"#],
    );
    check(
        "SessionEnd",
        json!({ "session_id": "s", "reason": "user_exit" }),
        &["s Main SessionEnded { reason: Reported, successor: None }"],
    );
}

#[test]
fn the_agents_own_time_is_kept() {
    for (stamp, expected) in [(json!("1970-01-01T00:00:01Z"), 1000), (json!(1500), 1500)] {
        let payload = json!({ "session_id": "s", "timestamp": stamp });
        let parsed = parse(Some("Stop"), payload.to_string().as_bytes());
        assert_eq!(parsed.observations[0].at, Some(Wall(expected)));
    }
}
