//! Answers of the local interface. What changes something is answered when its row is durable.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use watchkeeper_agents::nearest::nearest;
use watchkeeper_api::{
    Call, ErrorCode, Failure, Scope, Status, Time,
    mcp::{PROVIDER_HOLDS_MAX, PROVIDERS_HOLDS_MAX, check_provider},
    method::{
        Acknowledged, ConfigPath, ConfigValue, ConfigValues, DaemonStatus, Doctor, EVENTS_LIMIT_DEFAULT,
        EVENTS_LIMIT_MAX, EventsParams, EvidenceRow, Explained, Hold, HoldReleaseParams, HoldTakeParams,
        Holds, InitializeParams, Initialized, JournalState, KeyChange, Left, PlacePaths, Released,
        SessionStartParams, SettingSource, Subscribed, WatchCoverage, Why,
    },
    rpc::PROTOCOL,
    select::{select, spelled_out},
};
use watchkeeper_core::{
    AgentKind, DeliveryId, InputBody, ProcessRef, SessionKey, Signal, SignalBody, Verdict,
    lease::LEASES_MAX,
    settings::KeepAwake,
    signal::{Activity, AgentProcess, EndReason, Facts, LockSubject, Prompt, PromptOrigin, Source, Thread},
    view::{LeaseView, SessionView, ShownState},
};
use watchkeeper_os::clock;

use crate::{
    config,
    dispatcher::{Ack, Dispatcher},
    event::{Answer, ApiCall},
    grant::{self, Grant, View},
    intake,
    resolve::{self, Surroundings},
    succession::RESTART,
};

/// Longest text that a client gives for an owner, a reason or a title, in characters; the rest is cut.
const TEXT_CHARS: usize = 500;
/// Sessions named one by one when the daemon stops; the rest is counted.
const LEFT_SHOWN_MAX: usize = 100;
/// What this daemon can do beyond the first version of the interface.
const CAPABILITIES: [(&str, u32); 3] = [("events", 1), ("holds", 1), (RESTART, 1)];

/// What is said while rows wait for a disk that does not take them.
const BEHIND: &str = "the journal is behind";

/// Whether a request brings something that the journal must take first. What only looks, and what ends the daemon, is answered also
/// when it is stuck: that is when a person asks. A subscription only looks, but its coming and going are rows.
const fn adds_rows(call: &Call) -> bool {
    let only_looks = grant::is_a_read(call) && !matches!(call, Call::Subscribe(_));
    !(only_looks || matches!(call, Call::DaemonStop(_) | Call::DaemonRestart(_)))
}

type Answered = Result<Answer, Failure>;

