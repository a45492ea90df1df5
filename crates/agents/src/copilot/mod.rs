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

    fn owns_transcript(&self, path: &str, session: &str) -> bool {
        let mut segments = path.rsplit(['/', '\\']);
        segments.next() == Some("events.jsonl") && segments.next() == Some(session)
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

    fn installer(&self) -> Option<&'static dyn Installer> {
        Some(&install::CopilotInstall)
    }
}
