//! Answers of the local interface. What changes something is answered when its row is durable.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;
use serde_json::Value;
use watchkeeper_agents::nearest::nearest;
use watchkeeper_api::{
    Call, ErrorCode, Failure, Scope, Status, Time,
    method::{
        Acknowledged, CheckLevel, ConfigPath, ConfigValue, ConfigValues, DaemonStatus, Doctor,
        EVENTS_LIMIT_DEFAULT, EVENTS_LIMIT_MAX, EventsParams, EvidenceRow, Explained, Hold,
        HoldReleaseParams, HoldTakeParams, Holds, Initialized, JournalState, KeyChange, Left, PlacePaths,
        Released, SessionStartParams, SettingSource, Subscribed, WatchCoverage, Why,
    },
    rpc::PROTOCOL,
    select::select,
};
use watchkeeper_core::{
    AgentKind, DeliveryId, InputBody, ProcessRef, SessionKey, Signal, SignalBody, Verdict, Wall,
    settings::KeepAwake,
    signal::{Activity, AgentProcess, EndReason, Facts, LockSubject, Prompt, PromptOrigin, Source, Thread},
    view::{SessionView, ShownState},
};
use watchkeeper_os::clock;

use crate::{
    agent_checks::{self, Heard},
    config,
    dispatcher::{Ack, Dispatcher},
    event::{Answer, ApiCall},
    intake, keep_awake, resolve,
    succession::RESTART,
};

/// Holds at once; a further one is refused.
const HOLDS_MAX: usize = 256;
/// Longest text that a client gives for an owner, a reason or a title, in characters; the rest is cut.
const TEXT_CHARS: usize = 500;
/// What this daemon can do beyond the first version of the interface.
const CAPABILITIES: [(&str, u32); 3] = [("events", 1), ("holds", 1), (RESTART, 1)];

type Answered = Result<Answer, Failure>;

/// What a caller inside an agent is restricted to.
type OwnSession = Option<SessionKey>;

impl Dispatcher {
    pub(crate) fn answer(&mut self, asked: ApiCall) {
        let ApiCall { caller, scope, call, reply } = asked;
        self.counters.add("api.calls");
        if self.journal.is_behind() && call.scope() == Scope::Machine {
            let failure =
                Failure::new(ErrorCode::Busy, "the journal is behind").with_hint("Try again in a moment.");
            _ = reply.send(Err(failure)); // the caller may have left
            return;
        }
        let own = (scope == Some(Scope::Session)).then(|| self.own_session(caller.pid));
        let answered = match call {
            Call::Initialize(params) => {
                tracing::debug!(client = params.client, "a client introduced itself");
                self.initialized(caller.pid)
            }
            Call::GetStatus(_) => value(&self.status(own)),
            Call::GetWhy(_) => value(&self.verdict(own.as_ref())),
            Call::Explain(params) => self.explained(&params.session, own),
            Call::GetEvents(params) => match self.events(&params, own) {
                Ok(read) => {
                    // A page takes milliseconds from a cold disk, in which nothing else would happen here.
                    tokio::task::spawn_blocking(move || reply.send(read()));
                    return;
                }
                Err(failure) => Err(failure),
            },
            Call::Subscribe(params) => self.subscribed(params.session.as_deref(), own),
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
            Call::HoldList(_) => value(&Holds { holds: self.holds() }),
            Call::DaemonStop(_) => {
                let left = self.what_is_left();
                self.stop("a person asked for it".to_owned());
                value(&Left { left })
            }
            Call::DaemonRestart(params) => self.restart(&params).and_then(|restarting| value(&restarting)),
            Call::HoldTake(params) => return self.take_hold(params, reply),
            Call::HoldRelease(params) => return self.release_holds(&params, reply),
            Call::SessionStart(params) => return self.start_session(params, caller.pid, reply),
            Call::SessionStop(params) => {
                let body = if params.end {
                    SignalBody::SessionEnded { reason: EndReason::Stopped, successor: None }
                } else {
                    let final_message = params.message.map(|m| cut(&m));
                    SignalBody::Stopped { final_message, can_continue: false, continued: false, live: None }
                };
                return self.say(&params.session, body, reply);
            }
            Call::SessionActivity(params) => {
                return self.say(&params.session, SignalBody::Activity { what: Activity::Manual }, reply);
            }
            Call::SessionSoftlock(params) => {
                let body =
                    SignalBody::SoftLocked { reason: cut(&params.reason), subject: LockSubject::Session };
                return self.say(&params.session, body, reply);
            }
            Call::SessionClearSoftlock(params) => {
                return self.say(&params.session, SignalBody::SoftLockCleared, reply);
            }
            Call::SessionRemove(params) => return self.say(&params.session, SignalBody::Removed, reply),
        };
        _ = reply.send(answered); // the caller may have left
    }

