//! The daemon in small, around the real core: inputs are written down as JSON, effects meet faults, a crash folds the state
//! from what was written.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use watchkeeper_core::{
    AgentKind, AgentTrait, AgentTraits, BootId, Core, DeadlineKind, DeliveryId, Effect, Incarnation, Input,
    InputBody, Mono, Now, ProcessRef, Settings, Signal, SignalBody, Wall,
    effect::{Probe, Webhook},
    input::{HeldHook, Known, ProbeAnswer, Refused, WatchOutcome},
    signal::{Facts, Source, Thread},
    time::{Boot, Stamp},
    view::SessionView,
};

use super::{
    agents::{Agent, Said},
    coverage::Coverage,
    oracle::{Oracle, Truth},
    schedule::{AGENTS, Act, EffectKind, Fault, How, Step, What, settings},
};

/// Deadlines and arrivals handled without time passing; more is a loop.
const LIVELOCK: u32 = 5_000;
/// A delayed answer comes so much later.
const DELAY_MS: u32 = 3_000;

/// Something on its way to the daemon.
#[derive(Debug, Clone)]
enum Arrival {
    Signal { signal: Box<Signal>, held: Option<HeldHook> },
    Input(Box<InputBody>),
}

/// One world, from its first step to its last.
pub(super) struct World {
    now: Now,
    agents: Vec<Agent>,
    core: Core,
    /// Every input so far, as it is stored.
    journal: Vec<String>,
    snapshot: Option<(usize, String)>,
    up: bool,
    comes_back: Option<Mono>,
    arrivals: BTreeMap<(Mono, u64), Arrival>,
    spool: VecDeque<Box<Signal>>,
    effects: VecDeque<Effect>,
    armed: BTreeSet<(EffectKind, Fault)>,
    watched: BTreeSet<ProcessRef>,
    settings: Settings,
    counter: u64,
    truth: Truth,
    hold_wanted: bool,
    cpu_ms: u64,
    pub(super) oracle: Oracle,
    pub(super) coverage: Coverage,
    pub(super) inputs: u64,
}

/// Plays a schedule; the first problem, or what was reached.
pub(super) fn play(steps: &[Step]) -> (Result<(), String>, Coverage, u64) {
    let mut world = World::new();
    for (number, step) in steps.iter().enumerate() {
        world.step(step);
        if let Some(problem) = world.oracle.problems.first() {
            return (
                Err(format!("step {number} ({:?}): {problem}", step.what)),
                world.coverage,
                world.inputs,
            );
        }
    }
    (Ok(()), world.coverage, world.inputs)
}

fn traits() -> AgentTraits {
    AgentKind::ALL
        .into_iter()
        .map(|kind| (kind, AgentTrait { wakes_model: kind != AgentKind::Codex }))
        .collect()
}

