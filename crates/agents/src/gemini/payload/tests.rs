use super::*;
use serde_json::json;

/// What an event says, besides the session, as short words.
fn check(event: &str, fields: Value, expected: &[&str]) {
    let mut payload = json!({ "session_id": "s", "hook_event_name": event });
    if let (Some(all), Value::Object(fields)) = (payload.as_object_mut(), fields) {
        all.extend(fields);
    }
    let parsed = parse(None, payload.to_string().as_bytes());
    let said: Vec<String> = parsed.observations.iter().map(|o| format!("{:?}", o.body)).collect();
    assert_eq!(said, expected, "{payload}");
}

#[test]
fn a_turn_from_prompt_to_answer() {
    check(
        "BeforeAgent",
        json!({ "prompt": "hi" }),
        &[r#"Started { prompt: Some(Prompt { text: "hi", origin: Person }) }"#],
    );
    check("BeforeTool", json!({ "tool_name": "x" }), &[r#"ToolStarted { id: "hook:x", name: "x" }"#]);
    check(
        "BeforeTool",
        json!({ "tool_name": "ask_user" }),
        &[
            r#"ToolStarted { id: "hook:ask_user", name: "ask_user" }"#,
            r#"SoftLocked { reason: "question", subject: ToolNamed("ask_user") }"#,
        ],
    );
    check("AfterModel", json!({}), &["Activity { what: Progress }"]);
    let stop = json!({ "prompt_response": "done", "stop_hook_active": true });
    check(
        "AfterAgent",
        stop,
        &[r#"Stopped { final_message: Some("done"), can_continue: true, continued: true, live: None }"#],
    );
}

#[test]
fn a_result_tells_of_background_work_and_of_an_interrupt() {
    let result = |tool: &str, words: &str| {
        let response = json!({ "llmContent": format!("<untrusted_context>\n{words}\n</untrusted_context>") });
        json!({ "tool_name": tool, "tool_input": { "command": "make" }, "tool_response": response })
    };
    let ended = |tool: &str, failed: bool| {
        format!("ToolFinished {{ id: \"hook:{tool}\", name: {tool:?}, failed: {failed} }}")
    };
    let shell = "run_shell_command";
    check("AfterTool", result(shell, "Output: Command was cancelled by user"), &[&ended(shell, false)]);
    let work = r#"WorkStarted { id: "pid:42", what: Shell, label: Some("make"), process: None }"#;
    let moved = "Command moved to background (PID: 42). Output hidden.";
    check("AfterTool", result(shell, moved), &[work, &ended(shell, false)]);
    let cancelled = "Command was cancelled by user before it could complete.";
    check(
        "AfterTool",
        result(shell, cancelled),
        &[r#"Aborted { tools_to_work: false, call: Some("hook:run_shell_command") }"#, &ended(shell, true)],
    );
    // A file may say anything.
    for words in [moved, cancelled] {
        check("AfterTool", result("read_file", words), &[&ended("read_file", false)]);
    }
}

#[test]
fn the_process_of_background_work_is_named() {
    let payload = r#"{"session_id":"s","tool_name":"run_shell_command","tool_response":{"llmContent":"Command moved to background (PID: 42)."}}"#;
    let parsed = parse(Some("AfterTool"), payload.as_bytes());
    assert_eq!(parsed.work_pids, [("pid:42".to_owned(), 42)]);
}

#[test]
fn dialogs() {
    let ask = |kind: &str| json!({ "notification_type": "ToolPermission", "details": { "type": kind } });
    let lock =
        |reason: &str, subject: &str| format!("SoftLocked {{ reason: {reason:?}, subject: {subject} }}");
    check("Notification", ask("exec"), &[&lock("permission_prompt", r#"ToolNamed("run_shell_command")"#)]);
    for kind in ["edit", "mcp", "info", "later"] {
        check("Notification", ask(kind), &[&lock("permission_prompt", "Session")]);
    }
    check("Notification", ask("ask_user"), &[&lock("question", r#"ToolNamed("ask_user")"#)]);
    check("Notification", ask("exit_plan_mode"), &[&lock("plan_approval", r#"ToolNamed("exit_plan_mode")"#)]);
    check("Notification", json!({ "notification_type": "x" }), &[r#"Displayed { what: "x" }"#]);
}

#[test]
fn the_end_takes_background_work_along_but_for_a_clear() {
    let end = |reason: &str| format!("SessionEnded {{ reason: {reason}, successor: None }}");
    check(
        "SessionEnd",
        json!({ "reason": "exit" }),
        &["WorkLevel { live: [], except: None }", &end("Reported")],
    );
    check("SessionEnd", json!({ "reason": "clear" }), &[&end("Cleared")]);
}

#[test]
fn what_nobody_knows_is_counted() {
    let parsed = parse(Some("Later"), br#"{"session_id":"s"}"#);
    assert_eq!(parsed.unknown, ["Later"]);
    assert!(parse(Some("AfterAgent"), b"{}").malformed.is_some());
}
