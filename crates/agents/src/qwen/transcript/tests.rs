use super::*;
use crate::line_scanner::LineScanner;

fn check(fields: &str, expected: &[&str]) {
    check_all(&[fields], expected);
}

fn check_all(records: &[&str], expected: &[&str]) {
    let mut reader = Reader::new("s", None);
    let mut out = Parsed::default();
    for fields in records {
        let line = format!("{{\"uuid\":\"u\",\"timestamp\":\"2026-11-30T08:32:25.403Z\",{fields}}}\n");
        LineScanner::new().push(line.as_bytes(), &mut reader, &mut out);
        // A restart changes nothing.
        reader = Reader::new("s", Some(&reader.save()));
    }
    let said: Vec<String> = out.observations.iter().map(|o| format!("{:?}", o.body)).collect();
    assert_eq!(said, expected, "{records:?}");
}

#[test]
fn a_notice_begins_a_turn_and_ends_its_work() {
    let notice = |subtype: &str, status: &str| {
        let text = format!(
            "<task-notification>\\n<task-id>bg_1</task-id>\\n<status>{status}</status></task-notification>"
        );
        format!(r#""type":"user","subtype":"{subtype}","message":{{"parts":[{{"text":"{text}"}}]}}"#)
    };
    let started = |status: &str| {
        let text = format!(
            "<task-notification>\n<task-id>bg_1</task-id>\n<status>{status}</status></task-notification>"
        );
        format!("Started {{ prompt: Some(Prompt {{ text: {text:?}, origin: Work }}) }}")
    };
    let ended = r#"WorkFinished { id: "bg_1", cause: Completed }"#;
    check(&notice("notification", "completed"), &[&started("completed"), ended]);
    check(&notice("notification", "running"), &[&started("running")]);
}

#[test]
fn a_persons_words_are_none_of_that() {
    check(
        r#""type":"user","provenance":"real_user","message":{"parts":[{"text":"<task-notification>"}]}"#,
        &[r#"Started { prompt: Some(Prompt { text: "<task-notification>", origin: Person }) }"#],
    );
    let of = |provenance: &str, text: &str| {
        format!(r#""type":"user","provenance":"{provenance}","message":{{"parts":[{{"text":"{text}"}}]}}"#)
    };
    check(&of("real_user", "/help"), &[]);
    check(&of("other", "p"), &[]);
}

#[test]
fn cancelled_calls_end_the_turn() {
    let result = |response: &str| {
        format!(
            r#""type":"tool_result","message":{{"parts":[{{"functionResponse":{{"name":"a","response":{response}}}}}]}}"#
        )
    };
    check(&result(r#"{"output":"x"}"#), &["Activity { what: Progress }"]);
    check(
        &result(r#"{"error":"[Operation Cancelled] Reason: x"}"#),
        &["Aborted { tools_to_work: false, call: None }"],
    );
}

#[test]
fn a_late_cancellation_is_not_of_the_next_turn() {
    let prompt = r#""type":"user","provenance":"real_user","message":{"parts":[{"text":"p"}]}"#;
    let called =
        r#""type":"assistant","message":{"parts":[{"text":"x"},{"functionCall":{"id":"c","name":"a"}}]}"#;
    let cancelled = r#""type":"tool_result","message":{"parts":[{"functionResponse":{"id":"c","name":"a","response":{"error":"[Operation Cancelled]"}}}]}"#;
    let started = r#"Started { prompt: Some(Prompt { text: "p", origin: Person }) }"#;
    let (progress, aborted) = ("Activity { what: Progress }", "Aborted { tools_to_work: false, call: None }");
    check_all(&[prompt, called, cancelled], &[started, progress, aborted]);
    check_all(&[prompt, called, prompt, cancelled], &[started, progress, started]);
    check_all(&[prompt, called, prompt, called, cancelled], &[started, progress, started, progress]);
    check_all(
        &[prompt, called, prompt, cancelled, called, cancelled],
        &[started, progress, started, progress, aborted],
    );
}
