use watchkeeper_core::SignalBody;

use super::*;
use crate::{
    claude::install::INSTALLER as CLAUDE,
    codex::install::INSTALLER as CODEX,
    copilot::install::INSTALLER as COPILOT,
    gemini::install::INSTALLER as GEMINI,
    install::{Installer, Instance, Timeouts, Trust},
    qwen::install::INSTALLER as QWEN,
};

mod foreign;

/// Every agent with such a file.
const AGENTS: [&Installer; 5] = [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &QWEN];

fn wiring() -> Wiring {
    Wiring {
        program: "/opt/w k/watchkeeper-hook".to_owned(),
        instance: Instance::Default,
        state: "/state".to_owned(),
        timeouts: Timeouts::default(),
        shell: Shell::Posix,
        mcp: None,
    }
}

fn file(installer: &Installer) -> &'static dyn ConfigFile {
    installer.files[0]
}

fn codex_trust(texts: &[Option<&str>]) -> Trust {
    CODEX.trust.unwrap()("/h/hooks.json", texts)
}

fn claude() -> &'static dyn ConfigFile {
    file(&CLAUDE)
}

fn install(file: &dyn ConfigFile, text: &str) -> String {
    match file.install(Some(text), &wiring()).unwrap() {
        Edit::Write(text) => text,
        other @ (Edit::Keep | Edit::Delete) => panic!("{other:?} for {text}"),
    }
}

/// Installs, checks the state, and removes again: the file must be as it was.
fn check_round_trip(file: &dyn ConfigFile, before: &str) -> String {
    let after = install(file, before);
    let inspection = file.inspect(Some(&after), &wiring()).unwrap();
    assert!(inspection.is_current(), "{inspection:?}\n{after}");
    assert_eq!(file.install(Some(&after), &wiring()).unwrap(), Edit::Keep, "{after}");
    let removed = file.remove(Some(&after), Some(Original::Text(before))).unwrap();
    assert_eq!(removed, Edit::Write(before.to_owned()));
    assert_eq!(file.remove(Some(before), None).unwrap(), Edit::Keep);
    after
}

fn check_refused(text: &str, expected: &str) {
    let refusal = claude().install(Some(text), &wiring()).unwrap_err();
    assert_eq!(refusal.to_string(), expected, "{text}");
    assert!(!refusal.advice().is_empty());
}

#[test]
fn a_new_file_holds_exactly_our_entries() {
    for installer in AGENTS {
        let file = file(installer);
        let Edit::Write(text) = file.install(None, &wiring()).unwrap() else { panic!("nothing written") };
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let inspection = file.inspect(Some(&text), &wiring()).unwrap();
        assert!(inspection.is_current() && !inspection.is_absent());
        assert_eq!(value["hooks"].as_object().unwrap().len(), inspection.current.len());
        assert_eq!(file.remove(Some(&text), Some(Original::Absent)).unwrap(), Edit::Delete);
        assert_eq!(file.inspect(None, &wiring()).unwrap().missing, inspection.current);
    }
}

