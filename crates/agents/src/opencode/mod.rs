//! OpenCode: no hooks of its own; a plugin of ours hands its events over, each as OpenCode gave it.

mod ancestry;
pub mod install;
mod payload;
mod task;

use serde_json::{Value, json};
use watchkeeper_core::{AgentKind, effect::HookAnswer};

use crate::{
    adapter::{Adapter, Parsed, TranscriptReader},
    ancestry::{AncestryRules, ProcessInfo},
    install::Installer,
};

/// The adapter; it has no state.
#[derive(Debug)]
pub struct OpenCode;

impl Adapter for OpenCode {
    fn kind(&self) -> AgentKind {
        AgentKind::OpenCode
    }

    fn wakes_model(&self) -> bool {
        true
    }

    fn ancestry(&self) -> &'static AncestryRules<'static> {
        &ancestry::RULES
    }

    fn can_ask(&self, agent: &ProcessInfo) -> Option<bool> {
        ancestry::can_ask(agent)
    }

    fn payload(&self, event: Option<&str>, _argv: &[&[u8]], payload: &[u8]) -> Parsed {
        payload::parse(event, payload)
    }

    /// It keeps its conversations in a database.
    fn transcript(&self, _session: &str, _saved: Option<&Value>) -> Option<Box<dyn TranscriptReader>> {
        None
    }

    /// Read by our plugin, which calls OpenCode for it.
    fn reply(&self, event: &str, answer: &HookAnswer) -> Option<String> {
        let asks_permission = event.starts_with("permission.");
        match answer {
            HookAnswer::Continue { message } if !asks_permission => {
                Some(json!({ "prompt": message }).to_string())
            }
            HookAnswer::Allow if asks_permission => Some(json!({ "permission": "once" }).to_string()),
            HookAnswer::Deny { message } if asks_permission => {
                Some(json!({ "permission": "reject", "message": message }).to_string())
            }
            HookAnswer::Nothing
            | HookAnswer::Continue { .. }
            | HookAnswer::Allow
            | HookAnswer::Deny { .. } => None,
        }
    }

    fn installer(&self) -> Option<&'static Installer> {
        Some(&install::INSTALLER)
    }
}