impl Dispatcher {
    pub(crate) fn answer(&mut self, asked: ApiCall) {
        let ApiCall { caller, grant, call, reply } = asked;
        self.counters.add("api.calls");
        if self.journal.is_behind() && adds_rows(&call) {
            let failure = Failure::new(ErrorCode::Busy, BEHIND).with_hint(
                "Try again in a moment; if that lasts, see whether the disk is full: `watchkeeper doctor`.",
            );
            _ = reply.send(Err(failure)); // the caller may have left
            return;
        }
        let view = match &grant {
            None | Some(Grant::Scope(Scope::Session)) => View::Own(self.own_session(caller.pid)),
            Some(Grant::Scope(Scope::Machine) | Grant::Control { .. }) => View::All,
            Some(Grant::Provider { namespace }) => View::Namespace(namespace.clone()),
        };
        let namespace = grant.as_ref().and_then(Grant::namespace);
        let source = if grant.as_ref().is_some_and(Grant::is_mcp) { Source::Mcp } else { Source::User };
        let answered = match call {
            Call::Initialize(params) => {
                tracing::debug!(client = params.client, "a client introduced itself");
                self.initialized(&params, caller.pid)
            }
            Call::GetStatus(_) => value(&self.status(&view)),
            Call::GetWhy(_) => value(&self.verdict(&view)),
            Call::Explain(params) => self.explained(&params.session, &view),
            Call::GetEvents(params) => match self.events(&params, &view) {
                Ok(read) => {
                    // A page takes milliseconds from a cold disk, in which nothing else would happen here.
                    tokio::task::spawn_blocking(move || _ = reply.send(read())); // the caller may have left
                    return;
                }
                Err(failure) => Err(failure),
            },
            Call::Subscribe(params) => self.subscribed(params.session.as_deref(), &view),
            Call::GetConfigPath(_) => value(&ConfigPath {
                path: self.configuration.path().display().to_string(),
                exists: self.configuration.path().exists(),
            }),
            Call::GetConfigSchema(_) => value(&config::schema()),
            Call::ConfigGet(params) => self.config_values(params.key.as_deref()),
            Call::ConfigSet(params) => {
                let changed = config::set(self.configuration.path(), &params.key, &params.value);
                self.config_changed(changed)
            }
            Call::ConfigUnset(params) => {
                let changed = config::unset(self.configuration.path(), &params.key);
                self.config_changed(changed)
            }
            Call::GetDaemonStatus(_) => value(&self.daemon_status()),
            Call::GetDoctor(_) => value(&Doctor { checks: self.checks() }),
            Call::HoldList(_) => value(&Holds { holds: self.holds_of(namespace) }),
            Call::DaemonStop(_) => {
                let left = self.what_is_left();
                self.stop("a person asked for it".to_owned());
                value(&Left { left })
            }
            Call::DaemonRestart(params) => self.restart(&params).and_then(|restarting| value(&restarting)),
            Call::HoldTake(params) => return self.take_hold(params, namespace, reply),
            Call::HoldRelease(params) => return self.release_holds(&params, namespace, reply),
            Call::SessionStart(params) => {
                let key = SessionKey {
                    agent: params.agent,
                    namespace: params.namespace.as_deref().map(cut),
                    id: params.id.clone().unwrap_or_else(fresh_id),
                };
                if !view.sees(&key) {
                    let failure = Failure::new(
                        ErrorCode::Forbidden,
                        format!("'{key}' is not a session of this provider"),
                    );
                    _ = reply.send(Err(failure)); // the caller may have left
                    return;
                }
                return self.start_session(params, key, source, caller.pid, reply);
            }
            Call::SessionStop(params) => {
                let body = if params.end {
                    SignalBody::SessionEnded { reason: EndReason::Stopped, successor: None }
                } else {
                    let final_message = params.message.map(|m| cut(&m));
                    SignalBody::Stopped { final_message, can_continue: false, continued: false, live: None }
                };
                return self.say(&params.session, &view, source, body, reply);
            }
            Call::SessionActivity(params) => {
                let body = SignalBody::Activity { what: Activity::Manual };
                return self.say(&params.session, &view, source, body, reply);
            }
            Call::SessionSoftlock(params) => {
                let body =
                    SignalBody::SoftLocked { reason: cut(&params.reason), subject: LockSubject::Session };
                return self.say(&params.session, &view, source, body, reply);
            }
            Call::SessionClearSoftlock(params) => {
                return self.say(&params.session, &view, source, SignalBody::SoftLockCleared, reply);
            }
            Call::SessionRemove(params) => {
                return self.say(&params.session, &view, source, SignalBody::Removed, reply);
            }
        };
        _ = reply.send(answered); // the caller may have left
    }

    fn initialized(&self, params: &InitializeParams, pid: Option<u32>) -> Answered {
        let grant = self.granted(params, pid)?;
        let initialized = Initialized {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: CAPABILITIES
                .iter()
                .filter(|(name, _)| *name != RESTART || self.can_restart())
                .map(|(name, v)| ((*name).to_owned(), *v))
                .collect(),
            scope: grant.scope(),
        };
        let mut answer = value(&initialized)?;
        answer.granted = Some(grant);
        Ok(answer)
    }

