//! Who is meant: agents, sessions, incarnations, processes, turns, deliveries.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, Visitor},
};
use std::{fmt, str::FromStr};

use crate::time::BootId;

/// The coding agents (and other doors) that sessions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// An agent that a file of the user's declares. Its file may be gone while its sessions are still told of.
    Declared(DeclaredName),
}

impl AgentKind {
    /// Those that are built in.
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
    pub fn name(&self) -> &str {
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
            Self::Declared(name) => name.as_str(),
        }
    }

    /// As [`str::parse`], but any other name that a file could declare is that declared agent. For doors behind which
    /// somebody who knows the files decides whether it is declared at all.
    ///
    /// # Errors
    /// The word is no name of an agent.
    pub fn named(word: &str) -> Result<Self, UnknownAgent> {
        word.parse().or_else(|unknown| DeclaredName::new(word).map(Self::Declared).ok_or(unknown))
    }

    /// Whether a session of this kind must name its provider.
    #[must_use]
    pub const fn needs_namespace(self) -> bool {
        matches!(self, Self::Acp | Self::Mcp)
    }
}

/// The name of a declared agent: a letter, then letters, digits and `-`, in lower case, two to [`DeclaredName::BYTES_MAX`]
/// bytes; never a name or an alias of an agent that is built in. Kept in place, so that a kind stays a plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeclaredName {
    /// The rest is zero, so that equal names have equal bytes.
    bytes: [u8; Self::BYTES_MAX],
}

impl DeclaredName {
    pub const BYTES_MAX: usize = 24;

    /// Trimmed and ASCII case-folded; `None` for what is no such name.
    #[must_use]
    pub fn new(word: &str) -> Option<Self> {
        let folded = word.trim().to_ascii_lowercase();
        let is_name = folded.len() >= 2
            && folded.starts_with(|c: char| c.is_ascii_lowercase())
            && folded.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && folded.parse::<AgentKind>().is_err();
        let mut bytes = [0; Self::BYTES_MAX];
        bytes.get_mut(..folded.len()).filter(|_| is_name)?.copy_from_slice(folded.as_bytes());
        Some(Self { bytes })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|b| *b == 0).unwrap_or(Self::BYTES_MAX);
        self.bytes.get(..end).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }
}

impl fmt::Debug for DeclaredName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for AgentKind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

/// Reads declared agents whether or not their files are there: a journal outlives them.
impl<'de> Deserialize<'de> for AgentKind {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = AgentKind;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an agent's name")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<AgentKind, D::Error> {
                let name = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                AgentKind::named(&name).map_err(D::Error::custom)
            }
        }
        // By its name a schema tells an agent from other texts.
        d.deserialize_newtype_struct("AgentKind", NameVisitor)
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

    /// Those that are built in. Trimmed, ASCII case-folded, aliases accepted.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected`: the name it gets by [`AgentKind::named`], and whether it is built in.
    fn check(word: &str, expected: Option<(&str, bool)>) {
        let got = AgentKind::named(word).ok();
        assert_eq!(got.as_ref().map(|k| (k.name(), AgentKind::ALL.contains(k))), expected, "{word}");
        assert_eq!(
            word.parse::<AgentKind>().is_ok(),
            expected.is_some_and(|(_, built_in)| built_in),
            "{word}"
        );
        if let Some(kind) = got {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{kind}\""));
            assert_eq!(serde_json::from_str::<AgentKind>(&json).unwrap(), kind);
            let keyed: std::collections::BTreeMap<AgentKind, u8> = [(kind, 1)].into();
            let json = serde_json::to_string(&keyed).unwrap();
            assert_eq!(
                serde_json::from_str::<std::collections::BTreeMap<AgentKind, u8>>(&json).unwrap(),
                keyed
            );
        }
    }

    #[test]
    fn names_are_read_alike_everywhere() {
        check("claude", Some(("claude", true)));
        check(" Open-Code ", Some(("opencode", true)));
        check("cursor", Some(("cursor", false)));
        check(" Cursor-2 ", Some(("cursor-2", false)));
        check(&"a".repeat(DeclaredName::BYTES_MAX), Some((&"a".repeat(DeclaredName::BYTES_MAX), false)));
        for word in ["", "a", "2x", "-x", "a b", "a:b", "a/b", "a.b", "cürsor", "a\0b", "a_b"] {
            check(word, None);
        }
        check(&"a".repeat(DeclaredName::BYTES_MAX + 1), None);
    }

    #[test]
    fn what_an_earlier_version_wrote_is_read() {
        for kind in AgentKind::ALL {
            assert_eq!(serde_json::from_str::<AgentKind>(&format!("\"{kind}\"")).unwrap(), kind);
        }
        assert!(serde_json::from_str::<AgentKind>("\"no agent\"").is_err());
    }
}
