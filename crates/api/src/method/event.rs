//! The journal as rows, and what a subscription pushes.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use watchkeeper_core::{signal::Source, view::ShownState};

use crate::{
    rpc::{ErrorCode, Failure},
    time::Time,
};

/// Rows of one answer when the caller names no limit.
pub const EVENTS_LIMIT_DEFAULT: u32 = 200;
/// Most rows of one answer; a higher limit is cut to it, and fewer come when they would not fit a frame.
pub const EVENTS_LIMIT_MAX: u32 = 1000;

/// Which rows. All conditions must hold; none given: from the beginning of what is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsParams {
    /// Rows with a greater sequence number.
    pub after_seq: Option<u64>,
    /// Rows received at or after this time.
    pub since: Option<Time>,
    /// A selector.
    pub session: Option<String>,
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// Oldest first.
    pub rows: Vec<EventRow>,
    /// The last sequence number looked at: pass it as `after_seq` to go on.
    pub next: u64,
    /// There are more rows already.
    pub more: bool,
}

/// One row of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    pub seq: u64,
    pub at: Time,
    /// The input's name: `signal`, `lid`, `deadline_reached`, …
    pub input: String,
    /// Full key of the session that it was resolved to.
    #[serde(default)]
    pub session: Option<String>,
    #[serde(default)]
    pub incarnation: Option<u32>,
    /// For signals: `hook`, `transcript`, …
    #[serde(default)]
    pub source: Option<String>,
    /// In a few words, e.g. `tool_started Bash`.
    pub what: String,
    /// What became of it when it changed nothing, e.g. `duplicate`; `null`: applied.
    #[serde(default)]
    pub verdict: Option<String>,
    /// Changes of shown states that it brought.
    #[serde(default)]
    pub transitions: Vec<TransitionRow>,
    /// The input as it is stored; absent when it does not fit or the caller may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitionRow {
    pub session: String,
    #[serde(default)]
    pub from: Option<ShownState>,
    pub to: ShownState,
    pub evidence: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscribeParams {
    /// Push the rows after this sequence number; absent: push no rows, only `changed`.
    pub from: Option<u64>,
    /// Only rows of this session.
    pub session: Option<String>,
}

/// A subscription stands. A `changed` with the present revision follows at once, so that nothing is missed between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribed {
    pub revision: u64,
    /// The newest row of the journal.
    pub seq: u64,
}

/// What the daemon pushes.
#[derive(Debug, Clone, PartialEq)]
pub enum Pushed {
    /// Status changed; several changes may come as one.
    Changed(Changed),
    Event(Box<EventRow>),
    /// The subscriber was too slow for rows: read those after `from` with `events`, later ones are pushed again.
    Lagged(Lagged),
    /// A notification that this version does not know.
    Other(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lagged {
    pub from: u64,
}

impl Pushed {
    /// Reads a notification.
    ///
    /// # Errors
    /// `InvalidParams` when a known notification does not carry what it must.
    pub fn parse(method: &str, params: Value) -> Result<Self, Failure> {
        let bad = |e: serde_json::Error| {
            Failure::new(ErrorCode::InvalidParams, format!("bad params for the notification '{method}': {e}"))
        };
        match method {
            "changed" => serde_json::from_value(params).map(Self::Changed).map_err(bad),
            "event" => serde_json::from_value(params).map(Self::Event).map_err(bad),
            "lagged" => serde_json::from_value(params).map(Self::Lagged).map_err(bad),
            other => Ok(Self::Other(other.chars().take(64).collect())),
        }
    }

    /// The notification to send.
    ///
    /// # Errors
    /// `Internal` when it cannot be written as JSON, `InvalidRequest` for [`Pushed::Other`].
    pub fn to_message(&self) -> Result<crate::rpc::Message, Failure> {
        let (method, params) = match self {
            Self::Changed(changed) => ("changed", serde_json::to_value(changed)),
            Self::Event(row) => ("event", serde_json::to_value(row)),
            Self::Lagged(lagged) => ("lagged", serde_json::to_value(lagged)),
            Self::Other(name) => {
                return Err(Failure::new(ErrorCode::InvalidRequest, format!("'{name}' cannot be sent")));
            }
        };
        let params =
            params.map_err(|e| Failure::new(ErrorCode::Internal, format!("cannot write it: {e}")))?;
        Ok(crate::rpc::Message::Notification { method: method.into(), params })
    }
}

/// The one spelling of a source.
#[must_use]
pub const fn source_name(source: Source) -> &'static str {
    match source {
        Source::Process => "process",
        Source::AgentState => "agent_state",
        Source::Hook => "hook",
        Source::Spool => "spool",
        Source::Transcript => "transcript",
        Source::Acp => "acp",
        Source::Mcp => "mcp",
        Source::User => "user",
        Source::Timer => "timer",
        Source::Recovery => "recovery",
    }
}
