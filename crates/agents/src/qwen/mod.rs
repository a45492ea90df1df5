//! Qwen Code: a fork of Gemini CLI with hooks in Claude Code's form.

mod ancestry;
pub mod install;
mod payload;
mod transcript;
mod work;

use serde_json::Value;
use watchkeeper_core::{AgentKind, effect::HookAnswer};

use crate::{
    adapter::{Adapter, Parsed, TranscriptReader},
    ancestry::AncestryRules,
    install::Installer,
};

/// The adapter; it has no state.
#[derive(Debug)]
pub struct Qwen;

impl Adapter for Qwen {
    fn kind(&self) -> AgentKind {
        AgentKind::Qwen
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

    fn reply(&self, event: &str, answer: &HookAnswer) -> Option<String> {
        crate::reply::claude_form(event, answer)
    }

    fn installer(&self) -> Option<&'static Installer> {
        Some(&install::INSTALLER)
    }
}
