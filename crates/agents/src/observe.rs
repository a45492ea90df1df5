//! How adapters put observations together: the shared checks on ids and the fields every event has.

use jiff::Timestamp;
use serde_json::Value;
use watchkeeper_core::{
    TurnId, Wall,
    signal::{Facts, SignalBody, Thread},
};

use crate::{
    adapter::{Observation, Parsed},
    json,
};

/// Longer ids name nothing: the agents' own have at most 64 characters.
pub(crate) const ID_MAX: usize = 256;
/// Names kept in [`Parsed::unknown`]; further ones are dropped, the first say enough.
pub(crate) const UNKNOWN_MAX: usize = 16;
/// Longer unknown names are cut.
const UNKNOWN_NAME_MAX: usize = 64;
/// Paths longer than the longest any system opens are dropped.
const PATH_MAX: usize = 32 * 1024;
/// Titles and labels are shown in one line; longer ones are cut.
const LABEL_MAX: usize = 256;

/// An id as a key: present, printable, not longer than [`ID_MAX`].
pub(crate) fn id<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    json::text(value, key).filter(|id| is_id(id))
}

pub(crate) fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_MAX && !id.chars().any(char::is_control)
}

pub(crate) fn path(value: &Value, key: &str) -> Option<String> {
    json::text(value, key).filter(|p| p.len() <= PATH_MAX && !p.contains('\0')).map(str::to_owned)
}

pub(crate) fn label(text: &str) -> String {
    json::clipped(text.lines().next().unwrap_or_default(), LABEL_MAX).to_owned()
}

/// An RFC 3339 time as the agents write it.
pub(crate) fn wall(text: &str) -> Option<Wall> {
    text.parse::<Timestamp>().ok().map(|t| Wall(t.as_millisecond()))
}

pub(crate) fn turn(value: &Value, key: &str) -> Option<TurnId> {
    id(value, key).map(|t| TurnId(t.to_owned()))
}

/// What all observations of one payload or record share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    pub(crate) session: Option<String>,
    pub(crate) turn: Option<TurnId>,
    pub(crate) thread: Thread,
    pub(crate) at: Option<Wall>,
    pub(crate) facts: Facts,
}

impl Context {
    pub(crate) fn observe(&self, body: SignalBody) -> Observation {
        Observation {
            session: self.session.clone(),
            turn: self.turn.clone(),
            thread: self.thread.clone(),
            at: self.at,
            facts: self.facts.clone(),
            body,
        }
    }

    pub(crate) fn push(&self, out: &mut Parsed, body: SignalBody) {
        out.observations.push(self.observe(body));
    }
}

/// A hook's payload in Claude Code's form, which others have taken over: an object with the event's name, the session's
/// id, the folder and the transcript, and with an agent's id when it is a subagent's.
#[derive(Debug)]
pub(crate) struct HookPayload {
    pub(crate) value: Value,
    pub(crate) event: String,
    /// Without a turn and a time of its own, which each agent names in its way.
    pub(crate) context: Context,
}

impl HookPayload {
    /// Reads a payload; `event` is what the command line says, where the payload does not.
    pub(crate) fn parse(event: Option<&str>, payload: &[u8]) -> Result<Self, Box<Parsed>> {
        let value = json::parse_object(payload).map_err(|why| Box::new(malformed(why)))?;
        let event = json::text(&value, "hook_event_name").or(event);
        let event = event.ok_or_else(|| Box::new(malformed("no event name")))?.to_owned();
        let session = id(&value, "session_id").ok_or_else(|| Box::new(malformed("no session id")))?;
        let context = Context {
            session: Some(session.to_owned()),
            turn: None,
            thread: id(&value, "agent_id").map_or(Thread::Main, |agent| Thread::Subagent(agent.to_owned())),
            at: None,
            facts: Facts {
                cwd: path(&value, "cwd"),
                transcript: path(&value, "transcript_path"),
                ..Facts::default()
            },
        };
        Ok(Self { value, event, context })
    }
}

/// A payload that is not what the agent sends.
pub(crate) fn malformed(why: impl std::fmt::Display) -> Parsed {
    Parsed { malformed: Some(why.to_string()), ..Parsed::default() }
}

/// Whether a session's id may stand in a file's name: an id of anything else could lead elsewhere.
pub(crate) fn is_file_name_part(session: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !session.is_empty() && session.chars().all(is_part)
}

/// Counts a name that no adapter knows.
pub(crate) fn unknown(out: &mut Parsed, name: &str) {
    if out.unknown.len() < UNKNOWN_MAX {
        out.unknown.push(json::clipped(name, UNKNOWN_NAME_MAX).to_owned());
    }
}
