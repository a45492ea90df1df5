//! The core: takes inputs, finds the session they are about, and lets the machine-wide rules follow.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::VecDeque;

use crate::{
    AgentTraits,
    deadline::DeadlineKind,
    effect::Effect,
    identity::{ProcessRef, SessionKey},
    index::{Index, Slot},
    input::{Input, InputBody, Known},
    machine::Machine,
    marks::Mark,
    session::Session,
    settings::Settings,
    signal::Source,
    step::{Outcome, Rules, Step, Verdict},
    table::{Sid, Table},
    time::{Mono, Now},
    view::{Evidence, MachineView, SessionView, ShownState},
    work::Work,
};

/// Sessions kept in all. At the limit the one that ended or became idle first is forgotten; if all are active the
/// newcomer is refused.
pub const SESSIONS_MAX: usize = 32_768;
/// Ended sessions kept. At the limit the one that ended first is forgotten.
pub const ENDED_MAX: usize = 1024;
/// Deliveries remembered to recognise repetitions; the journal recognises older ones.
pub const DELIVERIES_MAX: usize = 4096;
/// Replaced sessions whose heir is not known yet. At the limit the oldest is dropped, one that left no work first.
pub const BEQUESTS_MAX: usize = 64;

/// What a replaced session leaves to the session that the agent names, else to the next of the same process: its live
/// work, and that it was there before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bequest {
    pub(crate) from: SessionKey,
    pub(crate) successor: Option<String>,
    /// The conversation goes on under another id, rather than being cleared.
    #[serde(default)]
    pub(crate) goes_on: bool,
    pub(crate) processes: Vec<ProcessRef>,
    pub(crate) live: Vec<(String, Work)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) traits: AgentTraits,
    pub(crate) sessions: Table,
    pub(crate) machine: Machine,
    pub(crate) bequests: Vec<Bequest>,
    pub(crate) deliveries: VecDeque<u64>,
    /// Inputs so far.
    pub(crate) number: u64,
    pub(crate) last: Now,
    /// Signals nobody could make a session of.
    pub(crate) unplaced: u64,
}

/// The state machine. See the crate's documentation for the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    pub(crate) state: State,
    pub(crate) index: Index,
}

impl Core {
    /// A core that knows nothing yet.
    #[must_use]
    pub fn new(settings: Settings, traits: AgentTraits) -> Self {
        let state = State {
            settings,
            traits,
            sessions: Table::default(),
            machine: Machine::default(),
            bequests: Vec::new(),
            deliveries: VecDeque::new(),
            number: 0,
            last: Now::default(),
            unplaced: 0,
        };
        Self { state, index: Index::default() }
    }

    /// Takes one input and returns everything that follows from it. Never panics, whatever the input contains.
    pub fn handle(&mut self, input: &Input) -> Outcome {
        self.state.number = self.state.number.saturating_add(1);
        let mut step = Step::new(input.now, self.state.number);
        match &input.body {
            InputBody::Signal { signal, held } => self.signal(signal, *held, &mut step),
            InputBody::DeadlineReached { deadline } => self.deadline_reached(deadline, &mut step),
            InputBody::ProbeAnswered { key, incarnation, probe, answer } => {
                self.probe_answered(key, *incarnation, *probe, answer, &mut step);
            }
            InputBody::WatchReported { key, incarnation, process, outcome } => {
                self.watch_reported(key, *incarnation, process, outcome, &mut step);
            }
            InputBody::SettingsChanged { settings } => {
                self.state.settings = Settings::clone(settings);
                self.settle_all(&mut step);
            }
            InputBody::RuntimeStarted { clean } => self.runtime_started(*clean, &mut step),
            InputBody::SleepEnded { slept: _ } => self.sleep_ended(&mut step),
            InputBody::LeaseTaken { .. }
            | InputBody::LeaseReleased { .. }
            | InputBody::Lid { .. }
            | InputBody::Displays { .. }
            | InputBody::Power { .. }
            | InputBody::SleepBegan
            | InputBody::HoldReported { .. }
            | InputBody::SuspendReported { .. }
            | InputBody::WebhookReported { .. }
            | InputBody::SoundEnded
            | InputBody::ReplyReceived { .. }
            | InputBody::HookGone { .. }
            | InputBody::Observers { .. } => self.machine_input(&input.body, &mut step),
        }
        self.conclude(&mut step);
        self.state.last = input.now;
        Outcome { effects: step.effects, resolved: step.resolved, verdict: step.verdict, marks: step.marks }
    }