#[test]
fn each_agent_gets_its_own_form() {
    let value = |installer: &Installer| -> serde_json::Value {
        let Edit::Write(text) = file(installer).install(None, &wiring()).unwrap() else {
            panic!("nothing written")
        };
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(
        value(&CLAUDE)["hooks"]["Stop"],
        serde_json::json!([{"hooks": [{
            "type": "command", "command": "\"/opt/w k/watchkeeper-hook\" claude Stop", "timeout": 550
        }]}])
    );
    assert_eq!(
        value(&CODEX)["hooks"]["PermissionRequest"],
        serde_json::json!([{"hooks": [{
            "type": "command", "command": "\"/opt/w k/watchkeeper-hook\" codex PermissionRequest", "timeout": 150
        }]}])
    );
    assert_eq!(
        value(&GEMINI)["hooks"]["AfterAgent"],
        serde_json::json!([{"hooks": [{
            "type": "command", "command": "\"/opt/w k/watchkeeper-hook\" gemini AfterAgent", "timeout": 550_000
        }]}])
    );
    assert_eq!(
        value(&QWEN)["hooks"]["Stop"],
        serde_json::json!([{"hooks": [{
            "type": "command", "command": "\"/opt/w k/watchkeeper-hook\" qwen Stop", "timeout": 550
        }]}])
    );
    let copilot = value(&COPILOT);
    assert_eq!(copilot["version"], 1);
    assert_eq!(
        copilot["hooks"]["PreToolUse"],
        serde_json::json!([{
            "type": "command", "bash": "\"/opt/w k/watchkeeper-hook\" copilot PreToolUse || true", "timeoutSec": 10
        }])
    );
}

/// Payloads with a field for everything that an event could need: of the session, of a subagent, of a dialog of Gemini's.
fn rich_payloads(event: &str) -> [String; 3] {
    let of = |field: &str, text: &str| {
        let mut payload = serde_json::json!({
            "session_id": "s", "hook_event_name": event, "prompt": "p", "tool_name": "Bash", "tool_use_id": "t",
            "task_id": "k", "source": "startup", "reason": "user_exit", "recoverable": true,
            "notification_type": "permission_prompt",
        });
        payload[field] = text.into();
        payload.to_string()
    };
    [of("cwd", "/w"), of("agent_id", "a"), of("notification_type", "ToolPermission")]
}

#[test]
fn only_events_that_say_something_are_hooked() {
    // Each would cost its agent a process a chunk of text, a request to the model or a change of files.
    const TOO_MANY: [&str; 12] = [
        "MessageDisplay",
        "PostToolBatch",
        "BeforeModel",
        "AfterModel",
        "BeforeToolSelection",
        "PreCompress",
        "FileChanged",
        "CwdChanged",
        "InstructionsLoaded",
        "ConfigChange",
        "WorktreeCreate",
        "WorktreeRemove",
    ];
    for installer in AGENTS {
        let agent = installer.agent;
        let events = file(installer).inspect(None, &wiring()).unwrap().missing;
        for event in &events {
            assert!(!TOO_MANY.contains(&event.as_str()), "{agent} {event}");
            let says = |payload: &String| {
                let parsed = crate::adapter(agent).unwrap().payload(Some(event), &[], payload.as_bytes());
                parsed
                    .observations
                    .iter()
                    .any(|o| !matches!(o.body, SignalBody::Displayed { .. } | SignalBody::Unknown { .. }))
            };
            assert!(rich_payloads(event).iter().any(says), "{agent} {event}");
        }
    }
}

#[test]
fn foreign_files_come_back_byte_for_byte() {
    let check = |text: &str| drop(check_round_trip(claude(), text));
    check("");
    check("\n");
    check("// nothing yet");
    check("{}");
    check("{ }");
    check("{\r\n}\r\n");
    check("\u{feff}{\"a\": 1}");
    check("{\"model\":\"opus\"}");
    check("{\n\t\"model\": \"opus\", // mine\n}\n");
    check("{\"hooks\":{}}");
    check("{\n  \"hooks\": { /* none */ }\n}");
    check("{\"hooks\":{\"Stop\":[]}}");
    check("{\n    \"hooks\": {\n        \"Stop\": [ ],\n    },\n    \"z\": 1,\n}");
    check(
        "{\"hooks\":{\"Stop\":[{\"matcher\":\"x\",\"hooks\":[{\"type\":\"command\",\"command\":\"beep\"}]}]}}",
    );
    check("{\"hooks\":{\"Stop\":[\"odd\", 7, {\"hooks\": 3}], \"Other\": {\"not\": \"a list\"}}}");
    check("{\"a\":1,\"a\":2,\"hooks\":{\"Stop\":[1]},\"hooks\":{\"Stop\":[2],\"Stop\":[3]}}");
    check("{\r\n  \"a\": [1,\r\n    2], // x\r\n  // y\r\n}");
    check(
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/x/my-watchkeeper-hook claude Stop\"}]}]}}",
    );
}

#[test]
fn duplicate_keys_do_not_come_back_into_force() {
    let before = "{\"hooks\":{\"SessionEnd\":[{\"hooks\":[]}],\"SessionEnd\":[]}}";
    let after = check_round_trip(claude(), before);
    let Edit::Write(bare) = claude().remove(Some(&after), None).unwrap() else { panic!("nothing written") };
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&bare).unwrap()["hooks"]["SessionEnd"],
        serde_json::json!([])
    );
    check_round_trip(file(&COPILOT), "{}");
}

#[test]
fn ours_stand_behind_foreign_ones() {
    let before = "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"beep\" }] }\n    ]\n  }\n}\n";
    let after = check_round_trip(claude(), before);
    let value: serde_json::Value = serde_json::from_str(&after).unwrap();
    assert_eq!(value["hooks"]["Stop"][0]["hooks"][0]["command"], "beep");
    assert_eq!(value["hooks"]["Stop"].as_array().unwrap().len(), 2);
}

