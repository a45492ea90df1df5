use super::*;
use crate::line_scanner::LineScanner;

fn check(lines: &[&str], expected: &[&str]) {
    let mut reader = Reader::new("s", None);
    let mut out = Parsed::default();
    for line in lines {
        let text = line.replacen('{', r#"{"timestamp":"2026-11-30T08:00:00.000Z","#, 1) + "\n";
        // Every line through a reader that was saved and restored: nothing is lost by a restart.
        reader = Reader::new("s", Some(&reader.save()));
        LineScanner::new().push(text.as_bytes(), &mut reader, &mut out);
    }
    let said: Vec<String> = out.observations.iter().map(|o| format!("{:?}", o.body)).collect();
    assert_eq!(said, expected, "{lines:?}");
}

const CALL: &str =
    r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"c"}}"#;

fn output(call: &str, words: &str) -> String {
    format!(
        r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"{call}","output":"{words}"}}}}"#
    )
}

const STARTED: &str = r#"ToolStarted { id: "c", name: "Bash" }"#;
const TERMINAL: &str = r#"WorkStarted { id: "c", what: Terminal, label: None, process: None }"#;
const FINISHED: &str = r#"ToolFinished { id: "c", name: "Bash", failed: false }"#;

#[test]
fn a_command_that_goes_on_is_work_until_its_item_ends() {
    let runs = output("c", "Wall time: 0.5 seconds\\nProcess running with session ID 7\\nOutput:\\n");
    let poll =
        r#"{"type":"response_item","payload":{"type":"function_call","name":"write_stdin","call_id":"d"}}"#;
    let again = output("d", "Process running with session ID 7\\nOutput:\\n");
    let ended = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"c","exit_code":0}}}"#;
    check(
        &[CALL, &runs, poll, &again, ended],
        &[
            STARTED,
            TERMINAL,
            FINISHED,
            r#"ToolStarted { id: "d", name: "write_stdin" }"#,
            r#"ToolFinished { id: "d", name: "write_stdin", failed: false }"#,
            r#"WorkFinished { id: "c", cause: Completed }"#,
            FINISHED,
        ],
    );
}

#[test]
fn a_patch_ends_with_its_output() {
    check(
        &[
            r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","call_id":"c"}}"#,
            r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c","output":"Done"}}"#,
        ],
        &[
            r#"ToolStarted { id: "c", name: "apply_patch" }"#,
            r#"ToolFinished { id: "c", name: "apply_patch", failed: false }"#,
        ],
    );
}

#[test]
fn a_commands_own_words_are_no_report() {
    let lies = output("c", "Process exited with code 0\\nOutput:\\nProcess running with session ID 7");
    check(&[CALL, &lies], &[STARTED, FINISHED]);
}

#[test]
fn an_aborted_command_is_not_over() {
    check(&[CALL, &output("c", "Wall time: 3.5 seconds\\naborted by user")], &[STARTED]);
    let asks = r#"{"type":"response_item","payload":{"type":"function_call","name":"request_user_input","call_id":"c"}}"#;
    check(
        &[asks, &output("c", "aborted by user")],
        &[
            r#"ToolStarted { id: "c", name: "request_user_input" }"#,
            r#"SoftLocked { reason: "codex_transcript_request_user_input_pending", subject: Tool("c") }"#,
            r#"ToolFinished { id: "c", name: "request_user_input", failed: false }"#,
        ],
    );
}

#[test]
fn an_error_ends_the_turn() {
    check(
        &[
            r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t","error":{"message":"400"}}}"#,
        ],
        &[r#"Failed { message: Some("400"), fatal: false }"#],
    );
}

#[test]
fn a_subagents_rollout_is_not_the_sessions() {
    let meta = r#"{"type":"session_meta","payload":{"id":"child","session_id":"s"}}"#;
    check(&[meta, CALL], &[]);
    let notice = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<subagent_notification>\n{\"agent_path\":\"a\",\"status\":{\"completed\":\"x\"}}\n</subagent_notification>"}]}}"#;
    check(&[notice], &[r#"WorkFinished { id: "a", cause: Completed }"#]);
}

#[test]
fn a_fork_names_what_it_was_forked_from_and_a_subagent_does_not() {
    let lineage = |more: &str| {
        let line = format!(
            r#"{{"timestamp":"2026-11-30T08:00:00.000Z","type":"session_meta","payload":{{"id":"s","forked_from_id":"old"{more}}}}}"#
        ) + "\n";
        let (mut reader, mut out) = (Reader::new("s", None), Parsed::default());
        LineScanner::new().push(line.as_bytes(), &mut reader, &mut out);
        out.observations[0].facts.lineage.clone()
    };
    assert_eq!(lineage(""), Some(Lineage::ForkedFrom("old".to_owned())));
    assert_eq!(lineage(r#","source":"cli""#), Some(Lineage::ForkedFrom("old".to_owned())));
    assert_eq!(lineage(r#","source":{"subagent":"review"}"#), None);
    assert_eq!(lineage(r#","parent_thread_id":"old""#), None);
}
