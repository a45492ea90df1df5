use super::*;
use crate::line_scanner::LineScanner;

fn check(lines: &[&str], expected: &[&str]) {
    let mut reader = Reader::new("s", None);
    let mut out = Parsed::default();
    for line in lines {
        let text = line.replacen('}', r#"},"timestamp":"2026-11-30T08:00:00.000Z""#, 1) + "\n";
        LineScanner::new().push(text.as_bytes(), &mut reader, &mut out);
    }
    let said: Vec<String> = out.observations.iter().map(|o| format!("{:?} {:?}", o.thread, o.body)).collect();
    assert_eq!(said, expected, "{lines:?}");
}

#[test]
fn dialogs_begin_and_end() {
    check(
        &[
            r#"{"type":"permission.requested","data":{"requestId":"r"}}"#,
            r#"{"type":"permission.completed","data":{"requestId":"r"}}"#,
        ],
        &[
            r#"Main SoftLocked { reason: "permission_prompt", subject: Question("r") }"#,
            r#"Main LockResolved { subject: Question("r") }"#,
        ],
    );
    check(
        &[
            r#"{"type":"tool.execution_start","data":{"toolCallId":"c","toolName":"ask_user"}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"c","success":true}}"#,
        ],
        &[
            r#"Main ToolStarted { id: "c", name: "AskUserQuestion" }"#,
            r#"Main SoftLocked { reason: "question", subject: Tool("c") }"#,
            r#"Main ToolFinished { id: "c", name: "AskUserQuestion", failed: false }"#,
        ],
    );
}

#[test]
fn what_no_hook_tells() {
    check(
        &[r#"{"type":"abort","data":{"reason":"user_abort"}}"#],
        &["Main Aborted { tools_to_work: false, call: None }"],
    );
    check(
        &[r#"{"type":"session.error","data":{"message":"400"}}"#],
        &[r#"Main Failed { message: Some("400"), fatal: false }"#],
    );
    check(
        &[r#"{"type":"session.shutdown","data":{"x":1}}"#],
        &["Main SessionEnded { reason: Reported, successor: None }"],
    );
}

#[test]
fn a_subagents_records_are_its_parents_work() {
    check(
        &[r#"{"type":"subagent.started","data":{"toolCallId":"c"},"agentId":"a"}"#],
        &[r#"Subagent("a") WorkStarted { id: "a", what: Subagent, label: None, process: None }"#],
    );
    check(
        &[r#"{"type":"assistant.message","data":{"content":"x"},"agentId":"a"}"#],
        &[r#"Subagent("a") Activity { what: Progress }"#],
    );
    check(
        &[r#"{"type":"permission.requested","data":{"requestId":"r"},"agentId":"a"}"#],
        &[r#"Subagent("a") SoftLocked { reason: "permission_prompt", subject: Question("r") }"#],
    );
}

#[test]
fn hooks_own_records_are_passed_over() {
    check(
        &[
            r#"{"type":"hook.start","data":{"hookType":"agentStop"}}"#,
            r#"{"type":"session.usage_record","data":{"x":1}}"#,
        ],
        &[],
    );
}
