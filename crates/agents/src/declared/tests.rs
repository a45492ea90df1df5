use super::*;
use watchkeeper_core::signal::Thread;

/// The file of the document, so that what it shows is what works.
fn example() -> &'static str {
    let document = include_str!("../../../../docs/adding-an-agent.md");
    let (_, behind) = document.split_once("```toml\n").unwrap();
    behind.split_once("```").unwrap().0
}

fn cursor() -> Declared {
    Declared::parse(example()).unwrap()
}

/// A file that is right, with `more` at its end.
fn small(more: &str) -> String {
    format!(
        "agent = \"my-agent\"\n[process]\nnames = [\"mine\"]\n[hooks]\nsession = \"id\"\n[[hooks.signals]]\nevent = \"go\"\n\
         signal = \"turn_started\"\n[[hooks.signals]]\nevent = \"done\"\nsignal = \"turn_ended\"\n{more}"
    )
}

/// `expected`: each problem as it is shown, in order.
fn check_file(text: &str, expected: &[&str]) {
    let got = Declared::parse(text).err().unwrap_or_default();
    let got: Vec<String> = got.iter().map(Problem::to_string).collect();
    assert_eq!(got, expected, "{text}");
}

fn check(event: Option<&str>, payload: Value, expected: &str) {
    let parsed = cursor().payload(event, &[], payload.to_string().as_bytes());
    let bodies: Vec<String> = parsed
        .observations
        .iter()
        .map(|o| {
            assert_eq!((o.session.as_deref(), &o.thread), (Some("c"), &Thread::Main));
            serde_json::to_string(&o.body).unwrap()
        })
        .collect();
    let unknown = parsed.unknown.iter().map(|name| format!("unknown {name}"));
    let malformed = parsed.malformed.iter().map(|why| format!("malformed {why}"));
    let got: Vec<String> = bodies.into_iter().chain(unknown).chain(malformed).collect();
    assert_eq!(got.join(" "), expected, "{payload}");
}

