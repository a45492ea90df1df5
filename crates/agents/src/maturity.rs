//! How well an adapter is known to fit the version of its agent that is installed.

use std::cmp::Ordering;

use watchkeeper_core::AgentKind;

/// What an adapter's rightness rests on, for one installed version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Every recording of this version is replayed right.
    Recorded { version: &'static str },
    /// Recordings are of an earlier version.
    NewerThanRecorded { version: &'static str },
    /// Recordings are of a later version.
    OlderThanRecorded { version: &'static str },
    /// Which version is installed is not known.
    RecordedElsewhere { version: &'static str },
    /// No recording: its file or its documentation says what it does.
    Declared,
}

impl Stage {
    /// The stage of this agent's adapter; `said`: what the installed program says of its version.
    #[must_use]
    pub fn of(kind: AgentKind, said: Option<&str>) -> Self {
        let Some(version) = recorded_version(kind) else { return Self::Declared };
        match said.and_then(numbers).zip(numbers(version)).map(|(said, known)| said.cmp(&known)) {
            None => Self::RecordedElsewhere { version },
            Some(Ordering::Equal) => Self::Recorded { version },
            Some(Ordering::Greater) => Self::NewerThanRecorded { version },
            Some(Ordering::Less) => Self::OlderThanRecorded { version },
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recorded { .. } => write!(f, "adapter recorded with this version"),
            Self::NewerThanRecorded { version } => {
                write!(f, "adapter recorded with {version}; this one is newer than any that was recorded")
            }
            Self::OlderThanRecorded { version } => {
                write!(f, "adapter recorded with {version}; this one is older")
            }
            Self::RecordedElsewhere { version } => write!(f, "adapter recorded with {version}"),
            Self::Declared => write!(f, "adapter declared, not recorded"),
        }
    }
}

/// The version of the recordings in `tests/recordings`.
#[must_use]
pub const fn recorded_version(kind: AgentKind) -> Option<&'static str> {
    match kind {
        AgentKind::Claude => Some("2.1.332"),
        AgentKind::Codex => Some("0.171.0"),
        AgentKind::Copilot => Some("1.0.102"),
        AgentKind::OpenCode => Some("1.18.33"),
        AgentKind::Gemini => Some("0.61.0"),
        AgentKind::Qwen => Some("0.24.4"),
        AgentKind::Acp | AgentKind::Mcp | AgentKind::Run | AgentKind::Declared(_) => None,
    }
}

/// The first dotted number in a text, of up to four parts.
fn numbers(text: &str) -> Option<[u64; 4]> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let mut parts = word.trim_matches('.').split('.');
        let mut numbers = [parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, 0, 0];
        for (slot, part) in numbers.iter_mut().skip(2).zip(parts) {
            *slot = part.parse().ok()?;
        }
        Some(numbers)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: AgentKind, said: Option<&str>, expected: Stage) {
        assert_eq!(Stage::of(kind, said), expected, "{said:?}");
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let version = "2.1.332";
        check(AgentKind::Claude, Some("2.1.332 (Claude Code)"), Stage::Recorded { version });
        check(AgentKind::Claude, Some("2.1.1000"), Stage::NewerThanRecorded { version });
        check(AgentKind::Claude, Some("2.1.99 x"), Stage::OlderThanRecorded { version });
        check(AgentKind::Claude, Some("it says 7"), Stage::RecordedElsewhere { version });
        check(AgentKind::Claude, None, Stage::RecordedElsewhere { version });
        let version = "1.0.102";
        check(AgentKind::Copilot, Some("GitHub Copilot CLI 1.0.102."), Stage::Recorded { version });
        check(AgentKind::Codex, Some("codex-cli 0.171.0"), Stage::Recorded { version: "0.171.0" });
        check(AgentKind::named("cursor").unwrap(), Some("3.7.21"), Stage::Declared);
        check(AgentKind::Claude, Some(&"9".repeat(40)), Stage::RecordedElsewhere { version: "2.1.332" });
    }

    #[test]
    fn the_recordings_are_of_these_versions() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
        for kind in AgentKind::ALL {
            let Some(version) = recorded_version(kind) else { continue };
            let mut recordings = 0;
            for scenario in std::fs::read_dir(folder.join(kind.name())).unwrap() {
                let path = scenario.unwrap().path().join("recording.json");
                let recording: serde_json::Value =
                    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
                assert_eq!(recording["agent_version"], version, "{kind}");
                recordings += 1;
            }
            assert!(recordings > 0, "{kind}");
        }
    }
}