    /// A provider's name binds whoever gives it; a capability widens; else the caller's place decides.
    fn granted(&self, params: &InitializeParams, pid: Option<u32>) -> Result<Grant, Failure> {
        if let Some(name) = &params.provider {
            check_provider(name)
                .map_err(|error| Failure::new(ErrorCode::InvalidParams, error.to_string()))?;
            return Ok(Grant::Provider { namespace: name.clone() });
        }
        if let Some(shown) = &params.capability {
            return grant::control(&self.place.state, shown).map_err(|problem| {
                Failure::new(ErrorCode::Forbidden, format!("the capability counts for nothing: {problem}"))
                    .with_hint("Run `watchkeeper install --mcp` again.")
            });
        }
        // Whoever can name the folder of a private instance owns it. A caller that nobody can place gets the least.
        let is_outside = pid.is_some_and(|pid| match resolve::surroundings(self.declared.adapters(), pid) {
            Surroundings::NoAgent => true,
            Surroundings::Agent(_) | Surroundings::Unknown => false,
        });
        Ok(Grant::Scope(if self.private || is_outside { Scope::Machine } else { Scope::Session }))
    }

    /// The session of the agent that a caller runs in.
    fn own_session(&self, pid: Option<u32>) -> Option<SessionKey> {
        let Surroundings::Agent(process) = resolve::surroundings(self.declared.adapters(), pid?) else {
            return None;
        };
        self.only_session_of(&process)
    }

    /// The one session of an agent's process. Of a process that has several at a time it cannot be told which one a caller
    /// belongs to: none.
    pub(crate) fn only_session_of(&self, process: &ProcessRef) -> Option<SessionKey> {
        // What an MCP provider tells of may end with the agent's process, but is not the agent's own session.
        let is_agent_s = |key: &SessionKey| key.agent != AgentKind::Mcp;
        let mut sessions: Vec<SessionKey> =
            self.core.incarnations_of(process).into_iter().map(|(key, _)| key).filter(is_agent_s).collect();
        let is_live = |key: &SessionKey| self.core.session(key).is_some_and(|s| s.state != ShownState::Ended);
        if sessions.iter().any(is_live) {
            sessions.retain(is_live);
        }
        sessions.pop().filter(|_| sessions.is_empty())
    }

    fn sessions_for(&self, view: &View) -> Vec<SessionView> {
        match view {
            View::Own(own) => own.iter().filter_map(|key| self.core.session(key)).collect(),
            View::All | View::Namespace(_) => {
                self.core.sessions().into_iter().filter(|session| view.sees(&session.key)).collect()
            }
        }
    }

    fn status(&self, view: &View) -> Status {
        let why = self.why_for(view);
        let sessions = self.sessions_for(view);
        let mut status = Status::of_views(self.revision, &self.core.machine(), why, &sessions);
        if view.is_restricted() {
            let visible: Vec<String> = sessions.iter().map(|s| s.key.to_string()).collect();
            status.machine.reasons.retain(|r| r.session.as_ref().is_none_or(|s| visible.contains(s)));
        }
        if self.journal.is_behind() {
            status
                .notices
                .push(format!("{BEHIND}: what is new is kept by the hooks until it can be written"));
        }
        if let Some(error) = self.configuration.error() {
            status.notices.push(format!("the configuration is not in force: {error}"));
        }
        for refused in &status.machine.refused {
            status.notices.push(format!("cannot hold {}: {}", refused.kind, refused.why));
        }
        status.fit();
        status
    }

    /// The reason in one line, without the names of sessions that the caller may not see.
    fn why_for(&self, view: &View) -> String {
        let (line, machine) = (self.core.why(), self.core.machine());
        if !view.is_restricted() {
            return line;
        }
        let (mine, others): (Vec<_>, Vec<_>) = machine
            .reasons
            .iter()
            .filter(|r| r.session.is_some())
            .partition(|r| r.session.as_ref().is_some_and(|key| view.sees(key)));
        if others.is_empty() {
            return line;
        }
        let seen = mine.first().and_then(|r| Some(format!("{}: {}", r.session.as_ref()?, r.why)));
        let what = line.split_once(": ").map_or("", |(what, _)| what);
        format!("{what}: {}", seen.unwrap_or_else(|| "another session works".to_owned()))
    }

