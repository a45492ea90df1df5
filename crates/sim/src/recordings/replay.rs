//! The world of one recording: a clock that jumps, files that grow, processes that end. Does what the daemon's shell
//! does around the core, with the recording in place of the system.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};
use watchkeeper_agents::{
    Adapter, LineScanner, Observation, Parsed, TranscriptReader,
    adapter::{Line, adapter},
    ancestry::{self, Found},
    hook_time,
};
use watchkeeper_core::{
    AgentKind, AgentTraits, Boot, BootId, Core, DeliveryId, Effect, Input, InputBody, Mono, Now, ProcessRef,
    SessionKey, Settings, Signal, SignalBody, Wall,
    dispatch::begins_session,
    input::{Known, ProbeAnswer, WatchOutcome},
    signal::{AgentProcess, Facts, Source, Thread},
    time::Stamp,
    view::ShownState,
};

use super::{
    load::{Event, EventKind, Recording},
    restart::{Disk, Place},
    truth::Truth,
};

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
    pub(super) core: Core,
    pub(super) adapter: &'static dyn Adapter,
    wall_zero: Wall,
    pub(super) t: f64,
    /// Contents so far of every file that was written.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Contents of the agent's own state files that are there now.
    states: BTreeMap<String, Vec<u8>>,
    /// The file of each session that is followed.
    pub(super) following: BTreeMap<SessionKey, Follower>,
    /// The newest start time seen of each pid.
    starts: BTreeMap<u32, u64>,
    exited: BTreeSet<(u32, u64)>,
    /// The session that a state file last spoke of.
    pub(super) stated: BTreeMap<String, String>,
    /// What a restart leaves.
    pub(super) disk: Disk,
    /// What hooks left since the daemon went; `None` while it runs.
    pub(super) spool: Option<Vec<Event>>,
    /// Asked for by the core and not done yet, in order.
    effects: VecDeque<Effect>,
    /// Effects wait: they are being done already, or nothing may be done yet.
    pub(super) effects_wait: bool,
    /// What a look at processes would find; nothing is known of them without.
    pub(super) truth: Option<Truth>,
    /// What the core was told, where somebody wants to know.
    pub(super) told: Option<Vec<Told>>,
    /// Of the events, from 1.
    number: usize,
    timeline: BTreeMap<SessionKey, Vec<(f64, ShownState)>>,
    /// When the machine's demand changed, and to what.
    demand: Vec<(f64, bool)>,
    pub unknown: BTreeMap<String, u32>,
    pub malformed: BTreeMap<String, u32>,
    pub violations: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Follower {
    path: String,
    offset: usize,
    scanner: LineScanner,
    reader: Box<dyn TranscriptReader>,
}

/// One statement that reached the core.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// When it did.
    pub(crate) t: f64,
    /// Number of the event that brought it, from 1 (0: time or a restart did).
    pub(crate) event: usize,
    pub(crate) source: Source,
    pub(crate) session: String,
    pub(crate) thread: Thread,
    pub(crate) body: SignalBody,
    /// It begins a session where none lives.
    pub(crate) begins: bool,
}

/// Where statements come from that have no hook to name their delivery: what is read twice counts once.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Hook(u64),
    Line {
        file: usize,
        offset: u64,
        first: usize,
    },
    State {
        content: usize,
    },
    /// Never told twice.
    System,
}

impl Origin {
    fn delivery(self, index: usize, told: u128) -> DeliveryId {
        let number = |n: usize| n as u128;
        let id = match self {
            Self::Hook(0) | Self::System => told,
            Self::Hook(delivery) => 1 << 120 | u128::from(delivery) << 32 | number(index),
            Self::Line { file, offset, first } => {
                2 << 120 | number(file) << 96 | u128::from(offset) << 32 | number(index - first.min(index))
            }
            Self::State { content } => 3 << 120 | number(content),
        };
        DeliveryId(id)
    }
}

