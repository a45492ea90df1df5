use super::*;
use crate::line_scanner::LineScanner;

fn check(lines: &[&str], expected: &[&str]) {
    let mut reader = Reader::new("s");
    let mut out = Parsed::default();
    for line in lines {
        LineScanner::new().push(format!("{line}\n").as_bytes(), &mut reader, &mut out);
    }
    let said: Vec<String> = out.observations.iter().map(|o| format!("{:?}", o.body)).collect();
    assert_eq!(said, expected, "{lines:?}");
}

#[test]
fn a_process_that_takes_a_session_up_begins_idle() {
    check(
        &[r#"{"sessionId":"s","projectHash":"h","startTime":"2026-11-30T08:22:30.863Z","kind":"main"}"#],
        &["IdleNoticed"],
    );
}

#[test]
fn prompts_results_and_answers() {
    let user = |content: &str| {
        format!(r#"{{"id":"i","timestamp":"2026-11-30T08:22:34.703Z","type":"user","content":{content}}}"#)
    };
    let prompt = user(r#"[{"text":"hi"}]"#);
    check(&[&prompt], &[r#"Started { prompt: Some(Prompt { text: "hi", origin: Person }) }"#]);
    check(&[&user(r#"[{"text":"<session_context>\nThis is"}]"#)], &[]);
    check(&[&format!(r#"{{"$set":{{"messages":[{prompt}]}}}}"#)], &[]);
    let result = |name: &str, response: &str| {
        format!(r#"{{"functionResponse":{{"name":"{name}","response":{response}}}}}"#)
    };
    let (done, cancelled) = (r#"{"output":"x"}"#, r#"{"error":"[Operation Cancelled] Reason: y"}"#);
    let ended = |name: &str, failed: bool| {
        format!("ToolFinished {{ id: \"hook:{name}\", name: {name:?}, failed: {failed} }}")
    };
    let one = user(&format!("[{},{}]", result("a", done), result("b", cancelled)));
    check(&[&one], &[&ended("a", false), &ended("b", true)]);
    let all = user(&format!("[{}]", result("b", cancelled)));
    check(&[&all], &[&ended("b", true), "Aborted { tools_to_work: false }"]);
    check(
        &[r#"{"id":"i","timestamp":"2026-11-30T08:22:38.995Z","type":"gemini","content":"hello"}"#],
        &["Activity { what: Progress }"],
    );
}

#[test]
fn notes_to_the_person() {
    let note = |kind: &str, text: &str| {
        format!(r#"{{"id":"i","timestamp":"2026-11-30T08:22:38.995Z","type":"{kind}","content":"{text}"}}"#)
    };
    check(&[&note("info", "Request cancelled.")], &["Aborted { tools_to_work: false }"]);
    check(&[&note("info", "Update available")], &[]);
    check(
        &[&note("error", "[API Error: 400]")],
        &[r#"Failed { message: Some("[API Error: 400]"), fatal: false }"#],
    );
    check(&[&note("error", "Unknown command")], &[]);
    check(&[r#"{"$set":{"lastUpdated":"2026-11-30T08:22:38.995Z"}}"#, "{", ""], &[]);
}
