//! The provider server: a program that hosts a model tells of its sessions, and of nobody else's. The provider's name is
//! part of every session's key, so that two providers may use the same id; the daemon binds the connection to it.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use watchkeeper_api::{
    Client, ClientError, ClientOptions, ErrorCode, Method,
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
    /// Those that may be this server's: no more than the daemon lets a provider have, and one that is being taken.
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
        let mut held = self.holds();
        // From here on: a hold that was still being taken does not count against the letting go.
        let until = Instant::now() + LEAVE_WITHIN;
        held.ended = true;
        if held.ids.is_empty() {
            return;
        }
        let options =
            ClientOptions { connect_within: LEAVE_WITHIN, answer_within: LEAVE_WITHIN, ..self.options() };
        // Best effort: where the daemon is gone or slow, each goes when its time is over.
        let Ok(mut client) = Client::connect(&self.api, &options) else { return };
        let mut answers = true;
        held.ids.retain(|id| {
            if !answers || Instant::now() >= until {
                return true;
            }
            match client.call::<HoldRelease>(&HoldReleaseParams { id: Some(id.clone()), all: false }) {
                Ok(_) => false,
                // One that is over already is no obstacle.
                Err(ClientError::Remote { failure, .. }) => failure.code != ErrorCode::UnknownHold,
                Err(_) => {
                    answers = false;
                    true
                }
            }
        });
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
        let what = "cannot take a hold";
        let id = match arguments.text("hold_id")? {
            Some(id) => id,
            None => fresh_id().map_err(|error| Complaint::new(what).caused_by(&error))?,
        };
        let params = HoldTakeParams {
            id: Some(id.clone()),
            // The daemon writes the provider's name there.
            owner: self.name.clone(),
            reason: arguments.needed_text("reason")?,
            length_s: Some(arguments.needed_count("seconds")?),
        };
        let refused = |error: ClientError| Complaint::client(what, &error);
        let mut held = self.holds();
        if held.ended {
            return Err(Complaint::new(what).because("this server is ending").todo("Start it again."));
        }
        let mut client = Client::connect(&self.api, &self.options()).map_err(refused)?;
        let is_new = !held.ids.contains(&id);
        if is_new {
            if held.ids.len() >= PROVIDER_HOLDS_MAX {
                // Where the daemon has room for one more, some of these are over. Until it says which, all of them stay.
                let alive = client.call::<HoldList>(&Nothing {}).map_err(refused)?.holds;
                held.ids.retain(|id| alive.iter().any(|hold| hold.id == *id));
            }
            // Before it is asked for: an answer that never comes may be one to a hold that was taken.
            held.ids.push(id.clone());
        }
        let taken = client.call::<HoldTake>(&params);
        let was_taken_so = taken.as_ref().is_ok_and(|hold| hold.id == id);
        if is_new && !was_taken_so && !taken.as_ref().is_err_and(may_be_taken) {
            held.ids.retain(|known| *known != id);
        }
        let hold = taken.map_err(refused)?;
        // The daemon cuts an id that is too long.
        if !held.ids.contains(&hold.id) {
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
        Client::connect(&self.api, &self.options()).map_err(refused)?.call::<M>(params).map_err(refused)
    }

    fn options(&self) -> ClientOptions {
        ClientOptions { provider: Some(self.name.clone()), ..ClientOptions::new(NAME) }
    }
}

/// Whether the daemon may have taken a hold though it did not say so.
fn may_be_taken(error: &ClientError) -> bool {
    // These come before anything is done; others may come of a daemon that ends meanwhile.
    !matches!(error.code(), Some(ErrorCode::Busy | ErrorCode::Forbidden | ErrorCode::InvalidParams))
}

