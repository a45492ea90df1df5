//! The control server: everything that is known, to read; four writes where the person allowed them at `install`. Never
//! who may approve, what leaves the machine, or what the daemon does with itself.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use watchkeeper_api::{
    Client, ClientError, ClientOptions, Method, Status,
    mcp::{CAPABILITY_BYTES_MAX, Capability, SETTABLE},
    method::{
        Acknowledged, ConfigSet, ConfigSetParams, ConfigUnset, ConfigUnsetParams, Explain, ExplainParams,
        GetStatus, GetWhy, KeyChange, Nothing, SessionClearSoftlock, SessionParams, SessionRemove,
        SessionSoftlock, SessionSoftlockParams,
    },
    status::Session,
};
use watchkeeper_core::AgentKind;
use watchkeeper_os::private_file::read_private;

use super::{
    arguments::{Arguments, shown, state_names},
    tools::{Answer, Description, Effect, Toolset, text},
};
use crate::{
    complaint::Complaint,
    output::{Age, Terminal, plain, status_view},
};

/// What stands where a client names no reason.
const REASON_DEFAULT: &str = "waiting_for_user_input";
/// Names under which the daemon's log knows the server.
const NAME: &str = concat!("watchkeeper mcp ", env!("CARGO_PKG_VERSION"));

/// The tools of the control server.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) api: PathBuf,
    /// Where the capability stands; without one the server sees what the agent around it may see.
    pub(crate) capability: Option<PathBuf>,
    pub(crate) allow_write: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    GetStatus,
    ListSessions,
    Why,
    Explain,
    SetSessionSoftLock,
    ClearSessionSoftLock,
    RemoveSession,
    UpdateSettings,
}

impl Tool {
    const READS: [Self; 4] = [Self::GetStatus, Self::ListSessions, Self::Why, Self::Explain];
    const WRITES: [Self; 4] =
        [Self::SetSessionSoftLock, Self::ClearSessionSoftLock, Self::RemoveSession, Self::UpdateSettings];

    fn description(self) -> Description {
        let session = || text("AGENT:ID, AGENT/NAMESPACE:ID, an id, or an unambiguous beginning of these");
        let (name, what, properties, required, effect): (_, _, _, &'static [&'static str], _) = match self {
            Self::GetStatus => (
                "get_status",
                "Everything that Watchkeeper knows: whether the machine is kept awake and why, and every session of a \
                 coding agent with its state.",
                json!({}),
                &[],
                Effect::Reads,
            ),
            Self::ListSessions => (
                "list_sessions",
                "The sessions of coding agents on this machine, all or those of one state or agent.",
                json!({
                    "state": {"type": "string", "enum": state_names(), "description": "only those in this state"},
                    "agent": text("only those of this agent, e.g. claude or codex"),
                }),
                &[],
                Effect::Reads,
            ),
            Self::Why => {
                ("why", "One line: why the machine is kept awake, or why not.", json!({}), &[], Effect::Reads)
            }
            Self::Explain => (
                "explain",
                "The evidence behind one session's state, rule by rule.",
                json!({"session": session()}),
                &["session"],
                Effect::Reads,
            ),
            Self::SetSessionSoftLock => (
                "set_session_soft_lock",
                "Says that a session waits for a person, so that it stops keeping the machine awake.",
                json!({"session": session(), "reason": text("what it waits for; waiting_for_user_input if left out")}),
                &["session"],
                Effect::Adds,
            ),
            Self::ClearSessionSoftLock => (
                "clear_session_soft_lock",
                "Says that a session does not wait for a person any more.",
                json!({"session": session()}),
                &["session"],
                Effect::Adds,
            ),
            Self::RemoveSession => (
                "remove_session",
                "Forgets a session. Its agent is not touched.",
                json!({"session": session()}),
                &["session"],
                Effect::Removes,
            ),
            Self::UpdateSettings => (
                "update_settings",
                "Changes settings; null puts one back to its default. Who may approve, addresses and the recording of \
                 prompts cannot be changed here.",
                json!({"settings": {"type": "object", "additionalProperties": false, "properties": settable()}}),
                &["settings"],
                Effect::Removes,
            ),
        };
        Description { name, what, properties, required, effect }
    }
}