impl Replay {
    /// A world in which nothing has happened yet.
    ///
    /// # Errors
    /// When no adapter is built in for the recording's agent.
    pub fn new(recording: &Recording) -> Result<Self, NoAdapter> {
        let agent = recording.agent;
        let adapter = adapter(agent).ok_or(NoAdapter { agent })?;
        Ok(Self {
            core: fresh(adapter),
            adapter,
            wall_zero: recording.wall_zero,
            t: 0.0,
            files: BTreeMap::new(),
            states: BTreeMap::new(),
            following: BTreeMap::new(),
            starts: starts(&recording.events),
            exited: BTreeSet::new(),
            stated: BTreeMap::new(),
            disk: Disk::default(),
            spool: None,
            effects: VecDeque::new(),
            effects_wait: false,
            truth: None,
            told: None,
            number: 0,
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
        self.number += 1;
        match &event.kind {
            EventKind::Hook { .. } => match &mut self.spool {
                Some(spool) => spool.push(event.clone()),
                None => self.hook(event, Source::Hook),
            },
            EventKind::Transcript { path, append } => {
                self.files.entry(path.clone()).or_default().extend_from_slice(append);
                let readers = self.following.iter().filter(|(_, f)| f.path == *path);
                let readers: Vec<SessionKey> = readers.map(|(key, _)| key.clone()).collect();
                for key in readers {
                    self.read_on(&key);
                }
            }
            EventKind::Registry { path, content } => {
                match content {
                    Some(content) => self.states.insert(path.clone(), content.clone()),
                    None => self.states.remove(path),
                };
                self.state_file(path);
            }
            EventKind::Exit { pid } => self.exit(*pid),
            EventKind::Other => {}
        }
    }

    /// Looks at processes find what the labels say.
    pub(crate) fn know(&mut self, truth: Truth) {
        self.truth = Some(truth);
    }

    /// Keeps what the core is told.
    pub(crate) fn listen(&mut self) {
        self.told = Some(Vec::new());
    }

    pub(crate) fn heard(&mut self) -> Vec<Told> {
        self.told.take().unwrap_or_default()
    }

    /// Something that the recording does not have: the lid, the displays, the mains.
    pub fn tell(&mut self, body: InputBody) {
        self.handle(body);
    }

    /// Virtual time up to `t`, through every deadline on the way.
    pub fn advance(&mut self, t: f64) {
        let mut reached = 0_u32;
        while let Some((at, deadline)) = self.core.next_deadline() {
            if at > mono(t) || self.spool.is_some() {
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

    pub(super) fn now(&self) -> Now {
        let mono = mono(self.t);
        Now { mono, boot: Boot(mono.0), wall: self.wall(self.t), boot_id: BOOT }
    }

    fn wall(&self, t: f64) -> Wall {
        #[expect(clippy::cast_possible_truncation, reason = "recordings last minutes")]
        let since = (t * 1000.0).round() as i64;
        Wall(self.wall_zero.0 + since)
    }

    fn alive(&self, pid: u32, start: u64) -> bool {
        !self.exited.contains(&(pid, start))
    }

    pub(super) fn hook(&mut self, hook: &Event, source: Source) {
        let EventKind::Hook { begun, delivery, event, argv, payload, ancestry: chain, answered: _ } =
            &hook.kind
        else {
            return;
        };
        for process in chain {
            self.starts.insert(process.pid, process.start);
        }
        let found = match ancestry::find(self.adapter.ancestry(), chain) {
            Found::Agent { index, shared } => chain.get(index).map(|process| (process, shared)),
            Found::None { .. } | Found::Unknown { .. } => None,
        };
        // A spooled one names who was above it, living or not; by the socket only the living are found.
        let is_named = |pid, start| source == Source::Spool || self.alive(pid, start);
        let process = found.filter(|(p, _)| is_named(p.pid, p.start)).map(|(p, shared)| AgentProcess {
            process: ProcessRef { pid: p.pid, start: p.start, boot: BOOT },
            shared,
            declared: false,
        });
        let can_ask = found.and_then(|(p, _)| self.adapter.can_ask(p));
        let arguments: Vec<&[u8]> = argv.iter().map(String::as_bytes).collect();
        let mut parsed = self.adapter.payload(Some(event), &arguments, payload);
        self.count(&mut parsed);
        self.resolve_work(&mut parsed);
        let lag = hook_time::lag(&parsed.observations, self.wall(*begun));
        let happened = Stamp { boot: Boot(mono(*begun).0).before(lag), boot_id: BOOT };
        let mut sessions = BTreeSet::new();
        for (index, mut observation) in parsed.observations.into_iter().enumerate() {
            observation.facts.can_ask = observation.facts.can_ask.or(can_ask);
            self.find_transcript(&mut observation);
            sessions.extend(observation.session.clone());
            let delivery = Origin::Hook(*delivery).delivery(index, self.disk.told());
            self.observe(observation, delivery, source, happened, process);
        }
        for session in sessions {
            self.read_on(&SessionKey::new(self.adapter.kind(), session));
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

    /// Completes an observation as the shell does and tells it to the core. A delivery that the core was told before must change
    /// nothing; that is the core's to see, nobody before it does.
    fn observe(
        &mut self,
        observation: Observation,
        delivery: DeliveryId,
        source: Source,
        happened: Stamp,
        process: Option<AgentProcess>,
    ) {
        let Some(id) = observation.session else { return };
        let before = (!self.disk.known.insert(delivery.0)).then(|| self.core.sessions());
        let signal = Signal {
            key: SessionKey::new(self.adapter.kind(), id),
            incarnation: None,
            turn: observation.turn,
            thread: observation.thread,
            delivery,
            source,
            happened: Some(happened),
            process,
            facts: observation.facts,
            body: observation.body,
        };
        if before.is_none()
            && let Some(told) = &mut self.told
        {
            told.push(Told {
                t: self.t,
                event: self.number,
                source,
                session: signal.key.id.clone(),
                thread: signal.thread.clone(),
                body: signal.body.clone(),
                begins: begins_session(&signal),
            });
        }
        let name = before.as_ref().map(|_| word_for(&signal.body));
        self.handle(InputBody::Signal { signal: Box::new(signal), held: None });
        if let (Some(before), Some(name)) = (before, name)
            && self.core.sessions() != before
        {
            self.violations.push(format!("t = {}: repeated, and taken for another: {name}", self.t));
        }
    }

    /// When a record says that it was written.
    fn written(&self, observation: &Observation) -> Stamp {
        let now = self.now();
        observation.at.map_or_else(|| now.stamp(), |at| now.stamp_of_wall(at))
    }

    fn read_on(&mut self, key: &SessionKey) {
        let Some(follower) = self.following.get_mut(key) else { return };
        let mut parsed = Parsed::default();
        let Some(bytes) = self.files.get(&follower.path).and_then(|file| file.get(follower.offset..)) else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        follower.offset += bytes.len();
        follower.scanner.push(bytes, follower.reader.as_mut(), &mut parsed);
        let place = self.disk.keeps.then(|| Place {
            offset: follower.offset - usize::try_from(follower.scanner.pending()).unwrap_or(0),
            reader: follower.reader.save(),
        });
        let path = follower.path.clone();
        let file = self.disk.number_of_file(&path);
        self.count(&mut parsed);
        self.resolve_work(&mut parsed);
        let mut lines = std::mem::take(&mut parsed.lines).into_iter().peekable();
        let mut line = Line::default();
        for (index, mut observation) in parsed.observations.into_iter().enumerate() {
            while let Some(next) = lines.next_if(|next| next.first <= index) {
                line = next;
            }
            observation.session.get_or_insert_with(|| key.id.clone());
            let happened = self.written(&observation);
            let origin = Origin::Line { file, offset: line.offset, first: line.first };
            let delivery = origin.delivery(index, self.disk.told());
            self.observe(observation, delivery, Source::Transcript, happened, None);
        }
        if let Some(place) = place {
            self.disk.cursors.insert((key.clone(), path), place);
        }
    }

    /// Looks at one state file, if it lies beside a transcript that is followed.
    fn state_file(&mut self, path: &str) {
        let Some((folder, name)) = path.rsplit_once('/') else { return };
        let is_beside = |f: &Follower| self.adapter.state_dirs(&f.path).iter().any(|dir| dir == folder);
        if !self.following.values().any(is_beside) {
            return;
        }
        let content = self.states.get(path);
        let Some(mut file) = self.adapter.state_file(name, content.map(Vec::as_slice)) else { return };
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
            let origin = match content {
                Some(content) => Origin::State { content: self.disk.number_of_state(path, content) },
                None => Origin::System,
            };
            let happened = self.written(&file.observation);
            let process = Some(process).filter(|_| start != 0);
            let delivery = origin.delivery(0, self.disk.told());
            self.observe(file.observation, delivery, Source::AgentState, happened, process);
        }
    }

    fn exit(&mut self, pid: u32) {
        let Some(start) = self.starts.get(&pid).copied() else { return };
        if !self.exited.insert((pid, start)) || self.spool.is_some() {
            return;
        }
        let gone = ProcessRef { pid, start, boot: BOOT };
        // The core finds the others that it concerns.
        let Some((key, _)) = self.core.incarnations_of(&gone).into_iter().next() else { return };
        let observation = Observation {
            session: Some(key.id),
            turn: None,
            thread: Thread::Main,
            at: None,
            facts: Facts::default(),
            body: SignalBody::ProcessExited { process: gone },
        };
        let (delivery, happened) = (Origin::System.delivery(0, self.disk.told()), self.now().stamp());
        self.observe(observation, delivery, Source::Process, happened, None);
    }

    /// One input, all that follows from it, and a look at the result.
    pub(super) fn handle(&mut self, body: InputBody) {
        let input = Input { now: self.now(), body };
        let outcome = self.core.handle(&input);
        if self.disk.keeps {
            self.disk.rows.push(input);
        }
        self.effects.extend(outcome.effects);
        if !self.effects_wait {
            self.carry_out_all();
        }
    }

    /// Everything that the core asked for, and all that follows from that.
    pub(super) fn carry_out_all(&mut self) {
        self.effects_wait = true;
        while let Some(effect) = self.effects.pop_front() {
            if let Some(body) = self.carry_out(effect) {
                self.handle(body);
            }
        }
        self.effects_wait = false;
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
                let answer = match &self.truth {
                    Some(truth) => ProbeAnswer { agent_alive, ..truth.answer(&key.id, self.t) },
                    None => ProbeAnswer { agent_alive, ..ProbeAnswer::default() },
                };
                Some(InputBody::ProbeAnswered { key, incarnation, probe, answer })
            }
            Effect::FollowTranscript { key, path } => {
                self.follow(&key, path);
                None
            }
            Effect::UnfollowTranscript { key } => {
                self.read_on(&key);
                self.following.remove(&key);
                self.disk.cursors.retain(|(of, _), _| *of != key);
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

    fn follow(&mut self, key: &SessionKey, path: String) {
        // Another transcript may have been the session's.
        self.read_on(key);
        if self.following.get(key).is_none_or(|f| f.path != path) {
            let place = self.disk.cursors.get(&(key.clone(), path.clone()));
            let Some(reader) = self.adapter.transcript(&key.id, place.map(|p| &p.reader)) else { return };
            let offset = place.map_or(0, |p| p.offset);
            let scanner = LineScanner::at(offset as u64);
            self.following.insert(key.clone(), Follower { path: path.clone(), offset, scanner, reader });
        }
        self.read_on(key);
        let folders = self.adapter.state_dirs(&path);
        let is_there =
            |file: &String| file.rsplit_once('/').is_some_and(|(f, _)| folders.iter().any(|d| d == f));
        let files: Vec<String> = self.states.keys().filter(|file| is_there(file)).cloned().collect();
        for file in files {
            self.state_file(&file);
        }
    }

    /// Notes what is shown now.
    fn look(&mut self) {
        let sessions = self.core.sessions();
        for (key, changes) in &mut self.timeline {
            // Forgotten: it turned out to be none.
            let is_gone = !sessions.iter().any(|s| s.key == *key);
            if is_gone && changes.last().is_some_and(|(_, state)| *state != ShownState::Ended) {
                changes.push((self.t, ShownState::Ended));
            }
        }
        let protects = sessions.iter().any(|s| s.protects);
        for session in sessions {
            let changes = self.timeline.entry(session.key).or_default();
            if changes.last().is_none_or(|(_, state)| *state != session.state) {
                changes.push((self.t, session.state));
            }
        }
        if self.demand.last().is_none_or(|(_, before)| *before != protects) {
            self.demand.push((self.t, protects));
        }
    }
}

/// What a statement says, in a word.
pub(crate) fn word_for(body: &SignalBody) -> String {
    let debug = format!("{body:?}");
    debug.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}

/// A core that knows nothing yet of this agent's sessions.
pub(super) fn fresh(adapter: &dyn Adapter) -> Core {
    let known = watchkeeper_core::AgentTrait { wakes_model: adapter.wakes_model() };
    Core::new(Settings::default(), AgentTraits::from([(adapter.kind(), known)]))
}

/// The system knows its processes whether or not a hook tells of them.
fn starts(events: &[Event]) -> BTreeMap<u32, u64> {
    let mut starts = BTreeMap::new();
    for event in events {
        if let EventKind::Hook { ancestry, .. } = &event.kind {
            for process in ancestry {
                starts.entry(process.pid).or_insert(process.start);
            }
        }
    }
    starts
}

pub(super) fn mono(t: f64) -> Mono {
    // Rounded to microseconds, so that a moment survives the way to the core and back.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "recordings last minutes")]
    let micros = (t.max(0.0) * 1e6).round() as u64;
    Mono(0).after(ZERO).after(Duration::from_micros(micros))
}

fn seconds(at: Mono) -> f64 {
    at.since(Mono(0).after(ZERO)).as_secs_f64()
}