#[test]
fn older_entries_are_replaced_in_place() {
    let before = check_round_trip(claude(), "{\"a\": 1}");
    let moved = Wiring { program: "/new/watchkeeper-hook".to_owned(), ..wiring() };
    let Edit::Write(after) = claude().install(Some(&before), &moved).unwrap() else {
        panic!("nothing written")
    };
    assert!(!after.contains("/opt/w k/"));
    assert!(claude().inspect(Some(&after), &moved).unwrap().is_current());
    let seen_by_old = claude().inspect(Some(&after), &wiring()).unwrap();
    assert_eq!(seen_by_old.outdated.len(), CLAUDE.files[0].inspect(None, &wiring()).unwrap().missing.len());
    assert_eq!(
        claude().remove(Some(&after), Some(Original::Text("{\"a\": 1}"))).unwrap(),
        Edit::Write("{\"a\": 1}".to_owned())
    );
}

#[test]
fn stray_entries_of_ours_are_cleared() {
    let ours =
        |event: &str| format!("{{\"type\": \"command\", \"command\": \"watchkeeper-hook claude {event}\"}}");
    let before = format!(
        "{{\"hooks\": {{\"MessageDisplay\": [{{\"hooks\": [{}]}}], \"Stop\": [{{\"matcher\": \"x\", \"hooks\": [{}, \
         {{\"type\": \"command\", \"command\": \"beep\"}}]}}, {{\"hooks\": [{}]}}, {{\"hooks\": [{}]}}]}}}}",
        ours("MessageDisplay"),
        ours("Stop"),
        ours("Stop"),
        ours("Stop")
    );
    let after = install(claude(), &before);
    let value: serde_json::Value = serde_json::from_str(&after).unwrap();
    assert!(value["hooks"].get("MessageDisplay").is_none(), "{after}");
    let stop = value["hooks"]["Stop"].as_array().unwrap();
    assert_eq!(stop.len(), 2, "{after}");
    assert_eq!(
        stop[0],
        serde_json::json!({"matcher": "x", "hooks": [{"type": "command", "command": "beep"}]})
    );
    assert_eq!(claude().install(Some(&after), &wiring()).unwrap(), Edit::Keep);
}

#[test]
fn what_others_wrote_since_stays() {
    let check = |original: &str, since: &dyn Fn(&str) -> String| {
        let now = since(&install(claude(), original));
        assert_eq!(
            claude().remove(Some(&now), Some(Original::Text(original))).unwrap(),
            Edit::Write(since(original)),
            "{now}"
        );
    };
    check("{\"a\": 1}", &|text| text.replacen("\"a\": 1", "\"a\": 2", 1));
    check("{\n  \"a\": 1\n}\n", &|text| text.replacen("\"a\": 1", "\"b\": [1, 2], \"a\": 1", 1));
    check("{\n  \"a\": 1,\n}\n", &|text| format!("// new\n{text}"));
    // Another tool's hook in a list that we made.
    let now = install(claude(), "{\"a\": 1}").replacen("\"Stop\": [", "\"Stop\": [{\"hooks\": [7]}, ", 1);
    assert_eq!(
        claude().remove(Some(&now), Some(Original::Text("{\"a\": 1}"))).unwrap(),
        Edit::Write("{\"a\": 1, \"hooks\": {\"Stop\": [{\"hooks\": [7]}]}}".to_owned())
    );
    // Rewritten by the agent in its own style.
    let now = install(claude(), "{\"a\": 1 /* lost */}");
    let mut value: serde_json::Value = serde_json::from_str(&now.replace("/* lost */", "")).unwrap();
    value["b"] = true.into();
    let now = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(claude().install(Some(&now), &wiring()).unwrap(), Edit::Keep);
    assert_eq!(
        claude().remove(Some(&now), None).unwrap(),
        Edit::Write("{\n  \"a\": 1,\n  \"b\": true\n}".to_owned())
    );
}

#[test]
fn comments_that_others_put_among_ours_stay() {
    let now = install(claude(), "{}").replacen("\"Stop\":", "// why\n    \"Stop\":", 1);
    let Edit::Write(text) = claude().remove(Some(&now), None).unwrap() else { panic!("nothing written") };
    assert!(text.contains("// why"), "{text}");
    assert!(!text.contains("watchkeeper-hook"), "{text}");
    Document::parse(&text).unwrap();
}

