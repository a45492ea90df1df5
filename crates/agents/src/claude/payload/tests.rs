use super::*;
use serde_json::json;

/// What an event says, besides the session, as short words.
fn check(event: &str, fields: Value, expected: &[&str]) {
    let mut payload = json!({ "session_id": "s", "prompt_id": "p", "hook_event_name": event });
    if let (Some(all), Value::Object(fields)) = (payload.as_object_mut(), fields) {
        all.extend(fields);
    }
    let parsed = parse(None, payload.to_string().as_bytes());
    let said: Vec<String> =
        parsed.observations.iter().map(|o| format!("{:?} {:?}", o.thread, o.body)).collect();
    assert_eq!(said, expected, "{payload}");
}

/// The permission request that follows may be lost.
#[test]
fn a_call_that_asks_a_person_waits() {
    let call = |name: &str| json!({ "tool_name": name, "tool_use_id": "c" });
    for (name, reason) in [("AskUserQuestion", "question"), ("ExitPlanMode", "plan_approval")] {
        let started = format!("Main ToolStarted {{ id: \"c\", name: {name:?} }}");
        let waits = format!("Main SoftLocked {{ reason: {reason:?}, subject: Tool(\"c\") }}");
        check("PreToolUse", call(name), &[&started, &waits]);
    }
    check("PreToolUse", call("Bash"), &[r#"Main ToolStarted { id: "c", name: "Bash" }"#]);
}

#[test]
fn a_prompt_begins_a_turn_and_delivers_ends() {
    check(
        "UserPromptSubmit",
        json!({ "prompt": "hi" }),
        &[r#"Main Started { prompt: Some(Prompt { text: "hi", origin: Person }) }"#],
    );
    let tick = "<task-notification><task-id>b</task-id><event>x</event></task-notification>";
    check(
        "UserPromptSubmit",
        json!({ "prompt": tick }),
        &[&format!("Main Started {{ prompt: Some(Prompt {{ text: {tick:?}, origin: Work }}) }}")],
    );
    let end = "<task-notification><task-id>b</task-id><status>completed</status></task-notification>";
    check(
        "UserPromptSubmit",
        json!({ "prompt": end }),
        &[
            &format!("Main Started {{ prompt: Some(Prompt {{ text: {end:?}, origin: Work }}) }}"),
            r#"Main WorkFinished { id: "b", cause: Completed }"#,
        ],
    );
}

#[test]
fn questions_and_permissions_are_told_apart() {
    let lock = |tool: &str, reason: &str| {
        let expected = format!("Main SoftLocked {{ reason: {reason:?}, subject: ToolNamed({tool:?}) }}");
        check("PermissionRequest", json!({ "tool_name": tool }), &[&expected]);
    };
    lock("Bash", "permission_prompt");
    lock("AskUserQuestion", "question");
    lock("ExitPlanMode", "plan_approval");
}

#[test]
fn a_finished_tool_may_leave_work_behind() {
    let finished = r#"Main ToolFinished { id: "t", name: "Bash", failed: false }"#;
    let call =
        |response: Value| json!({ "tool_name": "Bash", "tool_use_id": "t", "tool_response": response });
    check("PostToolUse", call(json!({ "stdout": "" })), &[finished]);
    let started = r#"Main WorkStarted { id: "b", what: Shell, label: None, process: None }"#;
    // As started in the background, and as sent there by the person.
    check("PostToolUse", call(json!({ "backgroundTaskId": "b" })), &[started, finished]);
    let by_person = json!({ "backgroundTaskId": "b", "backgroundedByUser": true });
    check("PostToolUse", call(by_person), &[started, finished]);
    let agent = json!({ "isAsync": true, "status": "async_launched", "agentId": "a" });
    check(
        "PostToolUse",
        json!({ "tool_name": "Agent", "tool_use_id": "t", "tool_response": agent }),
        &[
            r#"Main WorkStarted { id: "a", what: Subagent, label: None, process: None }"#,
            r#"Main ToolFinished { id: "t", name: "Agent", failed: false }"#,
        ],
    );
    check(
        "PostToolUse",
        json!({ "tool_name": "TaskStop", "tool_use_id": "t", "tool_input": { "task_id": "b" } }),
        &[
            r#"Main WorkFinished { id: "b", cause: Killed }"#,
            r#"Main ToolFinished { id: "t", name: "TaskStop", failed: false }"#,
        ],
    );
}

#[test]
fn a_stop_lists_what_is_live() {
    let stopped = |live: &str| {
        format!("Main Stopped {{ final_message: None, can_continue: true, continued: false, live: {live} }}")
    };
    check("Stop", json!({}), &[&stopped("None")]);
    check("Stop", json!({ "background_tasks": [] }), &[&stopped("Some([])")]);
    let tasks =
        json!([{ "id": "b", "type": "shell", "status": "running" }, { "id": "c", "status": "completed" }]);
    let crons = json!([{ "id": "d", "schedule": "* * * * *" }]);
    check(
        "Stop",
        json!({ "background_tasks": tasks, "session_crons": crons }),
        &[&stopped(
            r#"Some([WorkItem { id: "b", kind: Shell, label: None }, WorkItem { id: "d", kind: Scheduled, label: Some("* * * * *") }])"#,
        )],
    );
    let own = json!([{ "id": "a", "type": "subagent", "status": "running" }]);
    check(
        "SubagentStop",
        json!({ "agent_id": "a", "background_tasks": own }),
        &[
            r#"Subagent("a") WorkFinished { id: "a", cause: Completed }"#,
            r#"Subagent("a") WorkLevel { live: [WorkItem { id: "a", kind: Subagent, label: None }], except: Some("a") }"#,
        ],
    );
}

#[test]
fn a_subagents_stop_is_not_the_sessions() {
    check("Stop", json!({ "agent_id": "a", "background_tasks": [] }), &[]);
}

#[test]
fn ends_by_reason() {
    let end = |reason: &str, expected: &str| {
        let expected = format!("Main SessionEnded {{ reason: {expected}, successor: None }}");
        check("SessionEnd", json!({ "reason": reason }), &[&expected]);
    };
    end("clear", "Cleared");
    end("prompt_input_exit", "Reported");
    end("other", "Reported");
}

#[test]
fn what_only_displays_or_is_unknown_is_told_as_such() {
    check("MessageDisplay", json!({ "delta": "x" }), &[r#"Main Displayed { what: "MessageDisplay" }"#]);
    check("BrandNew", json!({}), &[r#"Main Unknown { event: "BrandNew" }"#]);
    let parsed = parse(None, br#"{"session_id":"s","hook_event_name":"BrandNew"}"#);
    assert_eq!(parsed.unknown, ["BrandNew"]);
}

#[test]
fn a_cut_payload_still_begins_the_turn() {
    let cut = br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"xxxxxxxxxx"#;
    assert_eq!(parse(None, cut).observations.len(), 1);
}
