//! Sessions: the manual and scripted interface, and the evidence behind a state.

use serde::{Deserialize, Serialize};
use watchkeeper_core::{
    AgentKind,
    view::{Evidence, ShownState},
};

use crate::{status::Session, time::Time};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionParams {
    /// See [`crate::select`].
    pub session: String,
}

/// Starts a turn of a session, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStartParams {
    pub agent: AgentKind,
    /// Required for agents of which [`AgentKind::needs_namespace`] is true, refused for others.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The agent's own id; a fresh UUID when absent.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub prompt: Option<String>,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub transcript: Option<String>,
    /// The agent's process; must be alive. Absent: found among the caller's ancestors.
    #[serde(default)]
    pub pid: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStopParams {
    pub session: String,
    /// The final message of the turn.
    #[serde(default)]
    pub message: Option<String>,
    /// The session is over, not only its turn.
    #[serde(default)]
    pub end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionActivityParams {
    pub session: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSoftlockParams {
    pub session: String,
    /// A public reason code or free text.
    pub reason: String,
}

/// What a statement about a session came to. It is durable when this arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// The full key.
    pub session: String,
    pub incarnation: Option<u32>,
    /// The state after it; `null` when the session is not known (any more).
    pub state: Option<ShownState>,
    /// What became of it when it changed nothing, e.g. `stale`; `null`: applied.
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainParams {
    pub session: String,
}

/// A session's state with the evidence that led to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    pub session: Session,
    /// Oldest first.
    pub evidence: Vec<EvidenceRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRow {
    pub at: Time,
    /// When it happened, if that differs from when it was received.
    #[serde(default)]
    pub happened: Option<Time>,
    /// `hook`, `transcript`, `process`, …
    pub source: String,
    /// What was said, e.g. `stop`.
    pub what: String,
    /// What was made of it, e.g. `stop deferred: 1 shell is live`.
    pub rule: String,
    /// The state after it, when it changed.
    #[serde(default)]
    pub to: Option<ShownState>,
}

impl EvidenceRow {
    #[must_use]
    pub fn of(evidence: &Evidence) -> Self {
        Self {
            at: evidence.at.into(),
            happened: evidence.happened.map(Time),
            source: super::event::source_name(evidence.source).into(),
            what: evidence.what.clone(),
            rule: evidence.rule.clone(),
            to: evidence.to,
        }
    }
}
