//! Claude's registry of live sessions, `sessions/<pid>.json` in its home: what the agent itself says it does.
//!
//! The file is removed at an orderly end and left behind after a kill, so the statement counts only while the process
//! it names lives with the start time it names; that check is the shell's.

use watchkeeper_core::{
    Wall,
    signal::{AgentState, Facts, SignalBody, Thread},
};

use super::ancestry::entry_point_can_ask;
use crate::{
    adapter::{Observation, StateFile},
    json,
    observe::{id, label, path},
};

/// The registry's folder for the home that holds this transcript (`…/projects/<folder>/<session>.jsonl`).
pub(super) fn dirs(transcript: &str) -> Vec<String> {
    let separator = if transcript.contains('/') { '/' } else { '\\' };
    let mut parts: Vec<&str> = transcript.split(separator).collect();
    let Some(projects) = parts.iter().rposition(|part| *part == "projects") else { return Vec::new() };
    if projects == 0 {
        return Vec::new();
    }
    parts.truncate(projects);
    parts.push("sessions");
    vec![parts.join(&separator.to_string())]
}

/// One file of that folder; `None` for other names and for content that says nothing.
pub(super) fn parse(file_name: &str, content: Option<&[u8]>) -> Option<StateFile> {
    // The kernel gives no process of a user the number 0.
    let pid: u32 = file_name.strip_suffix(".json")?.parse().ok().filter(|pid| *pid > 0)?;
    let Some(content) = content else {
        let body = SignalBody::AgentStated { state: AgentState::Gone, waiting_for: None };
        let observation = Observation {
            session: None,
            turn: None,
            thread: Thread::Main,
            at: None,
            facts: Facts::default(),
            body,
        };
        return Some(StateFile { observation, pid, start: None });
    };
    let value = json::parse_object(content).ok()?;
    // A copy under another name speaks of nobody.
    if value.get("pid").and_then(serde_json::Value::as_u64) != Some(u64::from(pid)) {
        return None;
    }
    let session = id(&value, "sessionId")?.to_owned();
    let waiting_for = json::text(&value, "waitingFor").map(label);
    let state = match json::text(&value, "status")? {
        "busy" => AgentState::Busy,
        "idle" => AgentState::Idle,
        "shell" => AgentState::Shell,
        "waiting" if waiting_for.as_deref() == Some("dialog open") => AgentState::Dialog,
        "waiting" => AgentState::Waiting,
        _ => return None,
    };
    let at = value.get("statusUpdatedAt").and_then(serde_json::Value::as_i64).map(Wall);
    let start = json::text(&value, "procStart").and_then(|ticks| ticks.parse().ok());
    let facts = Facts {
        cwd: path(&value, "cwd"),
        title: json::text(&value, "name")
            .filter(|_| json::text(&value, "nameSource") != Some("derived"))
            .map(label),
        agent_version: json::text(&value, "version").map(label),
        can_ask: entry_point_can_ask(json::text(&value, "entrypoint")),
        ..Facts::default()
    };
    let body = SignalBody::AgentStated { state, waiting_for };
    let observation =
        Observation { session: Some(session), turn: None, thread: Thread::Main, at, facts, body };
    Some(StateFile { observation, pid, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, content: &str, expected: Option<(&str, u32, Option<u64>, AgentState)>) {
        let said = parse(name, Some(content.as_bytes())).map(|file| {
            let SignalBody::AgentStated { state, .. } = file.observation.body else { panic!("no state") };
            (file.observation.session.unwrap(), file.pid, file.start, state)
        });
        assert_eq!(said, expected.map(|(s, p, t, state)| (s.to_owned(), p, t, state)), "{name} {content}");
    }

    #[test]
    fn reads_the_state_of_the_named_process() {
        let file = |rest: &str| format!(r#"{{"pid":7,"sessionId":"s","procStart":"99",{rest}}}"#);
        check("7.json", &file(r#""status":"busy""#), Some(("s", 7, Some(99), AgentState::Busy)));
        check("7.json", &file(r#""status":"shell""#), Some(("s", 7, Some(99), AgentState::Shell)));
        let waiting = file(r#""status":"waiting","waitingFor":"permission prompt""#);
        check("7.json", &waiting, Some(("s", 7, Some(99), AgentState::Waiting)));
        let dialog = file(r#""status":"waiting","waitingFor":"dialog open""#);
        check("7.json", &dialog, Some(("s", 7, Some(99), AgentState::Dialog)));
    }

    #[test]
    fn says_nothing_about_other_files() {
        let busy = r#"{"pid":7,"sessionId":"s","status":"busy"}"#;
        check("8.json", busy, None);
        check("7.json.tmp", busy, None);
        check("../7.json", busy, None);
        check("7.json", r#"{"pid":7,"sessionId":"s","status":"dreaming"}"#, None);
        check("7.json", "", None);
        assert_eq!(parse("7.json", None).map(|f| f.pid), Some(7));
        assert_eq!(parse("0.json", None), None);
    }

    #[test]
    fn lies_beside_the_projects_folder() {
        assert_eq!(dirs("/h/.claude/projects/-w/s.jsonl"), ["/h/.claude/sessions"]);
        assert_eq!(dirs("/h/projects/x/.claude/projects/-w/s.jsonl"), ["/h/projects/x/.claude/sessions"]);
        assert_eq!(dirs("C:\\h\\.claude\\projects\\w\\s.jsonl"), ["C:\\h\\.claude\\sessions"]);
        assert!(dirs("/elsewhere/s.jsonl").is_empty());
    }
}