    fn verdict(&self, view: &View) -> Why {
        let machine = self.core.machine();
        let code = match (machine.awake, machine.wanted) {
            (true, _) => "demand",
            (false, true) if machine.refused.is_empty() => "unknown",
            (false, true) => "refused",
            (false, false) if self.core.settings().keep_awake == KeepAwake::Off => "off",
            (false, false) if !machine.armed => "latched",
            (false, false) => "no_demand",
        };
        let awake = if code == "unknown" { None } else { Some(machine.awake) };
        Why { awake, why: self.why_for(view), code: code.to_owned() }
    }

    fn find(&self, selector: &str, view: &View) -> Result<SessionKey, Failure> {
        // A provider's program names its sessions whole; a beginning must never hit another one.
        let whole = match view {
            View::All | View::Own(_) => None,
            View::Namespace(_) => Some(spelled_out(selector)),
        };
        let keys: Vec<SessionKey> = self
            .core
            .sessions()
            .into_iter()
            .map(|s| s.key)
            .filter(|key| view.sees(key) && whole.as_ref().is_none_or(|whole| whole.as_ref() == Some(key)))
            .collect();
        select(selector, &keys).map_err(Failure::from)
    }

    fn explained(&self, selector: &str, view: &View) -> Answered {
        let key = self.find(selector, view)?;
        let gone = || Failure::new(ErrorCode::UnknownSession, format!("'{key}' is not remembered any more"));
        let session = self.core.session(&key).ok_or_else(gone)?;
        let evidence = self.core.explain(&key).ok_or_else(gone)?;
        value(&Explained {
            session: watchkeeper_api::status::Session::of_view(&session),
            evidence: evidence.iter().map(EvidenceRow::of).collect(),
        })
    }

    /// The reading of one page, to be done elsewhere: it blocks.
    fn events(
        &self,
        params: &EventsParams,
        view: &View,
    ) -> Result<impl FnOnce() -> Answered + Send + 'static, Failure> {
        let key = match (&params.session, view) {
            (Some(selector), _) => Some(self.find(selector, view)?),
            (None, View::Own(own)) => Some(own.clone().ok_or_else(no_own_session)?),
            (None, View::All) => None,
            // Never granted; a page of one namespace would need its own reading of the journal.
            (None, View::Namespace(_)) => return Err(no_own_session()),
        };
        let limit = params.limit.unwrap_or(EVENTS_LIMIT_DEFAULT).min(EVENTS_LIMIT_MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (after, since) = (params.after_seq.unwrap_or(0), params.since.map(|time| time.0));
        let reader = self.reader.clone();
        Ok(move || {
            let page = reader.rows(after, key.as_ref(), since, limit);
            value(&page.ok_or_else(|| Failure::new(ErrorCode::Internal, "the journal cannot be read"))?)
        })
    }

    fn subscribed(&mut self, selector: Option<&str>, view: &View) -> Answered {
        let only_session = match (selector, view) {
            (Some(selector), _) => Some(self.find(selector, view)?),
            (None, View::Own(own)) => Some(own.clone().ok_or_else(no_own_session)?),
            (None, View::All) => None,
            // Never granted; a page of one namespace would need its own reading of the journal.
            (None, View::Namespace(_)) => return Err(no_own_session()),
        };
        self.observe(true);
        let mut answer = value(&Subscribed { revision: self.revision, seq: self.durable.0 })?;
        answer.only_session = only_session;
        Ok(answer)
    }