#[test]
fn copilots_own_file_goes_when_nothing_else_is_in_it() {
    let copilot = file(&COPILOT);
    let Edit::Write(text) = copilot.install(None, &wiring()).unwrap() else { panic!("nothing written") };
    assert_eq!(copilot.remove(Some(&text), None).unwrap(), Edit::Delete);
    let kept = text.replacen("\"version\"", "\"mine\": 1, \"version\"", 1);
    assert!(matches!(copilot.remove(Some(&kept), None).unwrap(), Edit::Write(_)));
}

#[test]
fn files_that_need_a_guess_are_refused() {
    check_refused("{\"a\": 1", "it is not valid JSON: line 1, column 1: Unterminated object");
    check_refused("[]", "'settings.json' in it is a list, not an object");
    check_refused("{\"hooks\": []}", "'hooks' in it is a list, not an object");
    check_refused("{\"hooks\": null}", "'hooks' in it is null, not an object");
    check_refused("{\"hooks\": {\"Stop\": \"beep\"}}", "'hooks.Stop' in it is text, not a list");
    // Broken, but without anything of ours: removal has nothing to do and says so by doing nothing.
    assert_eq!(claude().remove(Some("{\"a\": 1"), None).unwrap(), Edit::Keep);
    assert!(claude().remove(Some("{\"a\": \"watchkeeper-hook\""), None).is_err());
}

#[test]
fn a_file_that_switches_hooks_off_is_reported() {
    let after = install(claude(), "{\"disableAllHooks\": true}");
    assert_eq!(claude().inspect(Some(&after), &wiring()).unwrap().disabled, ["disableAllHooks is true"]);
    let gemini = file(&GEMINI);
    let disabled = |text: &str| gemini.inspect(Some(&install(gemini, text)), &wiring()).unwrap().disabled;
    assert_eq!(disabled("{\"hooksConfig\": {\"enabled\": false}}"), ["hooksConfig.enabled is false"]);
    assert!(disabled("{\"hooksConfig\": {\"enabled\": true}, \"enabled\": false}").is_empty());
    assert!(disabled("{\"hooksConfig\": false}").is_empty());
}

#[test]
fn hooks_that_are_switched_off_one_by_one_are_reported() {
    let gemini = file(&GEMINI);
    let command = |event: &str| wiring().command(AgentKind::Gemini, event, Shell::Posix);
    let check = |config: serde_json::Value, expected: &[&str]| {
        let text = install(gemini, &serde_json::json!({ "hooksConfig": config }).to_string());
        let found = gemini.inspect(Some(&text), &wiring()).unwrap();
        assert_eq!(found.switched_off, expected, "{text}");
        assert!(found.is_current() && found.disabled.is_empty(), "{found:?}");
    };
    let off = |names: &[&str]| serde_json::json!({ "disabled": names });
    check(off(&["another's hook", &command("AfterAgent")]), &["AfterAgent"]);
    check(off(&[&command("SessionEnd"), &command("BeforeTool")]), &["BeforeTool", "SessionEnd"]);
    check(off(&["AfterAgent", "watchkeeper-hook", &command("PreToolUse")]), &[]);
    check(serde_json::json!({ "disabled": {} }), &[]);
    check(serde_json::json!([]), &[]);
}

#[test]
fn codex_reads_plain_json_only() {
    let check = |before: &str, readable: bool| {
        let after = install(file(&CODEX), before);
        let disabled = file(&CODEX).inspect(Some(&after), &wiring()).unwrap().disabled;
        assert_eq!(disabled.is_empty(), readable, "{after}");
    };
    check("", true);
    check("{\"a\": 1}", true);
    check("{\"a\": 1,}", false);
    check("{\"a\": 1} // mine", false);
    check("\u{feff}{}", false);
    check("// nothing\n", false);
}

#[test]
fn codex_trust_is_read_by_position_and_content() {
    let before = "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"beep\"}]}]}}";
    let hooks = install(file(&CODEX), before);
    let config = "[hooks.state.\"/h/hooks.json:stop:1:0\"]\ntrusted_hash = \"sha256:00\"\n\
                  [hooks.state.\"/h/hooks.json:session_start:0:0\"]\nenabled = false\ntrusted_hash = \"sha256:00\"\n\
                  [hooks.state.\"/h/hooks.json:pre_tool_use:1:0\"]\ntrusted_hash = \"sha256:00\"\n";
    let trust = codex_trust(&[Some(&hooks), Some(config)]);
    assert_eq!(trust.changed, ["Stop"]);
    assert_eq!(trust.switched_off, ["SessionStart"]);
    assert_eq!(trust.untrusted.len(), 10);
    let trust = codex_trust(&[Some(&hooks), None]);
    assert_eq!(trust.untrusted.len(), 12);
    assert!(CLAUDE.trust.is_none());
}

