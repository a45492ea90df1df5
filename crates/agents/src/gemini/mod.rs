//! Gemini CLI.

mod ancestry;
pub mod install;
mod payload;
mod transcript;

use serde_json::{Value, json};
use watchkeeper_core::{AgentKind, effect::HookAnswer};

use crate::{
    adapter::{Adapter, Parsed, TranscriptReader},
    ancestry::AncestryRules,
    install::Installer,
};

/// The adapter; it has no state.
#[derive(Debug)]
pub struct Gemini;

impl Adapter for Gemini {
    fn kind(&self) -> AgentKind {
        AgentKind::Gemini
    }

    fn wakes_model(&self) -> bool {
        false
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

    /// Its permission dialogs ask no hook, so only a turn's end can be answered.
    fn reply(&self, event: &str, answer: &HookAnswer) -> Option<String> {
        match (event, answer) {
            ("AfterAgent", HookAnswer::Continue { message }) => {
                Some(json!({ "decision": "block", "reason": message }).to_string())
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