    fn config_values(&self, key: Option<&str>) -> Answered {
        let loaded = self.configuration.loaded();
        let defaults = watchkeeper_core::Settings::default();
        if let Some(key) = key {
            config::find_or_suggest(key)
                .map_err(|problem| Failure::new(ErrorCode::UnknownSetting, problem.to_string()))?;
        }
        let wanted = config::SETTINGS.iter().filter(|s| key.is_none_or(|key| s.key == key));
        let settings = wanted.map(|setting| ConfigValue {
            key: setting.key.to_owned(),
            value: setting.value(&loaded.settings),
            default: setting.value(&defaults),
            source: loaded.source(setting.key),
        });
        value(&ConfigValues {
            path: self.configuration.path().display().to_string(),
            settings: settings.collect(),
            error: self.configuration.error().map(str::to_owned),
        })
    }

    fn config_changed(&mut self, changed: Result<config::Change, config::ConfigError>) -> Answered {
        let change = changed.map_err(|error| {
            let code = match &error {
                config::ConfigError::Rejected(problem) => match problem.kind {
                    config::ProblemKind::Unknown { .. } => ErrorCode::UnknownSetting,
                    config::ProblemKind::BadValue { .. } => ErrorCode::BadValue,
                },
                config::ConfigError::Read { .. }
                | config::ConfigError::TooLarge { .. }
                | config::ConfigError::Syntax { .. }
                | config::ConfigError::Invalid { .. }
                | config::ConfigError::Write { .. }
                | config::ConfigError::Raced { .. } => ErrorCode::Refused,
            };
            Failure::new(code, error.to_string())
        })?;
        self.reload_configuration();
        let overridden = self.configuration.loaded().source(&change.key) == SettingSource::Environment;
        let note = match (self.configuration.error(), overridden) {
            (Some(error), _) => Some(format!("not in force: {error}")),
            (None, true) => {
                Some("not in force: an environment variable of the daemon says otherwise".to_owned())
            }
            (None, false) if config::find(&change.key).is_some_and(|setting| !setting.is_carried_out()) => {
                Some("this version records what it decides by it and does not act on it".to_owned())
            }
            (None, false) => None,
        };
        value(&KeyChange { key: change.key, before: change.before, after: change.after, note })
    }