    /// The earliest moment at which time alone may change something, and what it is. Inactivity and `work_max` may be
    /// early, by what a session said since they were armed: reaching them then only moves them on.
    #[must_use]
    pub fn next_deadline(&self) -> Option<(Mono, DeadlineKind)> {
        let machine = self.state.machine.next_deadline();
        let inactivity = self.index.inactivity.first().map(|(at, _)| *at);
        let session = self.index.deadlines.first();
        let lease = self.index.leases.first();
        let hook = self.index.hooks.first();
        let first = [
            machine.as_ref().map(|(at, _)| *at),
            inactivity,
            session.map(|(at, _, _)| *at),
            lease.map(|(at, _)| *at),
            hook.map(|(at, _)| *at),
        ]
        .into_iter()
        .flatten()
        .min()?;
        let kind = if inactivity == Some(first) {
            DeadlineKind::Inactivity
        } else if let Some((at, sid, slot)) = session.filter(|(at, _, _)| *at == first) {
            debug_assert_eq!(*at, first);
            let key = self.state.sessions.get(*sid)?.key.clone();
            match slot {
                Slot::WakeGrace => DeadlineKind::WakeGrace { key },
                Slot::WorkMax => DeadlineKind::WorkMax { key },
                Slot::Quiet => DeadlineKind::BackgroundQuiet { key },
                Slot::Compaction => DeadlineKind::Compaction { key },
            }
        } else if let Some((_, id)) = lease.filter(|(at, _)| *at == first) {
            DeadlineKind::LeaseExpiry { id: id.clone() }
        } else if let Some((_, delivery)) = hook.filter(|(at, _)| *at == first) {
            DeadlineKind::HeldHook { delivery: *delivery }
        } else {
            machine?.1
        };
        Some((first, kind))
    }

