//! Who is meant: agents, sessions, incarnations, processes, turns, deliveries.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

use crate::time::BootId;

/// The coding agents (and other doors) that sessions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    Claude,
    Codex,
    Copilot,
    OpenCode,
    Gemini,
    Qwen,
    /// An agent driven through the Agent Client Protocol; needs a namespace.
    Acp,
    /// A provider that reports its sessions through MCP; needs a namespace.
    Mcp,
    /// A plain command under `watchkeeper run`.
    Run,
}

impl AgentKind {
    pub const ALL: [Self; 9] = [
        Self::Claude,
        Self::Codex,
        Self::Copilot,
        Self::OpenCode,
        Self::Gemini,
        Self::Qwen,
        Self::Acp,
        Self::Mcp,
        Self::Run,
    ];

    /// The one spelling used in output, keys and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Acp => "acp",
            Self::Mcp => "mcp",
            Self::Run => "run",
        }
    }

    /// Whether a session of this kind must name its provider.
    #[must_use]
    pub const fn needs_namespace(self) -> bool {
        matches!(self, Self::Acp | Self::Mcp)
    }
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown agent '{given}'; known are claude, codex, copilot, opencode, gemini, qwen, acp, mcp, run")]
pub struct UnknownAgent {
    /// What was given, cut to 64 characters.
    pub given: String,
}

impl FromStr for AgentKind {
    type Err = UnknownAgent;

    /// Trimmed, ASCII case-folded, aliases accepted.
    fn from_str(s: &str) -> Result<Self, UnknownAgent> {
        let folded = s.trim().to_ascii_lowercase();
        match folded.as_str() {
            "claude" | "claude-code" | "claudecode" => Ok(Self::Claude),
            "codex" | "openai-codex" => Ok(Self::Codex),
            "copilot" | "github-copilot" | "copilot-cli" => Ok(Self::Copilot),
            "opencode" | "open-code" => Ok(Self::OpenCode),
            "gemini" | "gemini-cli" => Ok(Self::Gemini),
            "qwen" | "qwen-code" => Ok(Self::Qwen),
            "acp" => Ok(Self::Acp),
            "mcp" => Ok(Self::Mcp),
            "run" => Ok(Self::Run),
            _ => Err(UnknownAgent { given: s.trim().chars().take(64).collect() }),
        }
    }
}

/// The identity of a conversation: never its working directory, never a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    pub agent: AgentKind,
    /// The provider's name for `acp` and `mcp`, absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The agent's own id, or a fresh UUID for a caller without one.
    pub id: String,
}

impl SessionKey {
    #[must_use]
    pub fn new(agent: AgentKind, id: impl Into<String>) -> Self {
        Self { agent, namespace: None, id: id.into() }
    }
}

impl fmt::Display for SessionKey {
    /// `agent:id` or `agent/namespace:id`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(ns) => write!(f, "{}/{ns}:{}", self.agent, self.id),
            None => write!(f, "{}:{}", self.agent, self.id),
        }
    }
}

/// Counts the lives of one key, from 1. A start after an end mints the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u32);

/// The agent's own turn id, or `n<counter>` where it has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnId(pub String);

/// A process by pid *and* start identity *and* boot; a pid alone names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessRef {
    pub pid: u32,
    /// Linux: start time in clock ticks (`/proc/PID/stat` field 22). macOS: the kernel's unique process id.
    /// Windows: the creation FILETIME.
    pub start: u64,
    pub boot: BootId,
}

/// Random, unique in the journal: a signal that arrives by socket and by spool counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(#[serde(with = "hex128")] pub u128);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// 128-bit ids as 32 hex digits, since JSON numbers do not carry them everywhere.
pub(crate) mod hex128 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(v: &u128, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{v:032x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u128, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        u128::from_str_radix(&text, 16).map_err(|_| D::Error::custom("expected up to 32 hex digits"))
    }
}