    fn daemon_status(&self) -> DaemonStatus {
        let now = clock::now();
        let mut counters = self.counters.all().clone();
        counters.insert("transcripts.followed".into(), self.follower.len() as u64);
        counters.insert("processes.watched".into(), self.exits.len() as u64);
        counters.insert("processes.polled".into(), self.exits.polled_len() as u64);
        counters.insert("hooks.held".into(), self.held.len() as u64);
        DaemonStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            pid: std::process::id(),
            started_at: Time(self.started.wall),
            uptime_s: now.boot.since(self.started.boot).as_secs(),
            place: PlacePaths {
                config: self.place.config.display().to_string(),
                state: self.place.state.display().to_string(),
                run: self.place.run.display().to_string(),
                private: self.private,
            },
            watch: self.watch_coverage(),
            journal: JournalState {
                seq: self.durable.0,
                size_bytes: std::fs::metadata(self.place.journal()).map_or(0, |m| m.len()),
            },
            counters,
            unknown_events: self.unknown.all().clone(),
            malformed: self.malformed.all().clone(),
            heard: self.heard.iter().map(|(agent, now)| (agent.to_string(), Time(now.wall))).collect(),
            config_error: self.configuration.error().map(str::to_owned),
        }
    }

    pub(crate) fn watch_coverage(&self) -> WatchCoverage {
        let mut coverage = WatchCoverage::default();
        for session in self.core.sessions().iter().filter(|s| s.state != ShownState::Ended) {
            coverage.live += 1;
            coverage.watched += u64::from(session.watched);
        }
        coverage
    }

    fn what_is_left(&self) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        let live = self
            .core
            .sessions()
            .into_iter()
            .filter(|s| !matches!(s.state, ShownState::Ended | ShownState::Idle));
        let mut more = 0;
        for session in live {
            if left.len() >= LEFT_SHOWN_MAX {
                more += 1;
                continue;
            }
            left.push(format!(
                "{} goes on {}; its state is taken up again by the next start",
                session.key,
                session.state.name()
            ));
        }
        if more > 0 {
            left.push(format!("{more} more sessions go on"));
        }
        if self.core.machine().awake {
            left.push("the machine is no longer kept awake".to_owned());
        }
        left
    }

    fn holds(&self) -> Vec<Hold> {
        let now = clock::now();
        let hold = |lease: LeaseView| {
            let left_ms = i64::try_from(lease.until.since(now.mono).as_millis()).unwrap_or(i64::MAX);
            let expires = now.wall.0.saturating_add(left_ms);
            let length_ms = expires.saturating_sub(lease.since.0);
            Hold {
                id: lease.id,
                owner: lease.owner,
                reason: lease.reason,
                since: Time(lease.since),
                expires_at: Time(watchkeeper_core::Wall(expires)),
                length_s: u64::try_from(length_ms / 1000).unwrap_or(0),
            }
        };
        self.core.leases().into_iter().map(hold).collect()
    }

    /// The holds that a caller may list and let go: a provider's are those it owns.
    fn holds_of(&self, namespace: Option<&str>) -> Vec<Hold> {
        let owner = namespace.map(grant::hold_owner);
        self.holds()
            .into_iter()
            .filter(|hold| owner.as_ref().is_none_or(|owner| *owner == hold.owner))
            .collect()
    }

    fn take_hold(&mut self, params: HoldTakeParams, namespace: Option<&str>, reply: Reply) {
        let owner = namespace.map_or_else(|| cut(&params.owner), grant::hold_owner);
        let max = self.core.settings().lease_max;
        let length = params.length_s.map_or(max, Duration::from_secs).min(max);
        let id = params.id.map_or_else(fresh_id, |id| cut(&id));
        let holds = self.core.leases();
        if holds.len() >= LEASES_MAX && holds.iter().all(|hold| hold.id != id) {
            _ = reply
                .send(Err(Failure::new(ErrorCode::Busy, format!("there are {LEASES_MAX} holds already")))); // may have left
            return;
        }
        let foreign = namespace.is_some() && holds.iter().any(|hold| hold.id == id && hold.owner != owner);
        if foreign {
            let failure = Failure::new(ErrorCode::Forbidden, format!("the hold '{id}' is another's"));
            _ = reply.send(Err(failure.with_hint("Leave the id out to take a hold of your own."))); // may have left
            return;
        }
        let is_new = holds.iter().all(|hold| hold.id != id);
        if namespace.is_some()
            && is_new
            && let Some(failure) = no_room_for(&owner, &holds)
        {
            _ = reply.send(Err(failure)); // may have left
            return;
        }
        let taken =
            self.apply(InputBody::LeaseTaken { id: id.clone(), owner, reason: cut(&params.reason), length });
        // What the core made of it is the answer: the same words that a list will say, also after a restart.
        let hold = self.holds().into_iter().find(|hold| taken.is_some() && hold.id == id);
        let Some(hold) = hold.map(|hold| Hold { length_s: length.as_secs(), ..hold }) else {
            let failure = Failure::new(ErrorCode::Internal, "the hold could not be taken".to_owned());
            _ = reply.send(Err(failure)); // the caller may have left
            return;
        };
        self.acknowledge(Ack::Api { reply, answer: Box::new(move |_| value(&hold)) });
    }

    fn release_holds(&mut self, params: &HoldReleaseParams, namespace: Option<&str>, reply: Reply) {
        let ids: Vec<String> = self.holds_of(namespace).into_iter().map(|hold| hold.id).collect();
        let wanted: Vec<String> = match &params.id {
            _ if params.all => ids.clone(),
            Some(id) if ids.contains(id) => vec![id.clone()],
            Some(id) => ids.iter().filter(|k| k.starts_with(id.as_str())).cloned().collect(),
            None => ids.clone(),
        };
        let ambiguous = !params.all && wanted.len() > 1;
        if ambiguous || (params.id.is_some() && wanted.is_empty()) {
            let what = if ambiguous { "names several holds" } else { "names no hold" };
            let failure = Failure::new(
                ErrorCode::UnknownHold,
                format!("'{}' {what}", params.id.as_deref().unwrap_or("")),
            )
            .with_hint("`watchkeeper release --all` lets all of them go.")
            .with_candidates(ids);
            _ = reply.send(Err(failure)); // the caller may have left
            return;
        }
        for id in &wanted {
            _ = self.apply(InputBody::LeaseReleased { id: id.clone() });
        }
        self.acknowledge(Ack::Api { reply, answer: Box::new(move |_| value(&Released { ids: wanted })) });
    }

    fn start_session(
        &mut self,
        params: SessionStartParams,
        key: SessionKey,
        source: Source,
        caller: Option<u32>,
        reply: Reply,
    ) {
        if let AgentKind::Declared(_) = params.agent
            && self.declared.adapters().get(params.agent).is_none()
        {
            _ = reply.send(Err(self.not_declared(params.agent))); // the caller may have left
            return;
        }
        if params.agent.needs_namespace() != params.namespace.is_some() {
            let needs =
                if params.agent.needs_namespace() { "needs a namespace" } else { "takes no namespace" };
            let failure = Failure::new(ErrorCode::InvalidParams, format!("'{}' {needs}", params.agent));
            _ = reply.send(Err(failure)); // the caller may have left
            return;
        }
        let process = match params.pid {
            Some(pid) => match resolve::declared(pid, caller) {
                resolve::Resolution::Found(process) | resolve::Resolution::FoundAbove { process, .. } => {
                    Some(process)
                }
                resolve::Resolution::Gone(_) => {
                    let failure = Failure::new(ErrorCode::Refused, format!("process {pid} has ended"));
                    _ = reply.send(Err(failure)); // the caller may have left
                    return;
                }
                resolve::Resolution::NotFound { why } => {
                    let failure =
                        Failure::new(ErrorCode::Refused, format!("process {pid} cannot be watched: {why}"));
                    _ = reply.send(Err(failure)); // the caller may have left
                    return;
                }
            },
            None => {
                let adapter = self.declared.adapters().get(params.agent);
                resolve::agent_above(adapter.as_deref(), caller).process()
            }
        };
        if key.id.is_empty() || key.id.len() > intake::SESSION_ID_BYTES {
            _ = reply.send(Err(Failure::new(ErrorCode::InvalidParams, "a session id has 1 to 256 bytes"))); // may have left
            return;
        }
        let facts = Facts {
            cwd: params.cwd.map(|t| cut(&t)),
            title: params.title.map(|t| cut(&t)),
            transcript: params.transcript,
            ..Facts::default()
        };
        let prompt = params.prompt.map(|text| Prompt { text, origin: PromptOrigin::Person });
        self.said(key, facts, process, source, SignalBody::Started { prompt }, reply);
    }

    fn say(&mut self, selector: &str, view: &View, source: Source, body: SignalBody, reply: Reply) {
        match self.find(selector, view) {
            Ok(key) => self.said(key, Facts::default(), None, source, body, reply),
            Err(failure) => _ = reply.send(Err(failure)), // the caller may have left
        }
    }

    fn said(
        &mut self,
        key: SessionKey,
        facts: Facts,
        process: Option<AgentProcess>,
        source: Source,
        body: SignalBody,
        reply: Reply,
    ) {
        let now = self.now();
        let observation = watchkeeper_agents::Observation {
            session: Some(key.id.clone()),
            turn: None,
            thread: Thread::Main,
            at: None,
            facts,
            body,
        };
        let sender = intake::Sender {
            agent: key.agent,
            namespace: key.namespace.clone(),
            session: None,
            source,
            happened: Some(now.stamp()),
            process,
            delivery: random_delivery(),
        };
        let signal: Option<Signal> =
            intake::signal(observation, 0, &sender, self.core.settings().record_prompts);
        let taken =
            signal.and_then(|s| self.apply_judged(InputBody::Signal { signal: Box::new(s), held: None }));
        let Some((_, verdict)) = taken else {
            let failure = Failure::new(ErrorCode::Internal, "it could not be taken; nothing changed");
            _ = reply.send(Err(failure)); // the caller may have left
            return;
        };
        let note = match verdict {
            Verdict::Applied => None,
            Verdict::Recorded => Some("noted; it changed nothing"),
            Verdict::Stale => Some("something newer is known; it changed nothing"),
            Verdict::Duplicate => Some("it was known already"),
            Verdict::Refused => Some("the session does not accept it; it changed nothing"),
        };
        let answer = move |dispatcher: &Self| {
            let session = dispatcher.core.session(&key);
            value(&Acknowledged {
                session: key.to_string(),
                incarnation: session.as_ref().map(|s| s.incarnation.0),
                state: session.map(|s| s.state),
                note: note.map(str::to_owned),
            })
        };
        self.acknowledge(Ack::Api { reply, answer: Box::new(answer) });
    }

    /// A name that no adapter has, built in or declared.
    fn not_declared(&self, agent: AgentKind) -> Failure {
        let kinds: Vec<AgentKind> = self.declared.adapters().kinds().collect();
        let names: Vec<&str> = kinds.iter().map(AgentKind::name).collect();
        let meant = nearest(agent.name(), names.iter().copied());
        let meant = meant.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
        let message = format!("unknown agent '{agent}'; known are {}{meant}", names.join(", "));
        Failure::new(ErrorCode::InvalidParams, message)
            .with_hint("A file in the folder `agents` of the configuration can declare another.")
    }
}

