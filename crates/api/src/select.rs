//! How a person or script names a session: `agent:id`, `agent/namespace:id`, a bare id, or an unambiguous beginning of
//! any of these. Pure; used by whoever holds the list of sessions.

use watchkeeper_core::{AgentKind, SessionKey};

use crate::rpc::{ErrorCode, Failure};

/// Longest selector looked at; a longer one names nothing.
pub const SELECTOR_BYTES_MAX: usize = 512;
/// How many candidates an ambiguity names; the rest is counted.
pub const CANDIDATES_MAX: usize = 8;

/// A selector that names not exactly one session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    #[error("no session matches '{selector}'")]
    Unknown { selector: String },
    #[error("'{selector}' matches {count} sessions")]
    Ambiguous { selector: String, count: usize, candidates: Vec<SessionKey> },
}

/// The one session that `selector` names. A complete key wins over a complete id, that over a beginning.
///
/// # Errors
/// [`SelectError`] when none or several match.
pub fn select<'a>(
    selector: &str,
    keys: impl IntoIterator<Item = &'a SessionKey>,
) -> Result<SessionKey, SelectError> {
    let selector = selector.trim();
    let unknown = || SelectError::Unknown { selector: selector.chars().take(64).collect() };
    if selector.is_empty() || selector.len() > SELECTOR_BYTES_MAX {
        return Err(unknown());
    }
    let wanted = Wanted::of(selector);
    let mut best = 0;
    let mut found: Vec<&SessionKey> = Vec::new();
    for key in keys {
        let rank = wanted.rank(key);
        if rank > best {
            best = rank;
            found.clear();
        }
        if rank > 0 && rank == best {
            found.push(key);
        }
    }
    match found.as_slice() {
        [] => Err(unknown()),
        [key] => Ok((*key).clone()),
        _ => {
            found.sort();
            let candidates = found.iter().take(CANDIDATES_MAX).map(|key| (*key).clone()).collect();
            Err(SelectError::Ambiguous { selector: selector.into(), count: found.len(), candidates })
        }
    }
}

/// The key that a selector spells out in full, for sessions that need not exist yet.
#[must_use]
pub fn spelled_out(selector: &str) -> Option<SessionKey> {
    let (agent, namespace, id) = split(selector.trim())?;
    let well_formed = !id.is_empty() && selector.len() <= SELECTOR_BYTES_MAX;
    (well_formed && namespace.is_some() == agent.needs_namespace()).then(|| SessionKey {
        agent,
        namespace: namespace.map(Into::into),
        id: id.into(),
    })
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Self {
        let message = error.to_string();
        match error {
            SelectError::Unknown { .. } => Self::new(ErrorCode::UnknownSession, message).with_hint(
                "Run `watchkeeper status` to see the sessions; an unambiguous beginning of an id is enough.",
            ),
            SelectError::Ambiguous { candidates, .. } => Self::new(ErrorCode::AmbiguousSession, message)
                .with_hint("Give more of the id.")
                .with_candidates(candidates.iter().map(SessionKey::to_string).collect()),
        }
    }
}

struct Wanted<'a> {
    /// The selector as a bare id or a beginning of one.
    bare: &'a str,
    /// The selector read as `agent[/namespace]:id`.
    split: Option<(AgentKind, Option<&'a str>, &'a str)>,
}

impl<'a> Wanted<'a> {
    fn of(selector: &'a str) -> Self {
        Self { bare: selector, split: split(selector) }
    }

    /// 0: no match; 1: a beginning; 2: the whole id; 3: the whole key.
    fn rank(&self, key: &SessionKey) -> u8 {
        if let Some((agent, namespace, id)) = self.split
            && agent == key.agent
            && (namespace.is_none() || namespace == key.namespace.as_deref())
        {
            if key.id == id {
                return if namespace == key.namespace.as_deref() { 3 } else { 2 };
            }
            if key.id.starts_with(id) {
                return 1;
            }
        }
        if key.id == self.bare { 2 } else { u8::from(key.id.starts_with(self.bare)) }
    }
}

fn split(selector: &str) -> Option<(AgentKind, Option<&str>, &str)> {
    let (agent, id) = selector.split_once(':')?;
    let (agent, namespace) = match agent.split_once('/') {
        Some((agent, namespace)) => (agent, Some(namespace)),
        None => (agent, None),
    };
    AgentKind::named(agent).ok().map(|agent| (agent, namespace, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> SessionKey {
        spelled_out(text).unwrap()
    }

    /// `expected`: the key, or how many matched.
    fn check(selector: &str, expected: Result<&str, usize>) {
        let keys: Vec<SessionKey> =
            ["claude:abc1", "claude:abc2", "codex:abc1", "codex:x", "mcp/n:x:y", "claude:xy"].map(key).into();
        let got = select(selector, &keys).map_err(|error| match error {
            SelectError::Unknown { .. } => 0,
            SelectError::Ambiguous { count, candidates, .. } => {
                assert_eq!(candidates.len(), count.min(CANDIDATES_MAX));
                count
            }
        });
        assert_eq!(got, expected.map(key), "{selector}");
    }

    #[test]
    fn names_exactly_one_session() {
        check("claude:abc1", Ok("claude:abc1"));
        check(" Claude-Code:abc2 ", Ok("claude:abc2"));
        check("abc2", Ok("claude:abc2"));
        check("codex:a", Ok("codex:abc1"));
        check("x", Ok("codex:x"));
        check("mcp:x:y", Ok("mcp/n:x:y"));
        check("mcp/n:x", Ok("mcp/n:x:y"));
        check("x:", Ok("mcp/n:x:y"));
        check("abc1", Err(2));
        check("abc", Err(3));
        check("claude:", Err(3));
        check("mcp/other:x:y", Err(0));
        check("", Err(0));
        check("zzz", Err(0));
        check(&"a".repeat(SELECTOR_BYTES_MAX + 1), Err(0));
    }

    #[test]
    fn spells_out_new_keys() {
        assert_eq!(spelled_out("opencode:1").map(|k| k.to_string()).as_deref(), Some("opencode:1"));
        assert_eq!(spelled_out("cursor:1").map(|k| k.to_string()).as_deref(), Some("cursor:1"));
        assert_eq!(spelled_out("acp/zed:1").map(|k| k.to_string()).as_deref(), Some("acp/zed:1"));
        for text in ["acp:1", "claude/x:1", "claude:", "no body:1", "claude"] {
            assert_eq!(spelled_out(text), None, "{text}");
        }
    }
}