fn settable() -> Value {
    let settings = SETTABLE.iter().map(|key| ((*key).to_owned(), json!({"type": ["string", "null"]})));
    Value::Object(settings.collect())
}

impl Toolset for Control {
    fn instructions(&self) -> String {
        let writes = if self.allow_write { "" } else { " It only reads." };
        format!(
            "Watchkeeper knows the state of every coding agent's session on this machine and keeps the machine awake \
             exactly while one works.{writes}"
        )
    }

    fn descriptions(&self) -> Vec<Description> {
        self.tools().map(Tool::description).collect()
    }

    fn call(&self, name: &str, arguments: Map<String, Value>) -> Option<Result<Answer, Complaint>> {
        let (tool, description) =
            self.tools().map(|tool| (tool, tool.description())).find(|(_, about)| about.name == name)?;
        let read = Arguments::of(description.name, arguments, &description.arguments());
        Some(read.and_then(|arguments| self.answer(tool, &arguments)))
    }
}

impl Control {
    /// What is not allowed is not there: a client cannot be talked into a tool that it does not see.
    fn tools(&self) -> impl Iterator<Item = Tool> {
        Tool::READS.into_iter().chain(Tool::WRITES.into_iter().filter(|_| self.allow_write))
    }

    fn answer(&self, tool: Tool, arguments: &Arguments) -> Result<Answer, Complaint> {
        match tool {
            Tool::GetStatus => {
                let status = self.status()?;
                Answer::of(&status, status_view(&status, Age::now(), &Terminal::PLAIN).join("\n"))
            }
            Tool::ListSessions => self.list(arguments),
            Tool::Why => {
                let why = self.ask::<GetWhy>("cannot say why", &Nothing {})?;
                Answer::of(&why, plain(&why.why))
            }
            Tool::Explain => {
                let session = arguments.needed_text("session")?;
                let what = format!("cannot explain '{}'", shown(&session));
                let explained = self.ask::<Explain>(&what, &ExplainParams { session })?;
                let rows = explained.evidence.iter().map(|row| {
                    format!("{} {}: {} ({})", row.at, plain(&row.source), plain(&row.what), plain(&row.rule))
                });
                let lines: Vec<String> = std::iter::once(line_of(&explained.session)).chain(rows).collect();
                Answer::of(&explained, lines.join("\n"))
            }
            Tool::SetSessionSoftLock => {
                let session = arguments.needed_text("session")?;
                let reason = arguments.text("reason")?.unwrap_or_else(|| REASON_DEFAULT.to_owned());
                let what = format!("cannot soft-lock '{}'", shown(&session));
                acknowledged(&self.ask::<SessionSoftlock>(&what, &SessionSoftlockParams { session, reason })?)
            }
            Tool::ClearSessionSoftLock => {
                let session = arguments.needed_text("session")?;
                let what = format!("cannot clear the soft-lock of '{}'", shown(&session));
                acknowledged(&self.ask::<SessionClearSoftlock>(&what, &SessionParams { session })?)
            }
            Tool::RemoveSession => {
                let session = arguments.needed_text("session")?;
                let what = format!("cannot remove '{}'", shown(&session));
                acknowledged(&self.ask::<SessionRemove>(&what, &SessionParams { session })?)
            }
            Tool::UpdateSettings => self.update(arguments),
        }
    }

    fn status(&self) -> Result<Status, Complaint> {
        self.ask::<GetStatus>("cannot show the status", &Nothing {})
    }

    fn list(&self, arguments: &Arguments) -> Result<Answer, Complaint> {
        let state = arguments.state("state")?;
        let agent = arguments.text("agent")?;
        let agent: Option<AgentKind> = agent
            .map(|name| {
                AgentKind::named(&name).map_err(|_| arguments.wrong("agent", "is no name of an agent"))
            })
            .transpose()?;
        let mut sessions = self.status()?.sessions;
        sessions.retain(|session| {
            state.is_none_or(|state| session.state == state)
                && agent.is_none_or(|agent| session.agent == agent)
        });
        let lines: Vec<String> = sessions.iter().map(line_of).collect();
        let text = if lines.is_empty() { "no session".to_owned() } else { lines.join("\n") };
        Answer::of(&json!({ "sessions": sessions }), text)
    }