/// What Codex 0.171.0 wrote into its config.toml when these hooks were trusted in its own dialog. It cuts the timeouts of
/// Interrupt and SessionEnd to 3 s before it takes the checksum.
#[test]
fn codex_trust_is_what_codex_itself_recorded() {
    let entry = |event: &str, timeout_s: u32| {
        let command = format!("\\\"/opt/watchkeeper/watchkeeper-hook\\\" codex {event}");
        format!(
            "{{\"hooks\": [{{\"type\": \"command\", \"command\": \"{command}\", \"timeout\": {timeout_s}}}]}}"
        )
    };
    let hooks = format!(
        "{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{{\"type\": \"command\", \"command\": \"true\", \"timeout\": 5}}]}}, {}], \
         \"SessionStart\": [{}], \"Interrupt\": [{}], \"SessionEnd\": [{}]}}}}",
        entry("Stop", 550),
        entry("SessionStart", 10),
        entry("Interrupt", 10),
        entry("SessionEnd", 10)
    );
    let recorded = [
        ("interrupt:0:0", "6d9318ceef69b861a0475b7a09e850dc43b6ca26702e5f87e1f6b9e9f0924206"),
        ("session_end:0:0", "7e9575d7e5be509f6a3b69a817390c3196b8a8ec6186ec6062232f44b5343eba"),
        ("session_start:0:0", "0acfd4b69c41a68ad0ff08401d2f5fb4ad87cceb2cd100e556b6899541e6082d"),
        ("stop:0:0", "99551a51b888f6dc725f1199663b7b1e1ef9bb9b9cab0612d84e5e9218aca6f5"),
        ("stop:1:0", "d377a8221965b248f463f3f8afd36d64c8bb01a93ff7ec71ffe8022dd73970b4"),
    ];
    let config: String = recorded
        .iter()
        .map(|(key, hash)| {
            format!("[hooks.state.\"/h/hooks.json:{key}\"]\ntrusted_hash = \"sha256:{hash}\"\n")
        })
        .collect();
    let trust = |hooks: &str| codex_trust(&[Some(hooks), Some(&config)]);
    assert_eq!(trust(&hooks).trusted, ["Stop", "SessionStart", "Interrupt", "SessionEnd"]);
    let slower = trust(&hooks.replace("550", "551"));
    assert_eq!((slower.trusted.len(), slower.changed), (3, vec!["Stop".to_owned()]));
}

#[test]
fn a_long_wait_is_written_in_the_agents_unit() {
    let mut wiring = wiring();
    wiring.timeouts.stop_s = 4000;
    let timeout = |installer: &Installer, event: &str| {
        let Edit::Write(text) = file(installer).install(None, &wiring).unwrap() else {
            panic!("nothing written")
        };
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["hooks"][event][0]["hooks"][0]["timeout"].as_u64()
    };
    assert_eq!(timeout(&CLAUDE, "Stop"), Some(4000));
    assert_eq!(timeout(&QWEN, "Stop"), Some(4_000_000));
    assert_eq!(timeout(&GEMINI, "AfterAgent"), Some(4_000_000));
    assert_eq!(timeout(&GEMINI, "BeforeAgent"), Some(10_000));
}

#[test]
fn on_windows_each_agent_gets_its_own_shell() {
    let wiring = Wiring { shell: Shell::PowerShell, ..wiring() };
    let entry = |installer: &Installer, event: &str| {
        let file = file(installer);
        let Edit::Write(text) = file.install(None, &wiring).unwrap() else { panic!("nothing written") };
        assert!(file.inspect(Some(&text), &wiring).unwrap().is_current());
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["hooks"][event][0]["hooks"][0].clone()
    };
    let program = "'/opt/w k/watchkeeper-hook'";
    assert_eq!(entry(&CLAUDE, "Stop")["command"], "\"/opt/w k/watchkeeper-hook\" claude Stop");
    assert_eq!(entry(&GEMINI, "AfterAgent")["command"], format!("& {program} gemini AfterAgent"));
    let qwen = entry(&QWEN, "Stop");
    assert_eq!(qwen["command"], format!("& {program} qwen Stop"));
    assert_eq!(qwen["shell"], "powershell");
}
