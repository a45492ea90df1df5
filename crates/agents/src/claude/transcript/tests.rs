use super::*;
use crate::line_scanner::LineScanner;

const AT: &str = r#""timestamp":"2026-11-30T08:00:00.000Z","sessionId":"s","version":"1""#;

fn check(lines: &[&str], expected: &[&str]) {
    let mut reader = Reader::new("s", None);
    let mut out = Parsed::default();
    let text = lines.iter().map(|l| l.replace("AT", AT) + "\n").collect::<String>();
    LineScanner::new().push(text.as_bytes(), &mut reader, &mut out);
    let said: Vec<String> = out.observations.iter().map(|o| format!("{:?}", o.body)).collect();
    assert_eq!(said, expected, "{text}");
    assert!(out.observations.iter().all(|o| o.at.is_some()
        || matches!(o.body, SignalBody::SessionEnded { .. } | SignalBody::Displayed { .. })));
}

#[test]
fn interrupts_have_no_hook() {
    let words = r#"{"type":"user",AT,"promptId":"p","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
    check(&[words], &["Aborted { tools_to_work: false, call: None }"]);
    check(
        &[
            r#"{AT,"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"w0"}]},"isAbortedMidStream":true}"#,
        ],
        &["Aborted { tools_to_work: false, call: None }"],
    );
}

#[test]
fn local_commands_and_summaries_open_nothing() {
    for words in
        ["<command-name>/exit</command-name>", "<local-command-stdout>x", "<bash-input>ls</bash-input>"]
    {
        check(
            &[&format!(
                r#"{{"type":"user",AT,"promptId":"q","message":{{"role":"user","content":"{words}"}}}}"#
            )],
            &[],
        );
    }
    check(
        &[r#"{"type":"user",AT,"promptId":"q","isMeta":true,"message":{"role":"user","content":"x"}}"#],
        &[],
    );
    check(
        &[
            r#"{"type":"user",AT,"promptId":"q","isCompactSummary":true,"message":{"role":"user","content":"x"}}"#,
        ],
        &[],
    );
    check(
        &[r#"{"type":"user","sessionId":"s","promptId":"q","message":{"role":"user","content":"no time"}}"#],
        &[],
    );
}

#[test]
fn a_blocked_stop_goes_on() {
    check(
        &[
            r#"{"type":"user",AT,"isMeta":true,"message":{"role":"user","content":"Stop hook feedback:\ngo on"}}"#,
        ],
        &["Activity { what: ModelOutput }"],
    );
}

#[test]
fn calls_and_their_results() {
    check(
        &[
            r#"{AT,"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}"#,
            r#"{"type":"user",AT,"promptId":"p","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true}]},"toolUseResult":{"backgroundTaskId":"b"}}"#,
        ],
        &[
            r#"ToolStarted { id: "t", name: "Bash" }"#,
            r#"WorkStarted { id: "b", what: Shell, label: None, process: None }"#,
            r#"ToolFinished { id: "t", name: "Bash", failed: true }"#,
        ],
    );
}

#[test]
fn the_end_of_a_turn_and_of_the_session() {
    check(
        &[r#"{AT,"type":"system","subtype":"turn_duration","durationMs":5}"#],
        &["Stopped { final_message: None, can_continue: false, continued: false, live: None }"],
    );
    check(
        &[r#"{"type":"continued-in","continuedInSessionId":"n","sessionId":"s"}"#],
        &[r#"SessionEnded { reason: Moved, successor: Some("n") }"#],
    );
}

#[test]
fn what_is_not_the_sessions_is_passed_over() {
    check(
        &[
            r#"{"type":"user","timestamp":"2026-11-30T08:00:00Z","sessionId":"other","promptId":"p","message":{"content":"x"}}"#,
        ],
        &[],
    );
    check(&[r#"{"type":"user",AT,"isSidechain":true,"promptId":"p","message":{"content":"x"}}"#.replace(",\"isSidechain\":false", "").as_str()], &[]);
    check(&["not json \"type\":\"user\"", "{\"type\":\"cost-state\"}", ""], &[]);
}

#[test]
fn a_fork_names_the_session_whose_answers_it_copied() {
    let lineage = |asked_in: &str| {
        let line = format!(
            r#"{{"type":"assistant","sessionId":"s","timestamp":"2026-11-30T08:00:00.000Z","requestSessionId":"{asked_in}","message":{{"role":"assistant","content":[{{"type":"text","text":"one"}}]}}}}"#
        ) + "\n";
        let (mut reader, mut out) = (Reader::new("s", None), Parsed::default());
        LineScanner::new().push(line.as_bytes(), &mut reader, &mut out);
        out.observations[0].facts.lineage.clone()
    };
    assert_eq!(lineage("old"), Some(Lineage::ForkedFrom("old".to_owned())));
    assert_eq!((lineage("s"), lineage("")), (None, None));
}
