//! Claude Code.

mod ancestry;
pub mod install;
mod payload;
mod registry;
mod transcript;

use serde_json::Value;
use watchkeeper_core::{AgentKind, effect::HookAnswer};

use crate::{
    adapter::{Adapter, Parsed, StateFile, TranscriptReader},
    ancestry::{AncestryRules, ProcessInfo},
    install::Installer,
};

/// The adapter; it has no state.
#[derive(Debug)]
pub struct Claude;

impl Adapter for Claude {
    fn kind(&self) -> AgentKind {
        AgentKind::Claude
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

    fn transcript(&self, session: &str, saved: Option<&Value>) -> Option<Box<dyn TranscriptReader>> {
        Some(Box::new(transcript::Reader::new(session, saved)))
    }

    fn state_dirs(&self, transcript: &str) -> Vec<String> {
        registry::dirs(transcript)
    }

    fn state_file(&self, file_name: &str, content: Option<&[u8]>) -> Option<StateFile> {
        registry::parse(file_name, content)
    }

    fn reply(&self, event: &str, answer: &HookAnswer) -> Option<String> {
        crate::reply::claude_form(event, answer)
    }

    fn installer(&self) -> Option<&'static Installer> {
        Some(&install::INSTALLER)
    }
}