impl World {
    fn new() -> Self {
        let boot = 1_000_000_000_000;
        Self {
            now: Now {
                mono: Mono(boot),
                boot: Boot(boot),
                wall: Wall(1_700_000_000_000),
                boot_id: BootId(1),
            },
            agents: (0..AGENTS).map(Agent::new).collect(),
            core: Core::new(Settings::default(), traits()),
            journal: Vec::new(),
            snapshot: None,
            up: true,
            comes_back: None,
            arrivals: BTreeMap::new(),
            spool: VecDeque::new(),
            effects: VecDeque::new(),
            armed: BTreeSet::new(),
            watched: BTreeSet::new(),
            settings: Settings::default(),
            counter: 0,
            truth: Truth { lid_closed: None, displays: None },
            hold_wanted: false,
            cpu_ms: 0,
            oracle: Oracle::default(),
            coverage: Coverage::default(),
            inputs: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        self.pass(step.after_ms);
        match step.what {
            What::Agent { agent, act, how } => self.agent(agent, act, how),
            What::Fault { effect, fault } => _ = self.armed.insert((effect, fault)),
            What::Crash { away_ms } => self.crash(away_ms),
            What::Restart { away_ms } => {
                self.carry_out();
                self.snapshot();
                self.down(away_ms);
            }
            What::Reboot => self.reboot(),
            What::Sleep { ms } => self.sleep(ms),
            What::ClockSet { by_ms } => self.now.wall.0 += i64::from(by_ms),
            What::Lid { closed } => {
                self.truth.lid_closed = closed;
                self.input(InputBody::Lid { state: known(closed) });
            }
            What::Displays { on } => {
                self.truth.displays = on;
                self.input(InputBody::Displays { external_on: known(on) });
            }
            What::Power { on_battery, percent } => {
                self.input(InputBody::Power { on_battery: known(on_battery), percent: Known::Is(percent) });
            }
            What::Lease { id, seconds } => self.input(InputBody::LeaseTaken {
                id: id.to_string(),
                owner: "me".into(),
                reason: "r".into(),
                length: Duration::from_secs(seconds.into()),
            }),
            What::Release { id } => self.input(InputBody::LeaseReleased { id: id.to_string() }),
            What::Settings { variant } => {
                self.settings = settings(variant);
                self.input(InputBody::SettingsChanged { settings: Box::new(self.settings.clone()) });
            }
            What::Reply { agent, text } => {
                let key = self.agents[usize::from(agent % AGENTS)].key();
                let incarnation = self.core.session(&key).map_or(Incarnation(1), |s| s.incarnation);
                self.input(InputBody::ReplyReceived {
                    key,
                    incarnation,
                    message: text.then(|| "go on".into()),
                });
            }
            What::Snapshot => self.snapshot(),
            What::Observers { count } => self.input(InputBody::Observers { count: count.into() }),
            What::FalseAlarm { kind } => {
                let deadline = self.false_alarm(kind);
                self.input(InputBody::DeadlineReached { deadline });
            }
            What::Flood { count } => self.flood(count),
        }
        self.carry_out();
        if self.up {
            self.oracle.at_rest(&self.core, self.now.mono);
            let wanted = self.core.machine().wanted;
            if wanted != self.hold_wanted {
                self.oracle.problem(format!(
                    "the hold is asked for: {}, the core wants it: {wanted}",
                    self.hold_wanted
                ));
            }
        }
    }

    /// Lets time pass; what is due on the way happens in its order.
    fn pass(&mut self, ms: u32) {
        let target = Mono(self.now.mono.0 + u64::from(ms) * 1_000_000);
        let mut standing = (self.now.mono, 0);
        loop {
            let arrival = self.arrivals.first_key_value().map(|((at, _), _)| *at);
            let deadline = if self.up { self.core.next_deadline().map(|(at, _)| at) } else { None };
            let next =
                [arrival, deadline, self.comes_back].into_iter().flatten().min().filter(|at| *at <= target);
            let Some(next) = next else { break };
            self.advance_to(next.max(self.now.mono));
            standing =
                if standing.0 == self.now.mono { (standing.0, standing.1 + 1) } else { (self.now.mono, 0) };
            if standing.1 > LIVELOCK {
                self.oracle.problem(format!("livelock at {:?}", self.core.next_deadline()));
                return;
            }
            if self.comes_back.is_some_and(|at| at <= self.now.mono) {
                self.come_back(false);
            } else if arrival.is_some_and(|at| at <= self.now.mono) {
                if let Some((_, arrival)) = self.arrivals.pop_first() {
                    self.arrive(arrival);
                }
            } else if let Some((_, deadline)) = self.core.next_deadline() {
                self.apply(InputBody::DeadlineReached { deadline });
            }
            self.carry_out();
        }
        self.advance_to(target);
    }

    fn advance_to(&mut self, mono: Mono) {
        let by = mono.0.saturating_sub(self.now.mono.0);
        if self.agents.iter().any(|a| a.busy && !a.processes.is_empty()) {
            self.cpu_ms += by / 1_000_000 / 4;
        }
        self.now.mono = mono;
        self.now.boot.0 += by;
        self.now.wall.0 += i64::try_from(by / 1_000_000).unwrap_or(0);
    }

    fn agent(&mut self, agent: u8, act: Act, how: How) {
        let boot = self.now.boot_id;
        let deed = self.agents[usize::from(agent % AGENTS)].act(act, boot);
        for said in deed.said {
            self.send(said, how);
        }
        for process in deed.exits {
            self.exit(process);
        }
    }

    fn exit(&mut self, process: ProcessRef) {
        if self.up && self.watched.remove(&process) {
            for (key, incarnation) in self.core.incarnations_of(&process) {
                let signal = self.signal(
                    key,
                    Some(incarnation),
                    Source::Process,
                    SignalBody::ProcessExited { process },
                );
                self.apply(InputBody::Signal { signal: Box::new(signal), held: None });
            }
        }
    }

    fn signal(
        &mut self,
        key: watchkeeper_core::SessionKey,
        incarnation: Option<Incarnation>,
        source: Source,
        body: SignalBody,
    ) -> Signal {
        self.counter += 1;
        Signal {
            key,
            incarnation,
            turn: None,
            thread: Thread::Main,
            delivery: DeliveryId(self.counter.into()),
            source,
            happened: Some(self.now.stamp()),
            process: None,
            facts: Facts::default(),
            body,
        }
    }

    /// A statement leaves its agent.
    fn send(&mut self, said: Said, how: How) {
        if how.lost {
            return;
        }
        let mut signal = self.signal(said.key, None, said.source, said.body);
        signal.turn = said.turn;
        signal.thread = said.thread;
        signal.facts = said.facts;
        signal.process = said.process;
        let happened = Boot(self.now.boot.0.saturating_sub(u64::from(said.old_ms) * 1_000_000));
        signal.happened = Some(Stamp { boot: happened, boot_id: self.now.boot_id });
        if said.old_incarnation {
            let present = self.core.session(&signal.key).map_or(1, |s| s.incarnation.0);
            signal.incarnation = Some(Incarnation(present.saturating_sub(1)));
        }
        let held = said.question.map(|question| HeldHook { delivery: signal.delivery, question });
        let at = Mono(self.now.mono.0 + u64::from(how.late_ms) * 1_000_000);
        if how.twice {
            self.counter += 1;
            let again = Arrival::Signal { signal: Box::new(signal.clone()), held: None };
            self.arrivals.insert((Mono(at.0 + 200_000_000), self.counter), again);
        }
        let arrival = Arrival::Signal { signal: Box::new(signal), held };
        if how.late_ms == 0 {
            self.arrive(arrival);
        } else {
            self.counter += 1;
            self.arrivals.insert((at, self.counter), arrival);
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Signal { mut signal, held } => {
                // Whoever speaks must live when it is heard, as the daemon looks the process up then.
                let alive = |p: &ProcessRef| self.agents.iter().any(|a| a.processes.contains(p));
                signal.process = signal.process.filter(|p| alive(&p.process));
                if self.up {
                    self.apply(InputBody::Signal { signal, held });
                } else {
                    let starts =
                        matches!(signal.body, SignalBody::Started { .. } | SignalBody::SessionStarted { .. });
                    if signal.source == Source::Hook {
                        signal.source = Source::Spool;
                        signal.process = None;
                    }
                    self.spool.push_back(signal);
                    if starts && self.comes_back.is_none() {
                        self.comes_back = Some(Mono(self.now.mono.0 + 50_000_000));
                    }
                }
            }
            Arrival::Input(body) => self.input(*body),
        }
    }

    /// An observation of the machine; one that nobody hears is made again at the next start.
    fn input(&mut self, body: InputBody) {
        if self.up {
            self.apply(body);
        }
    }

    fn apply(&mut self, body: InputBody) {
        let input = Input { now: self.now, body };
        let stored = match serde_json::to_string(&input) {
            Ok(stored) => stored,
            Err(error) => return self.oracle.problem(format!("an input cannot be written: {error}")),
        };
        self.journal.push(stored);
        self.inputs += 1;
        let mute = mute_session(&input.body, &self.core);
        let outcome = self.core.handle(&input);
        if let Some((key, before)) = mute
            && self.core.session(&key) != Some(before)
        {
            self.oracle.problem(format!("{key} changed by what may change nothing"));
        }
        self.coverage.marks = self.coverage.marks.union(outcome.marks);
        for effect in &outcome.effects {
            self.oracle.effect(effect, self.truth, &self.core);
        }
        // After its effects: what they announce is of the turns before it.
        if let InputBody::Signal { signal, .. } = &input.body {
            let turn = signal.turn.as_ref().and_then(|t| t.0.strip_prefix('t')?.parse().ok());
            self.oracle.heard(&signal.key, turn.unwrap_or(0));
        }
        self.effects.extend(outcome.effects);
    }

    fn carry_out(&mut self) {
        let mut count = 0;
        while let Some(effect) = self.effects.pop_front() {
            count += 1;
            if count > LIVELOCK {
                return self.oracle.problem(format!("effects without end, the last is {effect:?}"));
            }
            let kind = EffectKind::of(&effect);
            self.coverage.effects.insert(kind);
            let fault = kind.faults().iter().copied().find(|fault| self.armed.remove(&(kind, *fault)));
            if let Some(fault) = fault {
                self.coverage.faults.insert((kind, fault));
            }
            if fault == Some(Fault::Crash) {
                return self.crash(100);
            }
            self.one(effect, fault);
        }
    }

    /// Answers now, or later when the fault says so.
    fn reply(&mut self, body: InputBody, fault: Option<Fault>) {
        if fault == Some(Fault::Delay) {
            self.counter += 1;
            let at = Mono(self.now.mono.0 + u64::from(DELAY_MS) * 1_000_000);
            self.arrivals.insert((at, self.counter), Arrival::Input(Box::new(body)));
        } else {
            self.input(body);
        }
    }

    fn one(&mut self, effect: Effect, fault: Option<Fault>) {
        match effect {
            Effect::SetHold { wanted, .. } => {
                self.hold_wanted = wanted;
                let all = ["idle", "handle-lid-switch"];
                let (held, refused) = match (wanted, fault) {
                    (true, Some(Fault::Error)) => {
                        (vec![], vec![Refused { kind: "idle".into(), why: "no".into() }])
                    }
                    (true, _) => (all.map(str::to_owned).to_vec(), vec![]),
                    (false, _) => (vec![], vec![]),
                };
                self.reply(InputBody::HoldReported { held, refused }, fault);
            }
            Effect::WatchProcess { key, incarnation, process } => {
                let alive = self.agents.iter().any(|a| a.processes.contains(&process));
                let outcome = match (fault, alive) {
                    (Some(Fault::Error), _) => WatchOutcome::Failed("no descriptor".into()),
                    (_, true) => WatchOutcome::Watching,
                    (_, false) => WatchOutcome::AlreadyGone,
                };
                if outcome == WatchOutcome::Watching {
                    self.watched.insert(process);
                }
                self.reply(InputBody::WatchReported { key, incarnation, process, outcome }, fault);
            }
            Effect::UnwatchProcess { process } => _ = self.watched.remove(&process),
            Effect::Probe { key, incarnation, probe } => {
                let answer =
                    if fault == Some(Fault::Error) { ProbeAnswer::default() } else { self.look(&key, probe) };
                self.reply(InputBody::ProbeAnswered { key, incarnation, probe, answer }, fault);
            }
            Effect::HoldHook { delivery, .. } | Effect::AnswerHook { delivery, .. }
                if fault == Some(Fault::Error) =>
            {
                self.oracle.hook_gone(delivery);
                self.input(InputBody::HookGone { delivery });
            }
            Effect::HoldHook { .. } | Effect::AnswerHook { .. } => {}
            Effect::Webhook { event: Webhook::PreSuspend { .. } } => {
                // An endpoint that fails may say so or say nothing.
                if fault != Some(Fault::Error) || self.counter.is_multiple_of(2) {
                    self.reply(InputBody::WebhookReported { accepted: fault != Some(Fault::Error) }, fault);
                }
            }
            Effect::Webhook { .. } => {}
            // Without an end the core's own bound must do.
            Effect::PlaySound { .. } if fault == Some(Fault::Error) => {}
            Effect::PlaySound { .. } => self.reply(InputBody::SoundEnded, fault),
            Effect::AskBeforeSleep { key, incarnation } => {
                if fault == Some(Fault::Delay) {
                    self.reply(
                        InputBody::ReplyReceived { key, incarnation, message: Some("late".into()) },
                        fault,
                    );
                }
            }
            Effect::RequestSuspend { .. } => {
                let accepted = fault != Some(Fault::Error);
                self.reply(InputBody::SuspendReported { accepted, message: String::new() }, fault);
                if accepted && fault.is_none() {
                    self.sleep(60_000);
                }
            }
            Effect::ExitRuntime => {
                self.snapshot();
                self.down(u32::MAX);
            }
            Effect::FollowTranscript { .. }
            | Effect::UnfollowTranscript { .. }
            | Effect::WithdrawQuestion { .. }
            | Effect::RecordSuspend { .. }
            | Effect::BackUpLidAction
            | Effect::ChangeLidAction
            | Effect::RestoreLidAction
            | Effect::Transitioned { .. } => {}
        }
    }

    fn look(&self, key: &watchkeeper_core::SessionKey, probe: Probe) -> ProbeAnswer {
        let agent = self.agents.iter().find(|a| a.key() == *key);
        let alive = agent.is_some_and(|a| !a.processes.is_empty());
        let moved = self.counter.is_multiple_of(2);
        ProbeAnswer {
            tree_cpu_ms: if alive { Known::Is(self.cpu_ms) } else { Known::Unknown },
            stopped: Known::Is(self.counter.is_multiple_of(11)),
            agent_alive: if agent.is_some() { Known::Is(alive) } else { Known::Unknown },
            background_alive: Known::Is(alive && !self.counter.is_multiple_of(3)),
            younger_child: if probe == Probe::YoungerChild { Known::Is(moved) } else { Known::Unknown },
            background_moved: Known::Is(moved && self.counter.is_multiple_of(5)),
        }
    }

    fn snapshot(&mut self) {
        if !self.up {
            return;
        }
        match serde_json::to_string(&self.core) {
            Ok(text) => self.snapshot = Some((self.journal.len(), text)),
            Err(error) => self.oracle.problem(format!("the state cannot be written: {error}")),
        }
    }

    /// The state as the journal tells it; it must be the one that was in memory.
    fn fold(&self) -> Result<Core, String> {
        let (from, mut core) = match &self.snapshot {
            Some((from, text)) => (*from, serde_json::from_str(text).map_err(|e| e.to_string())?),
            None => (0, Core::new(Settings::default(), traits())),
        };
        for row in self.journal.get(from..).unwrap_or_default() {
            let input: Input = serde_json::from_str(row).map_err(|e| e.to_string())?;
            drop(core.handle(&input));
        }
        Ok(core)
    }

    fn crash(&mut self, away_ms: u32) {
        if !self.up {
            return;
        }
        match self.fold() {
            Ok(folded) if folded == self.core => self.core = folded,
            Ok(_) => self.oracle.problem("the state after a crash is not the one before it"),
            Err(error) => self.oracle.problem(format!("the journal cannot be folded: {error}")),
        }
        self.down(away_ms);
    }

    fn down(&mut self, away_ms: u32) {
        self.up = false;
        self.effects.clear();
        self.watched.clear();
        self.hold_wanted = false;
        self.oracle.daemon_gone();
        // Answers that were on their way to the daemon that is gone reach nobody.
        self.arrivals.retain(|_, arrival| matches!(arrival, Arrival::Signal { .. }));
        self.comes_back =
            (away_ms != u32::MAX).then(|| Mono(self.now.mono.0 + u64::from(away_ms) * 1_000_000));
    }

    fn come_back(&mut self, clean: bool) {
        self.up = true;
        self.comes_back = None;
        self.oracle.forget_announcement();
        self.apply(InputBody::RuntimeStarted { clean });
        for signal in std::mem::take(&mut self.spool) {
            self.apply(InputBody::Signal { signal, held: None });
        }
        self.apply(InputBody::SettingsChanged { settings: Box::new(self.settings.clone()) });
        self.apply(InputBody::Lid { state: known(self.truth.lid_closed) });
        self.apply(InputBody::Displays { external_on: known(self.truth.displays) });
        self.carry_out();
    }

    fn reboot(&mut self) {
        self.crash(0);
        for agent in &mut self.agents {
            agent.lose_processes();
        }
        self.arrivals.clear();
        self.now.boot_id.0 += 1;
        self.now.mono = Mono(1_000_000_000);
        self.now.boot = Boot(1_000_000_000);
        self.now.wall.0 += 30_000;
        self.come_back(false);
    }

    fn sleep(&mut self, ms: u32) {
        self.input(InputBody::SleepBegan);
        self.carry_out();
        self.now.boot.0 += u64::from(ms) * 1_000_000;
        self.now.wall.0 += i64::from(ms);
        self.oracle.forget_announcement();
        self.input(InputBody::SleepEnded { slept: Duration::from_millis(ms.into()) });
    }

    fn false_alarm(&self, kind: u8) -> DeadlineKind {
        let key = self.agents[usize::from(kind % AGENTS)].key();
        match kind {
            0 => DeadlineKind::Inactivity,
            1 => DeadlineKind::WakeGrace { key },
            2 => DeadlineKind::WorkMax { key },
            3 => DeadlineKind::BackgroundQuiet { key },
            4 => DeadlineKind::Compaction { key },
            5 => DeadlineKind::HeldHook { delivery: DeliveryId(self.counter.into()) },
            6 => DeadlineKind::LeaseExpiry { id: "0".into() },
            7 => DeadlineKind::SuspendDelay,
            8 => DeadlineKind::AskBeforeSleep,
            9 => DeadlineKind::Webhook,
            10 => DeadlineKind::Sound,
            11 => DeadlineKind::SuspendRequest,
            12 => DeadlineKind::HoldVerify,
            _ => DeadlineKind::Cleanup,
        }
    }

    /// Past the limits: more ended sessions than are kept, more work in one session than is tracked.
    fn flood(&mut self, count: u16) {
        let key = watchkeeper_core::SessionKey::new(AgentKind::Claude, format!("flood-{}", self.counter));
        for n in 0..count {
            let body = SignalBody::WorkStarted {
                id: format!("w{n}"),
                what: watchkeeper_core::signal::WorkKind::Shell,
                label: None,
                process: None,
            };
            let start = if n == 0 { SignalBody::Started { prompt: None } } else { body };
            let signal = self.signal(key.clone(), None, Source::User, start);
            self.input(InputBody::Signal { signal: Box::new(signal), held: None });
        }
        for n in 0..count {
            let key =
                watchkeeper_core::SessionKey::new(AgentKind::Claude, format!("flood-{}-{n}", self.counter));
            let start = self.signal(key.clone(), None, Source::User, SignalBody::Started { prompt: None });
            self.input(InputBody::Signal { signal: Box::new(start), held: None });
            let body = SignalBody::SessionEnded {
                reason: watchkeeper_core::signal::EndReason::Reported,
                successor: None,
            };
            let end = self.signal(key, None, Source::User, body);
            self.input(InputBody::Signal { signal: Box::new(end), held: None });
            self.carry_out();
        }
    }
}

/// The session that this input speaks of and must not change, as it is before: what only displays, and what is said of an
/// older life.
fn mute_session(body: &InputBody, core: &Core) -> Option<(watchkeeper_core::SessionKey, SessionView)> {
    let InputBody::Signal { signal, .. } = body else { return None };
    let before = core.session(&signal.key)?;
    let older = signal.incarnation.is_some_and(|named| named < before.incarnation);
    // A display may still bring facts (a title, a process) of a session that lives.
    let displays = matches!(signal.body, SignalBody::Displayed { .. }) && signal.process.is_none();
    (older || displays).then(|| (signal.key.clone(), before))
}

fn known<T>(value: Option<T>) -> Known<T> {
    value.map_or(Known::Unknown, Known::Is)
}
