//! Codex.

mod ancestry;
pub mod install;
mod payload;
mod transcript;

use serde_json::Value;
use watchkeeper_core::{AgentKind, effect::HookAnswer};

use crate::{
    adapter::{Adapter, Parsed, TranscriptReader, TranscriptSearch},
    ancestry::{AncestryRules, ProcessInfo},
    install::Installer,
    observe::is_file_name_part,
    reply,
};

/// The adapter; it has no state.
#[derive(Debug)]
pub struct Codex;

impl Adapter for Codex {
    fn kind(&self) -> AgentKind {
        AgentKind::Codex
    }

    fn wakes_model(&self) -> bool {
        false
    }

    fn ancestry(&self) -> &'static AncestryRules<'static> {
        &ancestry::RULES
    }

    fn can_ask(&self, agent: &ProcessInfo) -> Option<bool> {
        ancestry::can_ask(agent)
    }

    fn payload(&self, event: Option<&str>, argv: &[&[u8]], payload: &[u8]) -> Parsed {
        payload::parse(event, argv, payload)
    }

    fn transcript(&self, session: &str, saved: Option<&Value>) -> Option<Box<dyn TranscriptReader>> {
        Some(Box::new(transcript::Reader::new(session, saved)))
    }

    /// `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`, by the day on which the session began.
    fn transcript_search(&self, session: &str) -> Option<TranscriptSearch> {
        let name_end = format!("-{session}.jsonl");
        is_file_name_part(session).then_some(TranscriptSearch { folder: "sessions", depth: 3, name_end })
    }

    fn reply(&self, event: &str, answer: &HookAnswer) -> Option<String> {
        reply::claude_form(event, answer)
    }

    fn installer(&self) -> Option<&'static Installer> {
        Some(&install::INSTALLER)
    }
}
