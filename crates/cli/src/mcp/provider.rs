//! The provider server: a program that hosts a model tells of its sessions, and of nobody else's. The provider's name is
//! part of every session's key, so that two providers may use the same id; the daemon binds the connection to it.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use serde_json::{Map, Value, json};
use watchkeeper_api::{
    Client, ClientError, ClientOptions, Method,
    method::{
        HoldRelease, HoldReleaseParams, HoldTake, HoldTakeParams, SessionClearSoftlock, SessionParams,
        SessionSoftlock, SessionSoftlockParams, SessionStart, SessionStartParams, SessionStop,
        SessionStopParams,
    },
};
use watchkeeper_core::AgentKind;

use super::{
    arguments::{Arguments, shown},
    control::acknowledged,
    tools::{Answer, Description, Effect, Toolset, text},
};
use crate::{complaint::Complaint, output::plain};

/// Holds that are let go when the server ends; the length of a further one lets it go.
const HOLDS_REMEMBERED_MAX: usize = 64;
/// Names under which the daemon's log knows the server.
const NAME: &str = concat!("watchkeeper mcp provider ", env!("CARGO_PKG_VERSION"));

/// The tools of one provider.
#[derive(Debug)]
pub(crate) struct Provider {
    api: PathBuf,
    /// Checked by the caller.
    name: String,
    /// The process that hosts the model: its sessions end with it.
    parent: Option<u32>,
    holds: Mutex<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Start,
    Stop,
    SetSoftLock,
    ClearSoftLock,
    Hold,
    ReleaseHold,
}

impl Tool {
    const ALL: [Self; 6] =
        [Self::Start, Self::Stop, Self::SetSoftLock, Self::ClearSoftLock, Self::Hold, Self::ReleaseHold];

    fn description(self) -> Description {
        let session = || text("the session_id that provider_start_session gave");
        let (name, what, properties, required, effect): (_, _, _, &'static [&'static str], _) = match self {
            Self::Start => (
                "provider_start_session",
                "Begins a turn: call it when work begins, and again with the same session_id when it goes on after a \
                 stop. The machine stays awake until the turn stops or waits for a person. Keep the session_id.",
                json!({
                    "session_id": text("of an earlier start; a fresh one if left out"),
                    "title": text("what the session is about"),
                    "cwd": text("the folder it works in"),
                }),
                &[],
                Effect::Adds,
            ),
            Self::Stop => (
                "provider_stop_session",
                "Ends the turn: call it when the work is truly complete, as the last thing.",
                json!({
                    "session_id": session(),
                    "message": text("what was said last"),
                    "end": {"type": "boolean", "description": "the session is over, not only its turn"},
                }),
                &["session_id"],
                Effect::Removes,
            ),
            Self::SetSoftLock => (
                "provider_set_soft_lock",
                "Says that the session waits for a person: call it just before the turn is handed over because you \
                 cannot go on alone, not for a progress report and not while tools run.",
                json!({
                    "session_id": session(),
                    "reason": text(
                        "waiting_for_user_input, waiting_for_clarification, waiting_for_approval, \
                         waiting_for_credentials, waiting_for_manual_step, or words of your own"
                    ),
                }),
                &["session_id", "reason"],
                Effect::Adds,
            ),
            Self::ClearSoftLock => (
                "provider_clear_soft_lock",
                "Says that the session does not wait any more: call it first when you go on.",
                json!({"session_id": session()}),
                &["session_id"],
                Effect::Adds,
            ),
            Self::Hold => (
                "hold",
                "Keeps the machine awake for some time, whatever the sessions do. It ends by itself, or with this \
                 server.",
                json!({
                    "seconds": {"type": "integer", "minimum": 1, "description": "how long; cut to the person's maximum"},
                    "reason": text("what for; the person sees it"),
                    "hold_id": text("renews this hold; a new one if left out"),
                }),
                &["seconds", "reason"],
                Effect::Adds,
            ),
            Self::ReleaseHold => (
                "release_hold",
                "Lets a hold go before its time.",
                json!({"hold_id": text("the hold_id that hold gave")}),
                &["hold_id"],
                Effect::Removes,
            ),
        };
        Description { name, what, properties, required, effect }
    }
}

impl Toolset for Provider {
    fn instructions(&self) -> String {
        "Keeps this machine awake while you work. Call provider_start_session once when work begins and keep its \
         session_id; provider_set_soft_lock before you wait for a person and provider_clear_soft_lock when you go on; \
         provider_stop_session when the work is complete. Claim none of it without the tool's success."
            .to_owned()
    }

    fn descriptions(&self) -> Vec<Description> {
        Tool::ALL.into_iter().map(Tool::description).collect()
    }

    fn call(&self, name: &str, arguments: Map<String, Value>) -> Option<Result<Answer, Complaint>> {
        let (tool, description) = Tool::ALL
            .into_iter()
            .map(|tool| (tool, tool.description()))
            .find(|(_, about)| about.name == name)?;
        let read = Arguments::of(description.name, arguments, &description.arguments());
        Some(read.and_then(|arguments| self.answer(tool, &arguments)))
    }

