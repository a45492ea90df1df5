//! The world of one recording: a clock that jumps, files that grow, processes that end. Does what the daemon's shell
//! does around the core, with the recording in place of the system.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};
use watchkeeper_agents::{
    Adapter, LineScanner, Observation, Parsed, TranscriptReader, adapter,
    ancestry::{self, Found, ProcessInfo},
    hook_time,
};
use watchkeeper_core::{
    AgentKind, AgentTraits, Boot, BootId, Core, DeliveryId, Effect, Input, InputBody, Mono, Now, ProcessRef,
    SessionKey, Settings, Signal, SignalBody, Wall,
    input::{Known, ProbeAnswer, WatchOutcome},
    signal::{AgentProcess, Facts, Source, Thread},
    time::Stamp,
    view::ShownState,
};

use super::load::{Event, EventKind, Recording};

/// The clocks at t = 0; anything but zero.
const ZERO: Duration = Duration::from_secs(1000);
/// The one boot of a recording.
const BOOT: BootId = BootId(1);
/// Deadlines at one moment before the replay is called stuck.
const DEADLINES_MAX: u32 = 10_000;
/// Names of unknown events and fields kept.
const UNKNOWN_MAX: usize = 1000;

/// A recording of an agent that no adapter is built in for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAdapter {
    pub agent: AgentKind,
}

impl std::fmt::Display for NoAdapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no adapter for {}", self.agent)
    }
}

impl std::error::Error for NoAdapter {}

/// One recording being replayed.
#[derive(Debug)]
pub struct Replay {
    core: Core,
    adapter: &'static dyn Adapter,
    wall_zero: Wall,
    t: f64,
    /// Contents so far of every file that was written.
    files: BTreeMap<String, Vec<u8>>,
    /// Cursors by session and path; they stay when a file is no longer followed.
    followed: BTreeMap<(SessionKey, String), Follower>,
    /// Which file of a session is followed now.
    following: BTreeMap<SessionKey, String>,
    /// The newest start time seen of each pid.
    starts: BTreeMap<u32, u64>,
    exited: BTreeSet<(u32, u64)>,
    /// Which session named a process for its work.
    work_of: BTreeMap<(u32, u64), String>,
    /// The session that a state file last spoke of.
    stated: BTreeMap<String, String>,
    deliveries: u128,
    timeline: BTreeMap<SessionKey, Vec<(f64, ShownState)>>,
    /// When the machine's demand changed, and to what.
    demand: Vec<(f64, bool)>,
    pub unknown: BTreeMap<String, u32>,
    pub malformed: BTreeMap<String, u32>,
    pub violations: Vec<String>,
}

#[derive(Debug)]
struct Follower {
    offset: usize,
    scanner: LineScanner,
    reader: Box<dyn TranscriptReader>,
}

impl Replay {
    /// A world in which nothing has happened yet.
    ///
    /// # Errors
    /// When no adapter is built in for the recording's agent.
    pub fn new(recording: &Recording) -> Result<Self, NoAdapter> {
        let agent = recording.agent;
        let adapter = adapter(agent).ok_or(NoAdapter { agent })?;
        let traits =
            AgentTraits::from([(agent, watchkeeper_core::AgentTrait { wakes_model: adapter.wakes_model() })]);
        Ok(Self {
            core: Core::new(Settings::default(), traits),
            adapter,
            wall_zero: recording.wall_zero,
            t: 0.0,
            files: BTreeMap::new(),
            followed: BTreeMap::new(),
            following: BTreeMap::new(),
            starts: BTreeMap::new(),
            exited: BTreeSet::new(),
            work_of: BTreeMap::new(),
            stated: BTreeMap::new(),
            deliveries: 0,
            timeline: BTreeMap::new(),
            demand: vec![(0.0, false)],
            unknown: BTreeMap::new(),
            malformed: BTreeMap::new(),
            violations: Vec::new(),
        })
    }

