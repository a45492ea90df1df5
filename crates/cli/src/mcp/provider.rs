//! The provider server: a program that hosts a model tells of its sessions, and of nobody else's. The provider's name is
//! part of every session's key, so that two providers may use the same id; the daemon binds the connection to it.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use watchkeeper_api::{
    Client, ClientError, ClientOptions, Method,
    mcp::PROVIDER_HOLDS_MAX,
    method::{
        HoldList, HoldRelease, HoldReleaseParams, HoldTake, HoldTakeParams, Nothing, SessionClearSoftlock,
        SessionParams, SessionSoftlock, SessionSoftlockParams, SessionStart, SessionStartParams, SessionStop,
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

/// How long the letting go of the holds may keep a server that ends, and each answer on the way; what is left then goes by
/// its own length.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);
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
    /// Locked while one is taken, so that none is taken behind the back of a server that ends.
    holds: Mutex<Holds>,
}

#[derive(Debug, Default)]
struct Holds {
    /// No more than the daemon lets a provider have.
    ids: Vec<String>,
    /// The server ends: no more is taken.
    ended: bool,
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
        let until = Instant::now() + LEAVE_WITHIN;
        let mut held = self.holds();
        held.ended = true;
        if held.ids.is_empty() {
            return;
        }
        let options = ClientOptions {
            connect_within: LEAVE_WITHIN,
            answer_within: LEAVE_WITHIN,
            provider: Some(self.name.clone()),
            ..ClientOptions::new(NAME)
        };
        // Best effort: where the daemon is gone or slow, each goes when its time is over.
        let Ok(mut client) = Client::connect(&self.api, &options) else { return };
        for id in std::mem::take(&mut held.ids) {
            match client.call::<HoldRelease>(&HoldReleaseParams { id: Some(id), all: false }) {
                // One that is over already is no obstacle.
                Ok(_) | Err(ClientError::Remote { .. }) if Instant::now() < until => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

impl Provider {
    pub(crate) const fn new(api: PathBuf, name: String, parent: Option<u32>) -> Self {
        Self { api, name, parent, holds: Mutex::new(Holds { ids: Vec::new(), ended: false }) }
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
                self.holds().ids.retain(|id| !released.ids.contains(id));
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
        let what = "cannot take a hold";
        let mut held = self.holds();
        if held.ended {
            return Err(Complaint::new(what).because("this server is ending").todo("Start it again."));
        }
        let hold = self.ask::<HoldTake>(what, &params)?;
        if !held.ids.contains(&hold.id) {
            if held.ids.len() >= PROVIDER_HOLDS_MAX {
                // The daemon had room for it, so some of these are over.
                let alive = self.ask::<HoldList>(what, &Nothing {})?.holds;
                held.ids.retain(|id| alive.iter().any(|hold| hold.id == *id));
            }
            held.ids.push(hold.id.clone());
        }
        drop(held);
        let text = format!("held until {}; its hold_id is {}", hold.expires_at, plain(&hold.id));
        let mut answer = Answer::of(&hold, text)?;
        if let Value::Object(fields) = &mut answer.value {
            fields.insert("hold_id".to_owned(), hold.id.into());
        }
        Ok(answer)
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
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