    fn initialized(&self, pid: Option<u32>) -> Answered {
        // Whoever can name the folder of a private instance owns it. A caller that nobody can place gets the least.
        let is_outside =
            pid.is_some_and(|pid| resolve::any_agent_above(self.declared.adapters(), pid).is_none());
        let scope = if self.private || is_outside { Scope::Machine } else { Scope::Session };
        let initialized = Initialized {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: CAPABILITIES
                .iter()
                .filter(|(name, _)| *name != RESTART || self.can_restart())
                .map(|(name, v)| ((*name).to_owned(), *v))
                .collect(),
            scope,
        };
        let mut answer = value(&initialized)?;
        answer.granted = Some(scope);
        Ok(answer)
    }

    /// The session of the agent that a caller runs in.
    fn own_session(&self, pid: Option<u32>) -> OwnSession {
        let (_, process): (_, ProcessRef) =
            pid.and_then(|pid| resolve::any_agent_above(self.declared.adapters(), pid))?;
        let sessions: Vec<SessionKey> =
            self.core.incarnations_of(&process).into_iter().map(|(key, _)| key).collect();
        let live =
            sessions.iter().find(|k| self.core.session(k).is_some_and(|s| s.state != ShownState::Ended));
        live.or(sessions.first()).cloned()
    }

    fn sessions_for(&self, own: Option<OwnSession>) -> Vec<SessionView> {
        match own {
            None => self.core.sessions(),
            Some(own) => own.and_then(|key| self.core.session(&key)).into_iter().collect(),
        }
    }

    fn status(&self, own: Option<OwnSession>) -> Status {
        let restricted = own.is_some();
        let why = self.why_for(own.as_ref());
        let sessions = self.sessions_for(own);
        let mut status = Status::of_views(self.revision, &self.core.machine(), why, &sessions);
        if restricted {
            let visible: Vec<String> = sessions.iter().map(|s| s.key.to_string()).collect();
            status.machine.reasons.retain(|r| r.session.as_ref().is_none_or(|s| visible.contains(s)));
        }
        if let Some(error) = self.configuration.error() {
            status.notices.push(format!("the configuration is not in force: {error}"));
        }
        for refused in &status.machine.refused {
            status.notices.push(format!("cannot hold {}: {}", refused.kind, refused.why));
        }
        status
    }

    /// The reason in one line, without the names of sessions that the caller may not see.
    fn why_for(&self, own: Option<&OwnSession>) -> String {
        let (line, machine) = (self.core.why(), self.core.machine());
        let Some(own) = own else { return line };
        let (mine, others): (Vec<_>, Vec<_>) =
            machine.reasons.iter().filter(|r| r.session.is_some()).partition(|r| r.session == *own);
        if others.is_empty() {
            return line;
        }
        let seen = mine.first().and_then(|r| Some(format!("{}: {}", r.session.as_ref()?, r.why)));
        let what = line.split_once(": ").map_or("", |(what, _)| what);
        format!("{what}: {}", seen.unwrap_or_else(|| "another session works".to_owned()))
    }

    fn verdict(&self, own: Option<&OwnSession>) -> Why {
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
        Why { awake, why: self.why_for(own), code: code.to_owned() }
    }

    fn find(&self, selector: &str, own: Option<&OwnSession>) -> Result<SessionKey, Failure> {
        let keys: Vec<SessionKey> = self
            .core
            .sessions()
            .into_iter()
            .map(|s| s.key)
            .filter(|k| own.is_none_or(|o| o.as_ref() == Some(k)))
            .collect();
        select(selector, &keys).map_err(Failure::from)
    }

