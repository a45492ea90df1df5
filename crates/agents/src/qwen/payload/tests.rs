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

#[test]
fn an_empty_prompt_goes_on() {
    check(
        "UserPromptSubmit",
        json!({ "prompt": "hi" }),
        &[r#"Main Started { prompt: Some(Prompt { text: "hi", origin: Person }) }"#],
    );
    check("UserPromptSubmit", json!({ "prompt": "" }), &["Main Activity { what: Progress }"]);
    check("MessageDisplay", json!({ "is_final": true }), &["Main Activity { what: ModelOutput }"]);
}

#[test]
fn questions_and_permissions_are_told_apart() {
    let lock = |tool: &str, reason: &str| {
        let expected = format!("Main SoftLocked {{ reason: {reason:?}, subject: ToolNamed({tool:?}) }}");
        check("PermissionRequest", json!({ "tool_name": tool }), &[&expected]);
    };
    lock("run_shell_command", "permission_prompt");
    lock("ask_user_question", "question");
    lock("exit_plan_mode", "plan_approval");
}

#[test]
fn a_finished_tool_may_leave_work_behind() {
    let call = |tool: &str, words: &str| {
        json!({
            "tool_name": tool, "tool_use_id": "t", "tool_input": { "command": "make" },
            "tool_response": { "llmContent": words },
        })
    };
    let ended = |tool: &str| format!("Main ToolFinished {{ id: \"t\", name: {tool:?}, failed: false }}");
    let shell = "run_shell_command";
    check("PostToolUse", call(shell, "Command: make"), &[&ended(shell)]);
    let work = r#"Main WorkStarted { id: "bg_1", what: Shell, label: Some("make"), process: None }"#;
    let started = "Background shell started.\nid: bg_1\npid: 77\n";
    check("PostToolUse", call(shell, started), &[work, &ended(shell)]);
    // A file may say anything.
    check("PostToolUse", call("read_file", started), &[&ended("read_file")]);
}

#[test]
fn the_result_of_a_subagent_is_its_end() {
    let call = |words: &str| {
        json!({
            "tool_name": "agent", "tool_use_id": "t", "tool_call_id": "call_1",
            "tool_input": { "subagent_type": "general" }, "tool_response": { "llmContent": words },
        })
    };
    let ended = r#"Main ToolFinished { id: "t", name: "agent", failed: false }"#;
    check(
        "PostToolUse",
        call("The answer is 4"),
        &[r#"Main WorkFinished { id: "general-call_1", cause: Completed }"#, ended],
    );
    check(
        "PostToolUse",
        call("Background agent launched successfully.\ntask_id: general-call_1 (internal)"),
        &[r#"Main WorkStarted { id: "general-call_1", what: Subagent, label: None, process: None }"#, ended],
    );
}

#[test]
fn an_interrupted_tool_ends_the_turn() {
    let failure =
        |interrupt: bool| json!({ "tool_name": "sh", "tool_use_id": "t", "is_interrupt": interrupt });
    let ended = r#"Main ToolFinished { id: "t", name: "sh", failed: true }"#;
    check("PostToolUseFailure", failure(false), &[ended]);
    check("PostToolUseFailure", failure(true), &[ended, "Main Aborted { tools_to_work: false, call: None }"]);
}

#[test]
fn a_stop_lists_subagents_only() {
    let stop = "Main Stopped { final_message: None, can_continue: true, continued: false, live: None }";
    check("Stop", json!({ "background_tasks": [] }), &[stop]);
    let tasks = json!({ "background_tasks": [
        { "id": "a", "status": "running", "description": "d" },
        { "id": "b", "status": "completed" },
        { "id": "c", "status": "paused" },
        { "status": "running" },
    ] });
    check(
        "Stop",
        tasks,
        &[
            r#"Main WorkStarted { id: "a", what: Subagent, label: Some("d"), process: None }"#,
            r#"Main WorkFinished { id: "b", cause: Completed }"#,
            stop,
        ],
    );
}

#[test]
fn a_subagent_ends_though_its_own_entry_says_running() {
    let payload = json!({ "agent_id": "a", "background_tasks": [{ "id": "a", "status": "running" }] });
    let ended = r#"Subagent("a") WorkFinished { id: "a", cause: Completed }"#;
    check("SubagentStop", payload, &[ended]);
    check("Stop", json!({ "agent_id": "a" }), &[r#"Subagent("a") Displayed { what: "Stop" }"#]);
}

#[test]
fn the_turn_of_a_local_command_is_none() {
    let turn = |event: &str| {
        let payload = format!(r#"{{"session_id":"s","prompt_id":"p","hook_event_name":"{event}"}}"#);
        parse(None, payload.as_bytes()).observations.first().and_then(|o| o.turn.clone())
    };
    assert_eq!(turn("Stop"), Some(watchkeeper_core::TurnId("p".to_owned())));
    for event in ["SessionStart", "SessionEnd", "Notification"] {
        assert_eq!(turn(event), None, "{event}");
    }
}
