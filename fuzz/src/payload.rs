//! What an agent writes to a hook. An input is the event's name of the command line, a newline, and the payload.

use watchkeeper_core::AgentKind;

/// No payload says more than this: two observations for each of the items that a list may have, and two of its own.
const OBSERVATIONS_MAX: usize = 2 * 4096 + 2;
/// Names of what no adapter knows: how many, and how long each.
const UNKNOWN_MAX: (usize, usize) = (16, 64);
/// Longest id of a session, in bytes.
const ID_MAX: usize = 256;

fn check(kind: AgentKind, input: &[u8]) {
    let (event, payload) = crate::named(input);
    let event = std::str::from_utf8(event).ok().filter(|e| !e.is_empty());
    let parsed = crate::adapter(kind).payload(event, &[payload], payload);
    assert!(parsed.observations.len() <= OBSERVATIONS_MAX);
    assert!(parsed.unknown.len() <= UNKNOWN_MAX.0 && parsed.unknown.iter().all(|n| n.len() <= UNKNOWN_MAX.1));
    assert!(parsed.malformed.is_none() || parsed.observations.is_empty());
    assert!(parsed.work_pids.len() <= parsed.observations.len());
    for observation in &parsed.observations {
        assert!(observation.session.as_ref().is_some_and(|id| !id.is_empty() && id.len() <= ID_MAX));
    }
}

macro_rules! doors {
    ($($name:ident: $kind:ident),*) => {$(
        /// Any payload of this agent: bounded, and nothing panics.
        pub fn $name(input: &[u8]) {
            check(AgentKind::$kind, input);
        }
    )*};
}

doors!(claude: Claude, codex: Codex, copilot: Copilot, gemini: Gemini, opencode: OpenCode, qwen: Qwen);