    fn explained(&self, selector: &str, own: Option<OwnSession>) -> Answered {
        let key = self.find(selector, own.as_ref())?;
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
        own: Option<OwnSession>,
    ) -> Result<impl FnOnce() -> Answered + Send + 'static, Failure> {
        let key = match (&params.session, &own) {
            (Some(selector), _) => Some(self.find(selector, own.as_ref())?),
            (None, Some(own)) => Some(own.clone().ok_or_else(no_own_session)?),
            (None, None) => None,
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

    fn subscribed(&mut self, selector: Option<&str>, own: Option<OwnSession>) -> Answered {
        let only_session = match (selector, &own) {
            (Some(selector), _) => Some(self.find(selector, own.as_ref())?),
            (None, Some(own)) => Some(own.clone().ok_or_else(no_own_session)?),
            (None, None) => None,
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
        for session in live {
            left.push(format!(
                "{} goes on {}; its state is taken up again by the next start",
                session.key,
                session.state.name()
            ));
        }
        if self.core.machine().awake {
            left.push("the machine is no longer kept awake".to_owned());
        }
        left
    }

    fn holds(&self) -> Vec<Hold> {
        let now = clock::now();
        let hold = |lease: watchkeeper_core::view::LeaseView| {
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

    fn take_hold(&mut self, params: HoldTakeParams, reply: Reply) {
        let max = self.core.settings().lease_max;
        let length = params.length_s.map_or(max, Duration::from_secs).min(max);
        let id = params.id.map_or_else(fresh_id, |id| cut(&id));
        let holds = self.core.leases();
        if holds.len() >= HOLDS_MAX && holds.iter().all(|hold| hold.id != id) {
            _ = reply
                .send(Err(Failure::new(ErrorCode::Busy, format!("there are {HOLDS_MAX} holds already")))); // may have left
            return;
        }
        let taken = self.apply(InputBody::LeaseTaken {
            id: id.clone(),
            owner: cut(&params.owner),
            reason: cut(&params.reason),
            length,
        });
        // What the core made of it is the answer: the same words that a list will say, also after a restart.
        let hold = self.holds().into_iter().find(|hold| taken.is_some() && hold.id == id);
        let Some(hold) = hold.map(|hold| Hold { length_s: length.as_secs(), ..hold }) else {
            let failure = Failure::new(ErrorCode::Internal, "the hold could not be taken".to_owned());
            _ = reply.send(Err(failure)); // the caller may have left
            return;
        };
        self.acknowledge(Ack::Api { reply, answer: Box::new(move |_| value(&hold)) });
    }

    fn release_holds(&mut self, params: &HoldReleaseParams, reply: Reply) {
        let ids: Vec<String> = self.core.leases().into_iter().map(|lease| lease.id).collect();
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

    fn start_session(&mut self, params: SessionStartParams, caller: Option<u32>, reply: Reply) {
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
        let key = SessionKey {
            agent: params.agent,
            namespace: params.namespace.map(|n| cut(&n)),
            id: params.id.unwrap_or_else(fresh_id),
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
        self.said(key, facts, process, SignalBody::Started { prompt }, reply);
    }

    fn say(&mut self, selector: &str, body: SignalBody, reply: Reply) {
        match self.find(selector, None) {
            Ok(key) => self.said(key, Facts::default(), None, body, reply),
            Err(failure) => _ = reply.send(Err(failure)), // the caller may have left
        }
    }

    fn said(
        &mut self,
        key: SessionKey,
        facts: Facts,
        process: Option<AgentProcess>,
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
            source: Source::User,
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

    /// The checks that only the daemon can make.
    fn checks(&self) -> Vec<watchkeeper_api::method::Check> {
        let mut checks = vec![keep_awake::check(&self.core.machine())];
        let mut check = |name: &str, level, detail: String, fix: Option<&str>| {
            checks.push(watchkeeper_api::method::Check {
                name: name.to_owned(),
                level,
                detail,
                fix: fix.map(str::to_owned),
            });
        };
        let coverage = self.watch_coverage();
        let level = if coverage.live == coverage.watched { CheckLevel::Ok } else { CheckLevel::Warn };
        let detail =
            format!("{} of {} live sessions have a watched process", coverage.watched, coverage.live);
        check("watch-coverage", level, detail, None);
        let polled = self.exits.polled_len();
        if polled > 0 {
            check("exit-notices", CheckLevel::Warn, format!("{polled} processes are polled every 5 s"), None);
        }
        let failed = self.counters.get("journal.failed");
        let level = if failed == 0 { CheckLevel::Ok } else { CheckLevel::Warn };
        check("journal", level, format!("row {} is durable; {failed} failed writes", self.durable.0), None);
        let steps = self.counters.get("clock.stepped");
        check("clock", CheckLevel::Ok, format!("the wall clock was set {steps} times since the start"), None);
        match self.configuration.error() {
            None => check("configuration", CheckLevel::Ok, "in force".into(), None),
            Some(error) => check(
                "configuration",
                CheckLevel::Fail,
                error.to_owned(),
                Some("mend the file; it is read again at once"),
            ),
        }
        let panics = ["core.panicked", "hook.parser_panicked", "task.panicked"];
        let panics: u64 = panics.iter().map(|name| self.counters.get(name)).sum();
        if panics > 0 {
            let log = self.place.state.join("exceptions.log");
            check(
                "panics",
                CheckLevel::Warn,
                format!("{panics}; see {}", log.display()),
                Some("please report them"),
            );
        }
        checks.extend(self.declared.checks());
        let mut activity: BTreeMap<AgentKind, Wall> = BTreeMap::new();
        for session in self.core.sessions() {
            let last = activity.entry(session.key.agent).or_insert(session.last_activity);
            *last = (*last).max(session.last_activity);
        }
        let hooks = self.heard.iter().map(|(agent, now)| (*agent, now.wall)).collect();
        let (unknown, malformed) = (&self.unknown, &self.malformed);
        checks.extend(agent_checks::checks(&Heard { hooks, activity, unknown, malformed }));
        checks
    }
}

type Reply = tokio::sync::oneshot::Sender<Answered>;

fn value<T: Serialize>(value: &T) -> Answered {
    let value: Value = serde_json::to_value(value)
        .map_err(|e| Failure::new(ErrorCode::Internal, format!("cannot write the answer: {e}")))?;
    Ok(Answer { value, granted: None, only_session: None })
}

fn no_own_session() -> Failure {
    Failure::new(ErrorCode::Forbidden, "the agent that you run in has no session here")
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

/// A UUID, version 4.
fn fresh_id() -> String {
    let random = random_delivery().0 & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{random:032x}");
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default().to_owned();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}