type Reply = tokio::sync::oneshot::Sender<Answered>;

fn value<T: Serialize>(value: &T) -> Answered {
    let value: Value = serde_json::to_value(value)
        .map_err(|e| Failure::new(ErrorCode::Internal, format!("cannot write the answer: {e}")))?;
    Ok(Answer { value, granted: None, only_session: None })
}

fn no_own_session() -> Failure {
    Failure::new(ErrorCode::Forbidden, "the agent that you run in has no session here, or several")
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS).collect()
}

/// Unguessable enough for an id that nobody else may give: the standard library's own keys, fresh for each map.
pub(crate) fn random_delivery() -> DeliveryId {
    use std::hash::{BuildHasher as _, RandomState};
    let half = || RandomState::new().hash_one(clock::now().boot.0);
    DeliveryId(u128::from(half()) << 64 | u128::from(half()))
}

/// Why a provider may take no further hold.
fn no_room_for(owner: &str, holds: &[LeaseView]) -> Option<Failure> {
    let own = holds.iter().filter(|hold| hold.owner == owner).count();
    let of_providers = holds.iter().filter(|hold| grant::is_a_provider(&hold.owner)).count();
    let (whose, hint) = if own >= PROVIDER_HOLDS_MAX {
        (format!("this provider has {PROVIDER_HOLDS_MAX}"), "Let one of them go first.")
    } else if of_providers >= PROVIDERS_HOLDS_MAX {
        (
            format!("all providers together have {PROVIDERS_HOLDS_MAX}"),
            "Try again when one of them has let go; `watchkeeper hold --list` shows whose they are.",
        )
    } else {
        return None;
    };
    Some(Failure::new(ErrorCode::Busy, format!("{whose} holds already")).with_hint(hint))
}

/// A UUID, version 4.
fn fresh_id() -> String {
    let random = random_delivery().0 & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{random:032x}");
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default().to_owned();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}