#[test]
fn the_documents_example_reads_what_cursor_sends() {
    let of = |event: &str, more: Value| {
        let mut payload = json::parse_object(
            br#"{"conversation_id":"c","generation_id":"g","workspace_roots":["/p"],"cursor_version":"3.7","transcript_path":null}"#,
        )
        .unwrap();
        payload["hook_event_name"] = event.into();
        for (key, value) in more.as_object().unwrap() {
            payload[key] = value.clone();
        }
        payload
    };
    use serde_json::json;
    check(None, of("sessionStart", json!({})), r#"{"kind":"session_started","cause":"other"}"#);
    check(
        None,
        of("beforeSubmitPrompt", json!({"prompt": "go"})),
        r#"{"kind":"started","prompt":{"text":"go","origin":"person"}}"#,
    );
    // The id of a call has two lines.
    check(
        None,
        of("preToolUse", json!({"tool_name": "Write", "tool_use_id": "call_1\nctc_2"})),
        r#"{"kind":"tool_started","id":"call_1","name":"Write"}"#,
    );
    check(
        None,
        of("postToolUseFailure", json!({"tool_name": "Write"})),
        r#"{"kind":"tool_finished","id":"hook:Write","name":"Write","failed":true}"#,
    );
    check(
        None,
        of("subagentStart", json!({"subagent_id": "s", "task": "look"})),
        r#"{"kind":"work_started","id":"s","what":"subagent","label":"look","process":null}"#,
    );
    check(
        None,
        of("subagentStop", json!({"subagent_id": "s"})),
        r#"{"kind":"work_finished","id":"s","cause":"completed"}"#,
    );
    check(
        None,
        of("subagentStop", json!({})),
        r#"{"kind":"displayed","what":"subagentStop"} unknown subagentStop without an id of its work"#,
    );
    check(None, of("stop", json!({"status": "aborted"})), r#"{"kind":"aborted","tools_to_work":false}"#);
    check(
        None,
        of("stop", json!({"status": "completed"})),
        r#"{"kind":"stopped","final_message":null,"can_continue":false,"continued":false,"live":null}"#,
    );
    check(
        None,
        of("sessionEnd", json!({})),
        r#"{"kind":"session_ended","reason":"reported","successor":null}"#,
    );
    check(
        None,
        of("workspaceOpen", json!({})),
        r#"{"kind":"unknown","event":"workspaceOpen"} unknown workspaceOpen"#,
    );
    // The command line names the event where the payload does not.
    let nameless = json!({"conversation_id": "c"});
    check(Some("afterAgentThought"), nameless.clone(), r#"{"kind":"activity","what":"progress"}"#);
    check(None, nameless, "malformed no event name");
    check(Some("stop"), json!({"conversation_id": 7}), "malformed no session id");
}

#[test]
fn facts_stand_where_the_file_says() {
    let payload = br#"{"conversation_id":"c","generation_id":"g","hook_event_name":"stop","workspace_roots":["/p"],"cursor_version":"3.7","transcript_path":"/t.jsonl"}"#;
    let parsed = cursor().payload(None, &[], payload);
    let [observation] = parsed.observations.as_slice() else { panic!("{parsed:?}") };
    assert_eq!(observation.turn.as_ref().map(|t| t.0.as_str()), Some("g"));
    let facts = &observation.facts;
    assert_eq!(
        (facts.cwd.as_deref(), facts.agent_version.as_deref(), facts.transcript.as_deref()),
        (Some("/p"), Some("3.7"), Some("/t.jsonl"))
    );
}

#[test]
fn its_process_is_found_by_its_rules() {
    let process = |pid, ppid, exe: &str, argv: &[&str]| ProcessInfo {
        pid,
        ppid,
        exe: exe.to_owned(),
        argv: argv.iter().map(|&a| a.to_owned()).collect(),
        ..ProcessInfo::default()
    };
    let chain = [
        process(30, 20, "/usr/bin/bash", &["bash"]),
        process(20, 10, "/h/.local/share/cursor-agent/versions/1/node", &["node", "index.js", "-p"]),
        process(10, 1, "/usr/bin/zsh", &["zsh"]),
    ];
    let adapter = cursor();
    assert_eq!(adapter.find_agent(&chain), Found::Agent { index: 1, shared: false });
    assert_eq!(adapter.can_ask(&chain[1]), Some(false));
    assert!(matches!(adapter.find_agent(&chain[..1]), Found::None { .. }));
}

#[test]
fn a_transcripts_records_are_told_apart_before_they_are_parsed() {
    let adapter = cursor();
    let mut reader = adapter.transcript("c", None).unwrap();
    let assistant = br#"{"role":"assistant","message":{}}"#;
    assert!(reader.wants(assistant));
    assert!(!reader.wants(br#"{"role":"user","message":{}}"#));
    let mut out = Parsed::default();
    reader.line(assistant, &mut out);
    reader.line(br#"{"role":"user","about":"assistant"}"#, &mut out);
    reader.line(b"\"assistant\"", &mut out);
    let [observation] = out.observations.as_slice() else { panic!("{out:?}") };
    assert_eq!(observation.session.as_deref(), Some("c"));
    assert!(matches!(observation.body, SignalBody::Activity { .. }));
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_what_was_meant() {
    check_file(&small(""), &[]);
    check_file(&small("[process]"), &["line 12: not TOML: duplicate key"]);
    check_file(
        &small("signl = \"idle\"\nkind = \"shel\""),
        &[
            "line 12: unknown key 'hooks.signals.signl'; allowed here are event, when, signal, kind; did you mean 'signal'?",
            "line 13: 'hooks.signals.kind' cannot be 'shel'; it takes shell, subagent, task, monitor, terminal; did you \
             mean 'shell'?",
        ],
    );
    check_file(
        &small("[[hooks.signals]]\nevent = \"go\"\nsignal = \"turn_endd\"\n[hook]"),
        &[
            "line 14: 'hooks.signals.signal' cannot be 'turn_endd'; it takes session_started, turn_started, activity, \
             tool_started, tool_finished, tool_failed, waiting, waiting_over, work_started, work_finished, turn_ended, \
             turn_aborted, turn_failed, idle, session_ended, nothing; did you mean 'turn_ended'?",
            "line 15: unknown key 'hook'; allowed here are agent, process, hooks, transcript; did you mean 'hooks'?",
        ],
    );
    check_file(
        &small("[[hooks.signals]]\nevent = \"go\"\nsignal = \"idle\""),
        &["line 13: 'hooks.signals.event' never holds: an earlier entry of the same event has no condition"],
    );
    check_file(
        &small("[[hooks.signals]]\nevent = \"tool\"\nsignal = \"tool_started\""),
        &["line 5: 'hooks.tool' is missing: a signal needs the field that has it"],
    );
    check_file(
        &small("[transcript]\nsignals = [{ when = { n = 1.5 }, signal = \"idle\" }]"),
        &[
            "line 5: 'hooks.transcript' is missing: the field that names the transcript's file",
            "line 13: 'transcript.signals.when.n' cannot be of type float; it takes text of at most 256 bytes, a whole number, \
             true or false",
            "line 13: 'transcript.signals.when' is missing: a text by which the record is told from others, as { type = \
             \"user\" }",
        ],
    );
    check_file(
        &small("").replace("turn_ended", "activity"),
        &["'hooks.signals' is missing: something starts a turn, so something must end it (turn_ended, turn_aborted, \
           turn_failed, idle or session_ended)"]
        .map(|text| Box::leak(format!("line 1: {text}").into_boxed_str()) as &str),
    );
    check_file(
        &small("").replace("\"mine\"", "\"Node\""),
        &[
            "line 3: 'process.names' cannot be 'Node'; it takes the name of the agent's own program; a script stands under \
           'scripts'",
        ],
    );
    check_file(
        &small("").replace("my-agent", "claude-code"),
        &["line 1: 'agent' cannot be 'claude-code'; it takes a name that no built-in agent has"],
    );
    check_file(
        &small("").replace("my-agent", "My Agent"),
        &[
            "line 1: 'agent' cannot be 'My Agent'; it takes 2 to 24 lower-case letters, digits and '-', a letter first",
        ],
    );
    check_file(
        &small("").replace("\"id\"", "\"a..b\""),
        &[
            "line 5: 'hooks.session' cannot be 'a..b'; it takes 1 to 8 names of fields with dots between, as 'message.id'",
        ],
    );
    check_file(
        "",
        &[
            "'agent' is missing: the agent's name, as in 'watchkeeper-hook NAME EVENT'",
            "'process' is missing: how its process is found",
            "'hooks' is missing: where its hooks' fields are, and what their events mean",
        ],
    );
    check_file(&" ".repeat(FILE_BYTES_MAX + 1), &["65537 bytes, more than 65536"]);
}

#[test]
fn no_file_says_more_than_a_screen() {
    let flood: String = (0..2000).map(|n| format!("k{n} = 1\n")).collect();
    assert_eq!(Declared::parse(&flood).unwrap_err().len(), 16);
    let rules = "[[hooks.signals]]\nevent = \"x\"\nsignal = \"idle\"\n".repeat(127);
    check_file(&small(&rules), &["line 6: 'hooks.signals' has more than 128 entries"]);
}

/// The daemon reads files while everybody else waits.
#[test]
fn a_hostile_file_costs_little_time() {
    let inline: String =
        (0..128).map(|n| format!("{{event=\"e{n}\",x=1,signal=\"{}\"}},", "y".repeat(200))).collect();
    for (what, text) in [
        ("nested arrays", format!("a={}", "[".repeat(60_000))),
        ("nested tables", format!("a={}", "{a=".repeat(20_000))),
        ("a long path", format!("{}a=1", "a.".repeat(30_000))),
        ("a table far below", format!("[{}a]", "a.".repeat(30_000))),
        ("unknown keys", (0..6000).map(|n| format!("k{n}=1\n")).collect()),
        ("tables", (0..8000).map(|n| format!("[t{n}]\n")).collect()),
        ("tables of one array", "[[a]]\n".repeat(10_000)),
        ("paths", (0..1000).map(|n| format!("{}k{n}=1\n", "a.".repeat(25))).collect()),
        ("rules", small(&format!("[hooks]\nsignals=[{inline}]"))),
        (
            "conditions",
            small(&format!("when={{{}}}", (0..6000).map(|n| format!("k{n}=1.5,")).collect::<String>())),
        ),
    ] {
        let began = std::time::Instant::now();
        assert!(Declared::parse(&text[..text.len().min(FILE_BYTES_MAX)]).is_err(), "{what}");
        let took = began.elapsed();
        assert!(took < std::time::Duration::from_secs(2), "{what}: {took:?}");
    }
}
