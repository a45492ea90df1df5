//! GitHub Copilot CLI.

mod ancestry;
pub mod install;
mod payload;
mod transcript;
mod work;

use serde_json::{Value, json};
use watchkeeper_core::{AgentKind, effect::HookAnswer};

use crate::{
    adapter::{Adapter, Parsed, TranscriptReader},
    ancestry::AncestryRules,
    install::Installer,
    observe::is_file_name_part,
};

/// The adapter; it has no state.
#[derive(Debug)]
pub struct Copilot;

impl Adapter for Copilot {
    fn kind(&self) -> AgentKind {
        AgentKind::Copilot
    }

    fn wakes_model(&self) -> bool {
        true
    }

    fn ancestry(&self) -> &'static AncestryRules<'static> {
        &ancestry::RULES
    }

    fn payload(&self, event: Option<&str>, _argv: &[&[u8]], payload: &[u8]) -> Parsed {
        payload::parse(event, payload)
    }

    fn transcript(&self, session: &str, saved: Option<&Value>) -> Option<Box<dyn TranscriptReader>> {
        Some(Box::new(transcript::Reader::new(session, saved)))
    }

    fn transcript_below_home(&self, session: &str) -> Option<String> {
        is_file_name_part(session).then(|| format!("session-state/{session}/events.jsonl"))
    }

    fn reply(&self, event: &str, answer: &HookAnswer) -> Option<String> {
        match (event, answer) {
            ("Stop", HookAnswer::Continue { message }) => {
                Some(json!({ "decision": "block", "reason": message }).to_string())
            }
            ("PermissionRequest", HookAnswer::Allow) => Some(json!({ "behavior": "allow" }).to_string()),
            ("PermissionRequest", HookAnswer::Deny { message }) => {
                Some(json!({ "behavior": "deny", "message": message }).to_string())
            }
            (
                _,
                HookAnswer::Nothing
                | HookAnswer::Continue { .. }
                | HookAnswer::Allow
                | HookAnswer::Deny { .. },
            ) => None,
        }
    }

    fn installer(&self) -> Option<&'static Installer> {
        Some(&install::INSTALLER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_has_a_transcript() {
        let check = |session: &str, place: Option<&str>| {
            assert_eq!(Copilot.transcript_below_home(session).as_deref(), place, "{session}");
        };
        check("a0c6-4B_1", Some("session-state/a0c6-4B_1/events.jsonl"));
        for hostile in ["", "..", "../a", "a/b", "a\\b", "C:", "a\0", "ä", "a b"] {
            check(hostile, None);
        }
    }
}