    /// All events in order, then time alone up to `end`.
    pub fn run(&mut self, events: &[Event], end: f64) {
        for event in events {
            self.event(event);
        }
        self.advance(end);
    }

    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Seconds since the start of the recording.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.t
    }

    /// The shown states of every session: since when, and what.
    pub fn timeline(&self) -> impl Iterator<Item = (&SessionKey, &[(f64, ShownState)])> {
        self.timeline.iter().map(|(key, changes)| (key, changes.as_slice()))
    }

    /// Whether any session protected the machine at `t`.
    #[must_use]
    pub fn protects_at(&self, t: f64) -> bool {
        self.demand.iter().rev().find(|(since, _)| *since <= t).is_some_and(|(_, protects)| *protects)
    }

    /// Lets time pass up to an event, then tells it.
    pub fn event(&mut self, event: &Event) {
        self.advance(event.t);
        match &event.kind {
            EventKind::Hook { event, argv, payload, ancestry, answered: _ } => {
                self.hook(event, argv, payload, ancestry);
            }
            EventKind::Transcript { path, append } => {
                self.files.entry(path.clone()).or_default().extend_from_slice(append);
                let readers: Vec<SessionKey> =
                    self.following.iter().filter(|(_, p)| *p == path).map(|(key, _)| key.clone()).collect();
                for key in readers {
                    self.read_on(&key);
                }
            }
            EventKind::Registry { path, content } => self.registry(path, content.as_deref()),
            EventKind::Exit { pid } => self.exit(*pid),
            EventKind::Other => {}
        }
    }

    /// Something that the recording does not have: the lid, the displays, the mains.
    pub fn tell(&mut self, body: InputBody) {
        self.handle(body);
    }

    /// Virtual time up to `t`, through every deadline on the way.
    pub fn advance(&mut self, t: f64) {
        let mut reached = 0_u32;
        while let Some((at, deadline)) = self.core.next_deadline() {
            if at > mono(t) {
                break;
            }
            self.t = self.t.max(seconds(at));
            self.handle(InputBody::DeadlineReached { deadline });
            reached += 1;
            if reached >= DEADLINES_MAX {
                self.violations.push(format!("{DEADLINES_MAX} deadlines before t = {t}"));
                break;
            }
        }
        self.t = self.t.max(t);
    }

    fn now(&self) -> Now {
        let mono = mono(self.t);
        #[expect(clippy::cast_possible_truncation, reason = "recordings last minutes")]
        let wall = Wall(self.wall_zero.0 + (self.t * 1000.0).round() as i64);
        Now { mono, boot: Boot(mono.0), wall, boot_id: BOOT }
    }

    fn alive(&self, pid: u32, start: u64) -> bool {
        !self.exited.contains(&(pid, start))
    }

    fn hook(&mut self, event: &str, argv: &[String], payload: &[u8], chain: &[ProcessInfo]) {
        for process in chain {
            self.starts.insert(process.pid, process.start);
        }
        let found = match ancestry::find(self.adapter.ancestry(), chain) {
            Found::Agent { index, shared } => chain.get(index).map(|process| (process, shared)),
            Found::None { .. } => None,
        };
        let process = found.filter(|(p, _)| self.alive(p.pid, p.start)).map(|(p, shared)| AgentProcess {
            process: ProcessRef { pid: p.pid, start: p.start, boot: BOOT },
            shared,
            declared: false,
        });
        let can_ask = found.and_then(|(p, _)| self.adapter.can_ask(p));
        let arguments: Vec<&[u8]> = argv.iter().map(String::as_bytes).collect();
        let mut parsed = self.adapter.payload(Some(event), &arguments, payload);
        self.count(&mut parsed);
        self.resolve_work(&mut parsed);
        let now = self.now();
        let lag = hook_time::lag(&parsed.observations, now.wall);
        let happened = Stamp { boot: now.boot.before(lag), boot_id: now.boot_id };
        for mut observation in parsed.observations {
            observation.facts.can_ask = observation.facts.can_ask.or(can_ask);
            self.find_transcript(&mut observation);
            self.observe(observation, None, Source::Hook, happened, process);
        }
    }

    /// Where a hook gives no path, the file that is the session's below the agent's home, wherever that was.
    fn find_transcript(&self, observation: &mut Observation) {
        let (None, Some(session)) = (&observation.facts.transcript, &observation.session) else { return };
        let Some(below) = self.adapter.transcript_below_home(session) else { return };
        let end = format!("/{below}");
        let mut found = self.files.keys().filter(|path| path.ends_with(&end));
        if let (Some(path), None) = (found.next(), found.next()) {
            observation.facts.transcript = Some(path.clone());
        }
    }

    /// Completes started work with the process that the agent named for it, as far as the recording knows it.
    fn resolve_work(&mut self, parsed: &mut Parsed) {
        for (work, pid) in std::mem::take(&mut parsed.work_pids) {
            let start = *self.starts.entry(pid).or_insert(0);
            let found = self.alive(pid, start).then_some(ProcessRef { pid, start, boot: BOOT });
            for observation in &mut parsed.observations {
                if let SignalBody::WorkStarted { id, process: process @ None, .. } = &mut observation.body
                    && *id == work
                {
                    *process = found;
                    if let Some(session) = &observation.session {
                        self.work_of.insert((pid, start), session.clone());
                    }
                }
            }
        }
    }

    fn count(&mut self, parsed: &mut Parsed) {
        for name in parsed.unknown.drain(..) {
            if self.unknown.len() < UNKNOWN_MAX || self.unknown.contains_key(&name) {
                *self.unknown.entry(name).or_default() += 1;
            }
        }
        if let Some(why) = parsed.malformed.take() {
            *self.malformed.entry(why).or_default() += 1;
        }
    }

    /// Completes an observation as the shell does and tells it to the core.
    fn observe(
        &mut self,
        observation: Observation,
        session: Option<&str>,
        source: Source,
        happened: Stamp,
        process: Option<AgentProcess>,
    ) {
        let Some(id) = observation.session.as_deref().or(session) else { return };
        self.deliveries += 1;
        let signal = Signal {
            key: SessionKey::new(self.adapter.kind(), id),
            incarnation: None,
            turn: observation.turn,
            thread: observation.thread,
            delivery: DeliveryId(self.deliveries),
            source,
            happened: Some(happened),
            process,
            facts: observation.facts,
            body: observation.body,
        };
        self.handle(InputBody::Signal { signal: Box::new(signal), held: None });
    }

    /// When a record says that it was written.
    fn written(&self, observation: &Observation) -> Stamp {
        let now = self.now();
        observation.at.map_or_else(|| now.stamp(), |at| now.stamp_of_wall(at))
    }

    fn read_on(&mut self, key: &SessionKey) {
        let Some(path) = self.following.get(key).cloned() else { return };
        let slot = (key.clone(), path);
        let Some(mut follower) = self.followed.remove(&slot) else { return };
        let mut parsed = Parsed::default();
        if let Some(bytes) = self.files.get(&slot.1).and_then(|file| file.get(follower.offset..)) {
            follower.offset += bytes.len();
            follower.scanner.push(bytes, follower.reader.as_mut(), &mut parsed);
        }
        self.followed.insert(slot, follower);
        self.count(&mut parsed);
        self.resolve_work(&mut parsed);
        for observation in parsed.observations {
            let happened = self.written(&observation);
            self.observe(observation, Some(&key.id), Source::Transcript, happened, None);
        }
    }

    fn registry(&mut self, path: &str, content: Option<&[u8]>) {
        let Some((folder, name)) = path.rsplit_once('/') else { return };
        let watched =
            self.files.keys().any(|file| self.adapter.state_dirs(file).iter().any(|dir| dir == folder));
        let known = self.core.sessions().iter().any(|s| {
            s.transcript.as_deref().is_some_and(|t| self.adapter.state_dirs(t).iter().any(|d| d == folder))
        });
        if !watched && !known {
            return;
        }
        let Some(mut file) = self.adapter.state_file(name, content) else { return };
        match &file.observation.session {
            Some(session) => {
                self.stated.insert(path.to_owned(), session.clone());
            }
            None => file.observation.session = self.stated.get(path).cloned(),
        }
        let same = file.start.is_none_or(|start| self.starts.get(&file.pid).is_none_or(|s| *s == start));
        let start = file.start.or_else(|| self.starts.get(&file.pid).copied()).unwrap_or(0);
        if same && self.alive(file.pid, start) {
            let process = AgentProcess {
                process: ProcessRef { pid: file.pid, start, boot: BOOT },
                shared: false,
                declared: false,
            };
            let happened = self.written(&file.observation);
            let process = Some(process).filter(|_| start != 0);
            self.observe(file.observation, None, Source::AgentState, happened, process);
        }
    }

    fn exit(&mut self, pid: u32) {
        let Some(start) = self.starts.get(&pid).copied() else { return };
        if !self.exited.insert((pid, start)) {
            return;
        }
        let gone = ProcessRef { pid, start, boot: BOOT };
        let mut watching: Vec<SessionKey> =
            self.core.sessions().into_iter().filter(|s| s.processes.contains(&gone)).map(|s| s.key).collect();
        let worked = self.work_of.remove(&(pid, start));
        watching.extend(worked.map(|session| SessionKey::new(self.adapter.kind(), session)));
        for key in watching {
            let observation = Observation {
                session: Some(key.id),
                turn: None,
                thread: Thread::Main,
                at: None,
                facts: Facts::default(),
                body: SignalBody::ProcessExited { process: gone },
            };
            let happened = self.now().stamp();
            self.observe(observation, None, Source::Process, happened, None);
        }
    }

    /// One input, all that follows from it, and a look at the result.
    fn handle(&mut self, body: InputBody) {
        let mut waiting = VecDeque::from([body]);
        while let Some(body) = waiting.pop_front() {
            let outcome = self.core.handle(&Input { now: self.now(), body });
            for effect in outcome.effects {
                waiting.extend(self.carry_out(effect));
            }
        }
        for violation in self.core.check_invariants() {
            self.violations.push(format!("t = {}: {violation:?}", self.t));
        }
        self.look();
    }

    /// The simple world's answer to an effect.
    fn carry_out(&mut self, effect: Effect) -> Option<InputBody> {
        match effect {
            Effect::SetHold { wanted, why: _ } => {
                let kinds = ["idle", "handle-lid-switch"].map(str::to_owned);
                let held = if wanted { kinds.to_vec() } else { Vec::new() };
                Some(InputBody::HoldReported { held, refused: Vec::new() })
            }
            Effect::WatchProcess { key, incarnation, process } => {
                let outcome = match self.alive(process.pid, process.start) {
                    true => WatchOutcome::Watching,
                    false => WatchOutcome::AlreadyGone,
                };
                Some(InputBody::WatchReported { key, incarnation, process, outcome })
            }
            Effect::Probe { key, incarnation, probe } => {
                let processes = self.core.session(&key).map(|s| s.processes).unwrap_or_default();
                let agent_alive = match processes.as_slice() {
                    [] => Known::Unknown,
                    some => Known::Is(some.iter().any(|p| self.alive(p.pid, p.start))),
                };
                let answer = ProbeAnswer { agent_alive, ..ProbeAnswer::default() };
                Some(InputBody::ProbeAnswered { key, incarnation, probe, answer })
            }
            Effect::FollowTranscript { key, path } => {
                self.follow(key, path);
                None
            }
            Effect::UnfollowTranscript { key } => {
                self.following.remove(&key);
                None
            }
            Effect::Webhook { .. } => Some(InputBody::WebhookReported { accepted: true }),
            Effect::PlaySound { .. } => Some(InputBody::SoundEnded),
            Effect::RequestSuspend { .. } => Some(InputBody::SuspendReported {
                accepted: false,
                message: "a recording cannot sleep".to_owned(),
            }),
            Effect::UnwatchProcess { .. }
            | Effect::AnswerHook { .. }
            | Effect::HoldHook { .. }
            | Effect::AskBeforeSleep { .. }
            | Effect::WithdrawQuestion { .. }
            | Effect::RecordSuspend { .. }
            | Effect::BackUpLidAction
            | Effect::ChangeLidAction
            | Effect::RestoreLidAction
            | Effect::Transitioned { .. }
            | Effect::ExitRuntime => None,
        }
    }

    fn follow(&mut self, key: SessionKey, path: String) {
        let slot = (key.clone(), path.clone());
        if !self.followed.contains_key(&slot) {
            let Some(reader) = self.adapter.transcript(&key.id, None) else { return };
            self.followed.insert(slot, Follower { offset: 0, scanner: LineScanner::new(), reader });
        }
        self.following.insert(key.clone(), path);
        self.read_on(&key);
    }

    /// Notes what is shown now.
    fn look(&mut self) {
        for session in self.core.sessions() {
            let changes = self.timeline.entry(session.key).or_default();
            if changes.last().is_none_or(|(_, state)| *state != session.state) {
                changes.push((self.t, session.state));
            }
        }
        let protects = self.core.sessions().iter().any(|s| s.protects);
        if self.demand.last().is_none_or(|(_, before)| *before != protects) {
            self.demand.push((self.t, protects));
        }
    }
}

fn mono(t: f64) -> Mono {
    // Rounded to microseconds, so that a moment survives the way to the core and back.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "recordings last minutes")]
    let micros = (t.max(0.0) * 1e6).round() as u64;
    Mono(0).after(ZERO).after(Duration::from_micros(micros))
}

fn seconds(at: Mono) -> f64 {
    at.since(Mono(0).after(ZERO)).as_secs_f64()
}