/// Hexadecimal, 128 bits of the system's random numbers: no other hold's id, nor the beginning of one.
fn fresh_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        os::unix::net::{UnixListener, UnixStream},
        sync::mpsc::{Receiver, channel},
        thread::{self, JoinHandle},
    };

    use watchkeeper_api::{
        Failure,
        rpc::{Message, PROTOCOL},
    };

    use super::*;

    /// What a daemon says to a method and the hold that it names; `None`: it cuts the connection.
    type Says = fn(&str, &str) -> Option<Result<Value, Failure>>;

    struct Daemon {
        folder: tempfile::TempDir,
        connections: usize,
        asked: Receiver<(String, String)>,
        thread: JoinHandle<()>,
    }

    impl Daemon {
        /// Serves so many connections.
        fn start(connections: usize, says: Says) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let listener = UnixListener::bind(folder.path().join("api.sock")).unwrap();
            let (tell, asked) = channel();
            let thread = thread::spawn(move || {
                for _ in 0..connections {
                    let (mut stream, _) = listener.accept().unwrap();
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    for line in lines.map_while(Result::ok) {
                        let Ok(Message::Request { id, method, params }) = Message::parse(line.as_bytes())
                        else {
                            panic!("not a request: {line}")
                        };
                        let outcome = if method == "initialize" {
                            Some(Ok(json!({
                                "protocol": PROTOCOL, "version": "", "capabilities": {}, "scope": "session",
                            })))
                        } else {
                            let hold = params["id"].as_str().unwrap_or_default();
                            tell.send((method.clone(), hold.to_owned())).unwrap();
                            says(&method, hold)
                        };
                        let Some(outcome) = outcome else { break };
                        stream
                            .write_all(&Message::Response { id: Some(id), outcome }.to_line().unwrap())
                            .unwrap();
                    }
                }
            });
            Self { folder, connections, asked, thread }
        }

        fn provider(&self, ids: usize) -> Provider {
            let provider = Provider::new(self.folder.path().join("api.sock"), "one".to_owned(), None);
            provider.holds().ids = (0..ids).map(|id| format!("h{id}")).collect();
            provider
        }

        /// What it was asked, once it has served all its connections.
        fn end(self) -> Vec<(String, String)> {
            // Where fewer came than expected it must not wait for them.
            for _ in 0..self.connections {
                drop(UnixStream::connect(self.folder.path().join("api.sock")));
            }
            self.thread.join().unwrap();
            self.asked.iter().collect()
        }
    }

    fn take(provider: &Provider) -> Result<Answer, Complaint> {
        let Value::Object(arguments) = json!({"seconds": 60, "reason": "x"}) else { panic!("an object") };
        provider.call("hold", arguments).unwrap()
    }

    #[test]
    fn a_hold_whose_answer_never_came_is_let_go() {
        let daemon = Daemon::start(2, |method, hold| match method {
            "hold.release" => Some(Ok(json!({ "ids": [hold] }))),
            _ => None,
        });
        let provider = daemon.provider(0);
        assert!(take(&provider).is_err());
        let ids = provider.holds().ids.clone();
        provider.leave();
        assert!(provider.holds().ids.is_empty());
        let asked = daemon.end();
        let [(_, taken), (_, released)] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!((taken, released), (&ids[0], &ids[0]));
        assert_eq!(taken.len(), 32);
    }

    #[test]
    fn a_hold_that_was_refused_is_forgotten() {
        let daemon = Daemon::start(1, |_, _| Some(Err(Failure::new(ErrorCode::Busy, "no".to_owned()))));
        let provider = daemon.provider(1);
        assert!(take(&provider).is_err());
        assert_eq!(provider.holds().ids, ["h0"]);
        assert_eq!(daemon.end().len(), 1);
    }

    #[test]
    fn nothing_is_forgotten_while_nobody_says_which_are_over() {
        let daemon = Daemon::start(1, |method, _| match method {
            "hold.list" => None,
            _ => panic!("{method}"),
        });
        let provider = daemon.provider(PROVIDER_HOLDS_MAX);
        assert!(take(&provider).is_err());
        assert_eq!(provider.holds().ids.len(), PROVIDER_HOLDS_MAX);
        assert_eq!(daemon.end(), [("hold.list".to_owned(), String::new())]);
    }

    #[test]
    fn what_could_not_be_let_go_stays_in_the_list() {
        let daemon = Daemon::start(1, |_, hold| match hold {
            "h0" => Some(Ok(json!({ "ids": [hold] }))),
            "h1" => Some(Err(Failure::new(ErrorCode::UnknownHold, "over".to_owned()))),
            "h2" => Some(Err(Failure::new(ErrorCode::Busy, "behind".to_owned()))),
            _ => None,
        });
        let provider = daemon.provider(5);
        provider.leave();
        assert_eq!(provider.holds().ids, ["h2", "h3", "h4"]);
        assert_eq!(daemon.end().len(), 4, "the rest is not asked for on a connection that is cut");
        assert!(take(&provider).is_err_and(|refused| refused.json().contains("is ending")));
    }
}