    /// Every session that is remembered, by key.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionView> {
        let mut list: Vec<SessionView> = self.state.sessions.iter().map(|(_, s)| s.view()).collect();
        list.sort_by(|a, b| a.key.cmp(&b.key));
        list
    }

    #[must_use]
    pub fn session(&self, key: &SessionKey) -> Option<SessionView> {
        self.find(key).map(Session::view)
    }

    /// The evidence that led to the present state of a session, oldest first.
    #[must_use]
    pub fn explain(&self, key: &SessionKey) -> Option<Vec<Evidence>> {
        self.find(key).map(|s| s.evidence.view())
    }

    /// Whether this session keeps the machine awake.
    #[must_use]
    pub fn protects(&self, key: &SessionKey) -> bool {
        self.find(key).is_some_and(Session::protects)
    }

    #[must_use]
    pub fn machine(&self) -> MachineView {
        self.machine_view()
    }

    /// In one line, why the machine is kept awake or not.
    #[must_use]
    pub fn why(&self) -> String {
        self.why_line()
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// Signals that named no session and could not begin one.
    #[must_use]
    pub fn unplaced(&self) -> u64 {
        self.state.unplaced
    }

    pub(crate) fn find(&self, key: &SessionKey) -> Option<&Session> {
        self.state.sessions.get(self.state.sessions.find(key)?)
    }

    pub(crate) fn protecting(&self) -> impl Iterator<Item = &Session> {
        self.index.protecting.iter().filter_map(|sid| self.state.sessions.get(*sid))
    }

    /// Runs a rule on one session and lets the indexes follow.
    pub(crate) fn on_session(
        &mut self,
        sid: Sid,
        step: &mut Step,
        rule: impl FnOnce(&mut Session, Rules<'_>, &mut Step),
    ) {
        let State { sessions, settings, traits, .. } = &mut self.state;
        let Some(session) = sessions.get_mut(sid) else { return };
        rule(session, Rules { settings, traits }, step);
        self.settle(sid, step);
    }

    /// After a session changed: what is told, what is armed, what protects.
    pub(crate) fn settle(&mut self, sid: Sid, step: &mut Step) {
        let State { sessions, settings, bequests, .. } = &mut self.state;
        let Some(session) = sessions.get_mut(sid) else { return };
        for process in step.acquired.drain(..) {
            self.index.acquire(process, sid);
        }
        for process in step.released.drain(..) {
            let still = session.all_processes().contains(&process);
            if !still && self.index.release(process, sid) {
                step.effects.push(Effect::UnwatchProcess { process });
            }
        }
        if let Some(bequest) = step.bequest.take() {
            if bequests.len() >= BEQUESTS_MAX {
                let least = bequests.iter().position(|b| b.live.is_empty()).unwrap_or(0);
                bequests.remove(least);
                step.marks.set(Mark::LimitReached);
            }
            if !bequest.live.is_empty() {
                step.marks.set(Mark::WorkBequeathed);
            }
            bequests.push(bequest);
        }
        let to = session.state();
        session.evidence.began(to);
        if to != session.shown {
            session.evidence.turned(to);
            step.effects.push(Effect::Transitioned {
                key: session.key.clone(),
                incarnation: session.incarnation,
                from: Some(session.shown),
                to,
                evidence: session.evidence.last_rule(),
            });
            let old = (session.listed, sid);
            self.index.idle.remove(&old);
            self.index.ended.remove(&old);
            session.shown = to;
            session.since = step.now.wall;
            session.listed = step.number;
        }
        match to {
            ShownState::Ended => {
                self.index.ended.insert((session.listed, sid));
            }
            ShownState::Idle => {
                self.index.idle.insert((session.listed, sid));
            }
            ShownState::Waiting | ShownState::Working | ShownState::Background => {}
        }
        let dues = session.dues(settings).armed_for(&session.armed);
        self.index.rearm(sid, &session.armed, &dues);
        session.armed = dues;
        self.index.list(sid, session);
        if let Some(path) = step.path.take() {
            step.paths.push((sid, path));
        }
    }

    fn settle_all(&mut self, step: &mut Step) {
        for sid in self.state.sessions.numbers() {
            self.settle(sid, step);
        }
    }

    /// Room for one more session; `false` when there is none.
    pub(crate) fn make_room(&mut self, step: &mut Step) -> bool {
        while self.index.ended.len() >= ENDED_MAX {
            let Some((_, sid)) = self.index.ended.first().copied() else { break };
            self.forget(sid, step);
        }
        while self.state.sessions.len() >= SESSIONS_MAX {
            let oldest = self.index.ended.first().or_else(|| self.index.idle.first());
            let Some((_, sid)) = oldest.copied() else { return false };
            self.forget(sid, step);
        }
        true
    }

    pub(crate) fn forget(&mut self, sid: Sid, step: &mut Step) {
        step.mark(Mark::EndedDropped);
        self.forget_on_machine(sid, step);
        if let Some(session) = self.state.sessions.remove(sid) {
            let processes = session.all_processes();
            self.index.forget(sid, &session);
            for process in processes {
                if !self.index.by_process.contains_key(&process) {
                    step.effect(Effect::UnwatchProcess { process });
                }
            }
            if session.transcript.is_some() && !session.is_ended() {
                step.effect(Effect::UnfollowTranscript { key: session.key });
            }
        }
    }

    /// After a restart of the shell: watches, followed files and the hold are gone, and monotonic time may have
    /// begun again.
    fn runtime_started(&mut self, clean: bool, step: &mut Step) {
        step.mark(Mark::RuntimeStarted);
        let (before, now) = (self.state.last, step.now);
        let same_boot = before.boot_id == now.boot_id && before.boot_id.0 != 0;
        let shift = |at: Mono| match same_boot && now.mono >= before.mono {
            true => at,
            // What was left stays left.
            false => Mono(at.0.saturating_sub(before.mono.0).saturating_add(now.mono.0)),
        };
        let back = |at: Mono| match same_boot && now.mono >= before.mono {
            true => at,
            false => Mono(now.mono.0.saturating_sub(before.mono.0.saturating_sub(at.0))),
        };
        let shift = move |at: Mono| if at >= before.mono { shift(at) } else { back(at) };
        self.machine_restarted(&shift, step);
        let watch = self.state.settings.watch_parent_process;
        for sid in self.state.sessions.numbers() {
            self.on_session(sid, step, |session, _, step| session.restarted(&shift, watch, clean, step));
        }
    }

    /// Graces begin again after a sleep; nothing was heard because nobody could speak.
    fn sleep_ended(&mut self, step: &mut Step) {
        self.machine_woke(step);
        let awake: Vec<Sid> = self.index.active.union(&self.index.protecting).copied().collect();
        for sid in awake {
            self.on_session(sid, step, |session, _, step| session.woke(&step.now));
        }
    }

    pub(crate) fn known_external(&self) -> Known<bool> {
        match self.state.machine.displays {
            Known::Is(count) => Known::Is(count > 0),
            Known::Unknown => Known::Unknown,
        }
    }

    pub(crate) fn rebuild(state: State) -> Self {
        let mut core = Self { state, index: Index::default() };
        core.state.sessions.rebuild();
        for (sid, session) in core.state.sessions.iter() {
            core.index.rearm(sid, &crate::session::Dues::default(), &session.armed);
            core.index.list(sid, session);
            match session.shown {
                ShownState::Ended => {
                    core.index.ended.insert((session.listed, sid));
                }
                ShownState::Idle => {
                    core.index.idle.insert((session.listed, sid));
                }
                ShownState::Waiting | ShownState::Working | ShownState::Background => {}
            }
            for process in session.all_processes() {
                core.index.acquire(process, sid);
            }
            for id in &session.subagents {
                core.index.subagents.insert((session.key.agent, id.clone()), sid);
            }
        }
        core.index.deliveries = core.state.deliveries.iter().copied().collect();
        core.state.machine.index(&mut core.index);
        core
    }

    pub(crate) fn record(
        &mut self,
        sid: Sid,
        step: &Step,
        source: Source,
        what: &'static str,
        rule: &'static str,
    ) {
        if let Some(session) = self.state.sessions.get_mut(sid) {
            session.evidence.push(&step.now, None, source, what, rule);
        }
    }

    pub(crate) fn refuse(step: &mut Step) {
        step.mark(Mark::LimitReached);
        step.verdict = Verdict::Refused;
    }
}

impl Serialize for Core {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.state.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Core {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        State::deserialize(deserializer).map(Self::rebuild)
    }
}