    fn leave(&self) {
        let holds = std::mem::take(&mut *self.holds.lock().unwrap_or_else(PoisonError::into_inner));
        for id in holds {
            // Best effort: a daemon that is gone or slow lets it go when its time is over.
            let released = self.ask::<HoldRelease>("", &HoldReleaseParams { id: Some(id), all: false });
            if released.is_err_and(|complaint| complaint.exit == crate::exit::UNREACHABLE) {
                return;
            }
        }
    }
}

impl Provider {
    pub(crate) const fn new(api: PathBuf, name: String, parent: Option<u32>) -> Self {
        Self { api, name, parent, holds: Mutex::new(Vec::new()) }
    }

    fn answer(&self, tool: Tool, arguments: &Arguments) -> Result<Answer, Complaint> {
        match tool {
            Tool::Start => self.start(arguments),
            Tool::Stop => {
                let (id, session) = self.session(arguments)?;
                let (message, end) = (arguments.text("message")?, arguments.flag("end")?);
                let what = format!("cannot stop '{}'", shown(&id));
                acknowledged(&self.ask::<SessionStop>(&what, &SessionStopParams { session, message, end })?)
            }
            Tool::SetSoftLock => {
                let (id, session) = self.session(arguments)?;
                let reason = arguments.needed_text("reason")?;
                let what = format!("cannot soft-lock '{}'", shown(&id));
                acknowledged(&self.ask::<SessionSoftlock>(&what, &SessionSoftlockParams { session, reason })?)
            }
            Tool::ClearSoftLock => {
                let (id, session) = self.session(arguments)?;
                let what = format!("cannot clear the soft-lock of '{}'", shown(&id));
                acknowledged(&self.ask::<SessionClearSoftlock>(&what, &SessionParams { session })?)
            }
            Tool::Hold => self.hold(arguments),
            Tool::ReleaseHold => {
                let id = arguments.needed_text("hold_id")?;
                let what = format!("cannot let go of the hold '{}'", shown(&id));
                let params = HoldReleaseParams { id: Some(id), all: false };
                let released = self.ask::<HoldRelease>(&what, &params)?;
                let mut held = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
                held.retain(|id| !released.ids.contains(id));
                Answer::of(&released, format!("released {}", plain(&released.ids.join(", "))))
            }
        }
    }

    fn start(&self, arguments: &Arguments) -> Result<Answer, Complaint> {
        let params = SessionStartParams {
            agent: AgentKind::Mcp,
            namespace: Some(self.name.clone()),
            id: arguments.text("session_id")?,
            prompt: None,
            title: arguments.text("title")?,
            cwd: arguments.text("cwd")?,
            transcript: None,
            pid: self.parent,
        };
        let started = self.ask::<SessionStart>("cannot start a session", &params)?;
        let mut answer = acknowledged(&started)?;
        let id = started.session.strip_prefix(&self.key("")).unwrap_or(&started.session).to_owned();
        answer.text = format!("{}; its session_id is {}", answer.text, plain(&id));
        if let Value::Object(fields) = &mut answer.value {
            fields.insert("session_id".to_owned(), id.into());
        }
        Ok(answer)
    }

    fn hold(&self, arguments: &Arguments) -> Result<Answer, Complaint> {
        let params = HoldTakeParams {
            id: arguments.text("hold_id")?,
            // The daemon writes the provider's name there.
            owner: self.name.clone(),
            reason: arguments.needed_text("reason")?,
            length_s: Some(arguments.needed_count("seconds")?),
        };
        let hold = self.ask::<HoldTake>("cannot take a hold", &params)?;
        let mut held = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.contains(&hold.id) && held.len() < HOLDS_REMEMBERED_MAX {
            held.push(hold.id.clone());
        }
        drop(held);
        let text = format!("held until {}; its hold_id is {}", hold.expires_at, plain(&hold.id));
        let mut answer = Answer::of(&hold, text)?;
        if let Value::Object(fields) = &mut answer.value {
            fields.insert("hold_id".to_owned(), hold.id.into());
        }
        Ok(answer)
    }

    /// The id that a call names, and the whole key.
    fn session(&self, arguments: &Arguments) -> Result<(String, String), Complaint> {
        let id = arguments.needed_text("session_id")?;
        let key = self.key(&id);
        Ok((id, key))
    }

    fn key(&self, id: &str) -> String {
        format!("{}/{}:{id}", AgentKind::Mcp, self.name)
    }

    fn ask<M: Method>(&self, what: &str, params: &M::Params) -> Result<M::Output, Complaint> {
        let refused = |error: ClientError| Complaint::client(what, &error);
        let options = ClientOptions { provider: Some(self.name.clone()), ..ClientOptions::new(NAME) };
        Client::connect(&self.api, &options).map_err(refused)?.call::<M>(params).map_err(refused)
    }
}
