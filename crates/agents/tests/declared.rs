//! Adapter files and payloads that nobody should write: errors and bounded observations, never a panic.
#![expect(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

use proptest::prelude::*;
use watchkeeper_agents::{Adapter as _, Declared, LineScanner, Parsed};

fn example() -> &'static str {
    let document = include_str!("../../../docs/adding-an-agent.md");
    let (_, behind) = document.split_once("```toml\n").unwrap();
    behind.split_once("```").unwrap().0
}

/// Reads the file and, where it is one, has it read everything.
fn check(file: &str, payload: &[u8]) {
    let adapter = match Declared::parse(file) {
        Ok(adapter) => adapter,
        Err(problems) => {
            assert!(!problems.is_empty() && problems.len() <= 16);
            for problem in problems {
                assert!(problem.to_string().len() < 2048, "{problem}");
                assert!(
                    problem.line.is_none_or(|line| (1..=file.lines().count().max(1) + 1).contains(&line))
                );
            }
            return;
        }
    };
    for event in [None, Some("stop"), Some("subagentStart")] {
        let parsed = adapter.payload(event, &[payload], payload);
        assert!(parsed.observations.len() <= 1 && parsed.unknown.len() <= 1);
        assert!(parsed.unknown.iter().all(|name| name.len() <= 64));
        assert!(parsed.malformed.is_none() || parsed.observations.is_empty());
        for observation in &parsed.observations {
            assert!(observation.session.as_ref().is_some_and(|id| !id.is_empty() && id.len() <= 256));
        }
    }
    if let Some(mut reader) = adapter.transcript("s", None) {
        let (mut scanner, mut parsed) = (LineScanner::new(), Parsed::default());
        scanner.push(payload, reader.as_mut(), &mut parsed);
        scanner.push(b"\n", reader.as_mut(), &mut parsed);
        assert!(parsed.observations.iter().all(|o| o.session.as_deref() == Some("s")));
    }
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    let names = prop::sample::select(vec![
        "conversation_id",
        "generation_id",
        "hook_event_name",
        "workspace_roots",
        "cursor_version",
        "prompt",
        "tool_name",
        "tool_use_id",
        "subagent_id",
        "task",
        "status",
        "role",
        "transcript_path",
    ]);
    let value = prop_oneof![
        Just(serde_json::Value::Null),
        any::<i64>().prop_map(Into::into),
        prop::sample::select(vec![
            "stop",
            "aborted",
            "assistant",
            "subagentStart",
            "preToolUse",
            "c",
            "a\nb"
        ])
        .prop_map(Into::into),
        "\\PC{0,300}".prop_map(Into::into),
        prop::collection::vec("\\PC{0,9}", 0..4).prop_map(Into::into),
        Just(serde_json::json!({"0": {"0": []}})),
    ];
    let object = prop::collection::vec((names, value), 0..12).prop_map(|fields| {
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
        serde_json::Value::Object(fields.collect()).to_string().into_bytes()
    });
    prop_oneof![4 => object, 1 => prop::collection::vec(any::<u8>(), 0..400)]
}

/// The example with a piece taken out, put in twice or replaced.
fn damaged() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(String::new()),
        "\\PC{0,20}",
        prop::sample::select(vec![
            "\n[transcript]\n",
            "\n[[hooks.signals]]\n",
            "signal = \"tool_started\"\n",
            "when = { a.b = 1 }\n",
            "when = { \"a.b\" = \"x\", \"0.0\" = true }\n",
            "[",
            "]",
            "\"",
            "'''",
            "= {",
            "\u{0}",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0_usize..80, piece), 1..4).prop_map(|edits| {
        let mut text: Vec<char> = example().chars().collect();
        for (at, length, piece) in edits {
            if text.is_empty() {
                break;
            }
            let begin = at.index(text.len());
            let end = (begin + length).min(text.len());
            text.splice(begin..end, piece.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_read_or_refused(file in "\\PC{0,400}", payload in payload()) {
        check(&file, &payload);
    }

    #[test]
    fn a_damaged_file_is_read_or_refused(file in damaged(), payload in payload()) {
        check(&file, &payload);
    }

    #[test]
    fn any_payload_is_bounded(payload in payload()) {
        check(example(), &payload);
    }
}

#[test]
fn deep_and_long_files_are_refused() {
    check(&format!("a = {}{}", "[".repeat(20_000), "]".repeat(20_000)), b"{}");
    check(&format!("a = {}1", "{ a = ".repeat(8_000)), b"{}");
    check(&format!("{} = 1", vec!["a"; 20_000].join(".")), b"{}");
    check(&"[[hooks.signals]]\n".repeat(3_600), b"{}");
    check(&format!("agent = \"{}\"", "a".repeat(60_000)), b"{}");
}