    /// All names are looked at before the first is changed; a value that the daemon refuses stops there, and what was
    /// changed before it is said.
    fn update(&self, arguments: &Arguments) -> Result<Answer, Complaint> {
        let wanted = arguments.needed_object("settings")?;
        if wanted.is_empty() {
            return Err(arguments.wrong("settings", "names no setting"));
        }
        let mut changes = Vec::with_capacity(wanted.len().min(SETTABLE.len()));
        for (key, value) in wanted {
            let Some(key) = SETTABLE.into_iter().find(|settable| settable == key) else {
                return Err(Complaint::new(format!("cannot change the setting '{}'", shown(key)))
                    .because("an MCP client may not change it, or there is none of this name")
                    .todo("Change it yourself with `watchkeeper config set`."));
            };
            let value = match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
                Value::Array(_) | Value::Object(_) => return Err(arguments.wrong(key, "is not a text")),
            };
            changes.push((key, value));
        }
        let mut changed: Vec<KeyChange> = Vec::with_capacity(changes.len());
        for (key, value) in changes {
            let what = format!("cannot change the setting '{key}'");
            let key = key.to_owned();
            let change = match value {
                Some(value) => self.ask::<ConfigSet>(&what, &ConfigSetParams { key, value }),
                None => self.ask::<ConfigUnset>(&what, &ConfigUnsetParams { key }),
            };
            match change {
                Ok(change) => changed.push(change),
                Err(complaint) if changed.is_empty() => return Err(complaint),
                Err(complaint) => {
                    let done: Vec<&str> = changed.iter().map(|change| change.key.as_str()).collect();
                    return Err(complaint.because(format!("{} had been changed before it", done.join(", "))));
                }
            }
        }
        let lines: Vec<String> = changed
            .iter()
            .map(|change| {
                let note = change.note.as_ref().map(|note| format!(" ({})", plain(note))).unwrap_or_default();
                format!("{}: {} -> {}{note}", plain(&change.key), plain(&change.before), plain(&change.after))
            })
            .collect();
        Answer::of(&json!({ "changed": changed }), lines.join("\n"))
    }

    /// One call on a connection of its own: the daemon may be another one by the next call.
    fn ask<M: Method>(&self, what: &str, params: &M::Params) -> Result<M::Output, Complaint> {
        let refused = |error: ClientError| Complaint::client(what, &error);
        let options = ClientOptions { capability: self.secret(what)?, ..ClientOptions::new(NAME) };
        Client::connect(&self.api, &options).map_err(refused)?.call::<M>(params).map_err(refused)
    }

    fn secret(&self, what: &str) -> Result<Option<String>, Complaint> {
        let Some(path) = &self.capability else { return Ok(None) };
        let unusable = |complaint: Complaint| complaint.todo("Run `watchkeeper install --mcp` again.");
        let about =
            || Complaint::new(what).because(format!("the capability {} cannot be used", path.display()));
        let bytes =
            read_private(path, CAPABILITY_BYTES_MAX).map_err(|error| unusable(about().caused_by(&error)))?;
        let capability = Capability::parse(&bytes).map_err(|error| unusable(about().caused_by(&error)))?;
        Ok(Some(capability.secret))
    }
}

/// One session in one line.
pub(super) fn line_of(session: &Session) -> String {
    let waits =
        session.waiting_for.as_ref().map(|what| format!(", waits for {}", plain(what))).unwrap_or_default();
    format!("{} is {} since {}{waits}", plain(&session.key), session.state.name(), session.since)
}

/// What a statement about a session came to.
pub(super) fn acknowledged(acknowledged: &Acknowledged) -> Result<Answer, Complaint> {
    let state = acknowledged.state.map_or("not known any more", |state| state.name());
    let note = acknowledged.note.as_ref().map(|note| format!(" ({})", plain(note))).unwrap_or_default();
    Answer::of(acknowledged, format!("{} is {state}{note}", plain(&acknowledged.session)))
}
