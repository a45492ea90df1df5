use super::*;
use crate::line_scanner::LineScanner;

fn check(lines: &[&str], expected: &[&str]) {
    let mut reader = Reader::new("s", None);
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
    check(&[&all], &[r#"Aborted { tools_to_work: false, call: Some("hook:b") }"#, &ended("b", true)]);
    check(
        &[r#"{"id":"i","timestamp":"2026-11-30T08:22:38.995Z","type":"gemini","content":"hello"}"#],
        &["Activity { what: Progress }"],
    );
}

#[test]
fn a_late_cancellation_is_not_of_the_next_turn() {
    let record = |second: u8, content: &str| {
        format!(
            r#"{{"id":"i","timestamp":"2026-11-30T08:26:{second}.000Z","type":"user","content":[{content}]}}"#
        )
    };
    let prompt = |second: u8| record(second, r#"{"text":"p"}"#);
    // Made at 08:26:36.672.
    let cancelled = record(
        43,
        r#"{"functionResponse":{"id":"b__b_1796027196672_0","name":"b","response":{"error":"[Operation Cancelled]"}}}"#,
    );
    let started = r#"Started { prompt: Some(Prompt { text: "p", origin: Person }) }"#;
    let ended = r#"ToolFinished { id: "hook:b", name: "b", failed: true }"#;
    let aborted = "Aborted { tools_to_work: false, call: None }";
    check(&[&prompt(34), &cancelled], &[started, aborted, ended]);
    check(&[&prompt(34), &prompt(42), &cancelled], &[started, started, ended]);

    let mut reader = Reader::new("s", None);
    reader.line(prompt(42).as_bytes(), &mut Parsed::default());
    let mut out = Parsed::default();
    Reader::new("s", Some(&reader.save())).line(cancelled.as_bytes(), &mut out);
    assert_eq!(out.observations.len(), 1, "{out:?}");
}

#[test]
fn a_command_that_goes_on_began_with_its_call() {
    let record = |tool: &str, call: &str| {
        let output = "<untrusted_context>\\nCommand moved to background (PID: 230). Output hidden.";
        format!(
            r#"{{"id":"i","timestamp":"2026-11-30T08:27:00.000Z","type":"user","content":[{{"functionResponse":{{"id":"{call}","name":"{tool}","response":{{"output":"{output}"}}}}}}]}}"#
        )
    };
    let said = |record: String| {
        let mut out = Parsed::default();
        Reader::new("s", None).line(record.as_bytes(), &mut out);
        assert!(out.work_pids.is_empty());
        let first = out.observations.into_iter().next().expect("an end at least");
        (format!("{:?}", first.body), first.at)
    };
    let (body, at) = said(record(SHELL_TOOL, "c_1796027196672_0"));
    assert_eq!(body, r#"WorkStarted { id: "pid:230", what: Shell, label: None, process: None }"#);
    assert_eq!(at, Some(Wall(1_796_027_196_672)));
    // What a file says, and a call of which nobody knows when it was made.
    for (tool, call) in [("read_file", "c_1796027196672_0"), (SHELL_TOOL, "c")] {
        let (body, _) = said(record(tool, call));
        assert!(body.starts_with("ToolFinished"), "{body}");
    }
}

#[test]
fn the_time_of_a_call_is_in_its_id() {
    assert_eq!(made_at("a__a_1796027196672_0"), Some(Wall(1_796_027_196_672)));
    for other in ["", "_", "a", "call_f4f9803add2c", "1796027196672", "a_179602719667_0", "a_17960271966x2_0"]
    {
        assert_eq!(made_at(other), None, "{other}");
    }
}

#[test]
fn notes_to_the_person() {
    let note = |kind: &str, text: &str| {
        format!(r#"{{"id":"i","timestamp":"2026-11-30T08:22:38.995Z","type":"{kind}","content":"{text}"}}"#)
    };
    check(&[&note("info", "Request cancelled.")], &["Aborted { tools_to_work: false, call: None }"]);
    check(&[&note("info", "Update available")], &[]);
    check(
        &[&note("error", "[API Error: 400]")],
        &[r#"Failed { message: Some("[API Error: 400]"), fatal: false }"#],
    );
    check(&[&note("error", "Unknown command")], &[]);
    check(&[r#"{"$set":{"lastUpdated":"2026-11-30T08:22:38.995Z"}}"#, "{", ""], &[]);
}
