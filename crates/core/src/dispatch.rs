//! From a signal to the session that it is about: repetitions, incarnations, new sessions, subagents, heirs.

use std::hash::{Hash as _, Hasher as _};

use crate::{
    apply::{Said, name_of},
    core::{Core, DELIVERIES_MAX},
    effect::{Effect, HookAnswer},
    identity::{AgentKind, Incarnation, ProcessRef, SessionKey},
    input::{HeldHook, HookQuestion, WatchOutcome},
    marks::Mark,
    ordering::When,
    session::{EndCause, FACT_MAX_BYTES, PROCESSES_MAX, Phase, Process, SUBAGENTS_MAX, Session, Watch, cut},
    signal::{
        Activity, AgentProcess, EndReason, Lineage, Signal, SignalBody, Source, StartCause, Thread, WorkKind,
    },
    step::{Path, Step, Verdict},
    table::{Mixer, Sid},
    view::ShownState,
};

/// Longest id of a session taken, in bytes. A longer one is refused: cutting it could merge two sessions.
pub const ID_MAX_BYTES: usize = 512;

/// What a signal for a key without a living incarnation comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Birth {
    /// It begins one.
    Minted,
    /// It begins one in the middle of a turn.
    MidTurn,
    /// It is stored as one that is over.
    Ended,
    Recorded,
}

/// Whether a signal under an unknown key is a subagent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinship {
    None,
    ChildOf(Sid),
    /// Of a parent that nobody knows: recorded only.
    Orphan,
}

/// Whether this signal begins a session where its key is unknown, and the next life of one that ended earlier. What else is
/// said of such a key is recorded at most.
#[must_use]
pub fn begins_session(signal: &Signal) -> bool {
    match Core::birth(signal) {
        Birth::Minted | Birth::MidTurn => true,
        Birth::Ended | Birth::Recorded => false,
    }
}

impl Core {
    pub(crate) fn signal(&mut self, signal: &Signal, held: Option<HeldHook>, step: &mut Step) {
        let answered = self.place(signal, held, step);
        if let (Some(held), false) = (held, answered) {
            // Nobody wants this hook to wait.
            step.mark(Mark::HookAnswered);
            step.effect(Effect::AnswerHook { delivery: held.delivery, answer: HookAnswer::Nothing });
        }
    }

    /// Returns whether the hook that waits was taken care of.
    fn place(&mut self, signal: &Signal, held: Option<HeldHook>, step: &mut Step) -> bool {
        if signal.key.id.len() > ID_MAX_BYTES
            || signal.key.namespace.as_ref().is_some_and(|n| n.len() > ID_MAX_BYTES)
        {
            Self::refuse(step);
            return false;
        }
        if self.is_duplicate(signal) {
            step.mark(Mark::Duplicate);
            step.verdict = Verdict::Duplicate;
            // The first copy of it keeps its hook.
            return held.is_some_and(|h| self.state.machine.hooks.contains_key(&h.delivery));
        }
        let when = When::of(signal.happened, &step.now, step.number);
        if let SignalBody::ProcessExited { process } = &signal.body {
            self.process_exited(signal, process, when, step);
            return false;
        }
        let found = self.state.sessions.find(&signal.key);
        if found.is_none() {
            match self.kinship(signal) {
                Kinship::None => {}
                Kinship::ChildOf(parent) => {
                    self.subagent_signal(parent, &signal.key.id, signal, when, step);
                    return false;
                }
                Kinship::Orphan => {
                    self.state.unplaced = self.state.unplaced.saturating_add(1);
                    step.recorded(Mark::UnknownRecorded);
                    return false;
                }
            }
        }
        let sid = match found {
            Some(sid) => {
                if self.is_stale(sid, signal) {
                    step.mark(Mark::StaleIncarnation);
                    step.verdict = Verdict::Stale;
                    step.resolved = self.named(sid, signal.incarnation);
                    self.record(sid, step, signal.source, name_of(&signal.body), "of an older incarnation");
                    return false;
                }
                if self.state.sessions.get(sid).is_some_and(Session::is_ended)
                    && !self.reborn(sid, signal, when, step)
                {
                    step.resolved = self.named(sid, None);
                    return false;
                }
                sid
            }
            None => match self.mint(signal, when, step) {
                Some(sid) => sid,
                None => return false,
            },
        };
        step.resolved = self.named(sid, None);
        if self.state.sessions.get(sid).is_some_and(Session::is_ended) {
            return false;
        }
        self.inherit(sid, signal, when, step);
        step.hook = held.filter(|h| h.question == HookQuestion::Stop).map(|h| h.delivery);
        let announced = announces(signal);
        self.on_session(sid, step, |session, rules, step| {
            session.learn(&signal.facts);
            session.follow(signal.facts.transcript.as_deref(), step);
            if let Some(process) = signal.process {
                session.adopt(process, rules.settings.watch_parent_process, step);
            }
            session.apply(Said { signal, when }, rules, step);
        });
        // Where it is known as well, the other one tells of it too.
        if let Some(Lineage::ForkedFrom(from)) = &signal.facts.lineage {
            let from = SessionKey { id: from.clone(), ..signal.key.clone() };
            let from = self.state.sessions.find(&from).filter(|from| *from != sid);
            if let Some(from) = from.and_then(|from| self.state.sessions.get_mut(from)) {
                from.link(Lineage::ForkedTo(signal.key.id.clone()));
            }
        }
        // What ended with this word adopts nobody: an ended session has no work.
        if let Some(id) = announced
            && !self.state.sessions.get(sid).is_some_and(Session::is_ended)
        {
            self.announce(sid, signal.key.agent, id);
            self.unmake(sid, id, Said { signal, when }, step);
        }
        if let SignalBody::SessionStarted { cause: StartCause::Clear } = &signal.body {
            self.end_cleared(sid, signal, when, step);
        }
        self.take_hook(sid, step)
    }

    fn named(&self, sid: Sid, incarnation: Option<Incarnation>) -> Option<(SessionKey, Incarnation)> {
        let session = self.state.sessions.get(sid)?;
        Some((session.key.clone(), incarnation.unwrap_or(session.incarnation)))
    }

    /// One frame may carry several statements under one delivery id, so the statement is part of the identity.
    /// Zero names no delivery.
    fn is_duplicate(&mut self, signal: &Signal) -> bool {
        if signal.delivery.0 == 0 {
            return false;
        }
        let mut print = Mixer::default();
        print.write_u128(signal.delivery.0);
        signal.body.hash(&mut print);
        signal.key.hash(&mut print);
        let entry = print.finish();
        if !self.index.deliveries.insert(entry) {
            return true;
        }
        self.state.deliveries.push_back(entry);
        if self.state.deliveries.len() > DELIVERIES_MAX
            && let Some(old) = self.state.deliveries.pop_front()
        {
            self.index.deliveries.remove(&old);
        }
        false
    }

    fn is_stale(&self, sid: Sid, signal: &Signal) -> bool {
        let Some(session) = self.state.sessions.get(sid) else { return false };
        if let Some(named) = signal.incarnation {
            return named < session.incarnation;
        }
        let Some(process) = signal.process.map(|p| p.process).filter(|p| !session.owns(p)) else {
            return false;
        };
        let starts = matches!(signal.body, SignalBody::Started { .. } | SignalBody::SessionStarted { .. });
        session.former(&process).is_some_and(|f| f.incarnation < session.incarnation && (f.exited || !starts))
    }

    fn kinship(&self, signal: &Signal) -> Kinship {
        let key = &signal.key;
        if let Some(sid) = self.index.subagents.get(&(key.agent, key.id.clone())) {
            return Kinship::ChildOf(*sid);
        }
        if let Some(Lineage::Parent(parent)) = &signal.facts.lineage {
            let parent = SessionKey { id: parent.clone(), ..key.clone() };
            return self.state.sessions.find(&parent).map_or(Kinship::Orphan, Kinship::ChildOf);
        }
        // Copilot's subagents speak under ids of their own, and not every event names the parent (1.0.102).
        let starts =
            matches!(signal.body, SignalBody::SessionStarted { .. } | SignalBody::SessionEnded { .. });
        let Some(process) = signal.process.filter(|_| key.agent == AgentKind::Copilot && !starts) else {
            return Kinship::None;
        };
        let mut parents = self.index.by_process.get(&process.process).into_iter().flatten().filter(|sid| {
            self.state.sessions.get(**sid).is_some_and(|s| {
                s.is_active()
                    && s.key.agent == key.agent
                    && s.work.live.values().any(|w| w.kind == WorkKind::Subagent)
            })
        });
        match (parents.next(), parents.next()) {
            (Some(parent), None) => Kinship::ChildOf(*parent),
            (_, _) => Kinship::None,
        }
    }

    /// A session that turns out to be a subagent of another one: it spoke before it was announced. What it began and what it
    /// waits for are its parent's. One that announced itself, or that has another process, is a session.
    fn unmake(&mut self, parent: Sid, id: &str, announcement: Said<'_>, step: &mut Step) {
        let Some(key) =
            self.state.sessions.get(parent).map(|s| SessionKey { id: id.to_owned(), ..s.key.clone() })
        else {
            return;
        };
        let Some(child) = self.state.sessions.find(&key).filter(|sid| *sid != parent) else { return };
        let (Some(one), Some(other)) = (self.state.sessions.get(child), self.state.sessions.get(parent))
        else {
            return;
        };
        let same = one.processes.iter().all(|p| other.owns(&p.process));
        if one.registered || one.is_ended() || !same {
            return;
        }
        step.mark(Mark::SubagentAdopted);
        step.effect(Effect::Transitioned {
            key: key.clone(),
            incarnation: one.incarnation,
            from: Some(one.shown),
            to: ShownState::Ended,
            evidence: format!("a subagent of {}", other.key),
        });
        let (work, lock) = (one.work.live.clone(), one.lock.clone());
        let signal = Signal { thread: Thread::Subagent(id.to_owned()), ..announcement.signal.clone() };
        // Before the child is forgotten: what both watch stays watched.
        self.on_session(parent, step, |session, _, step| {
            for (id, work) in work {
                session.work_started(Said { signal: &signal, when: work.when }, &id, work, step);
            }
            if let Some(lock) = lock.filter(|lock| !lock.inactive) {
                let said = Said { signal: &signal, when: lock.when };
                session.soft_locked(said, &lock.reason, &lock.subject, step);
            }
        });
        self.forget(child, step);
    }

    /// What a subagent says under its own id is its parent's work.
    fn subagent_signal(&mut self, parent: Sid, child: &str, signal: &Signal, when: When, step: &mut Step) {
        step.mark(Mark::SubagentAdopted);
        step.resolved = self.named(parent, None);
        let mut own = signal.clone();
        own.thread = Thread::Subagent(cut(child, FACT_MAX_BYTES));
        own.turn = None;
        own.facts = crate::signal::Facts::default();
        match &own.body {
            SignalBody::Started { .. }
            | SignalBody::Activity { .. }
            | SignalBody::ToolStarted { .. }
            | SignalBody::ToolFinished { .. }
            | SignalBody::SoftLocked { .. }
            | SignalBody::LockResolved { .. }
            | SignalBody::WorkStarted { .. }
            | SignalBody::WorkFinished { .. } => {}
            SignalBody::SessionStarted { .. }
            | SignalBody::Displayed { .. }
            | SignalBody::WorkLevel { .. }
            | SignalBody::Stopped { .. }
            | SignalBody::Aborted { .. }
            | SignalBody::Failed { .. }
            | SignalBody::IdleNoticed
            | SignalBody::SessionEnded { .. }
            | SignalBody::AgentStated { .. }
            | SignalBody::ProcessExited { .. }
            | SignalBody::Orphaned
            | SignalBody::Removed
            | SignalBody::SoftLockCleared
            | SignalBody::Unknown { .. } => {
                step.verdict = Verdict::Recorded;
                return;
            }
        }
        if self.state.sessions.get(parent).is_some_and(Session::is_ended) {
            step.verdict = Verdict::Recorded;
            return;
        }
        self.on_session(parent, step, |session, rules, step| {
            session.apply(Said { signal: &own, when }, rules, step);
        });
        self.announce(parent, signal.key.agent, child);
    }

    fn announce(&mut self, sid: Sid, agent: AgentKind, id: &str) {
        let Some(session) = self.state.sessions.get_mut(sid) else { return };
        // Whoever announced an id first has it.
        if self.index.subagents.contains_key(&(agent, id.to_owned())) {
            return;
        }
        if session.subagents.len() >= SUBAGENTS_MAX
            && let Some(old) = session.subagents.pop_front()
        {
            self.index.subagents.remove(&(agent, old));
        }
        session.subagents.push_back(id.to_owned());
        self.index.subagents.insert((agent, id.to_owned()), sid);
    }

    fn birth(signal: &Signal) -> Birth {
        let living = signal.process.is_some();
        match &signal.body {
            SignalBody::Started { .. } if signal.thread == Thread::Main => Birth::Minted,
            SignalBody::SessionStarted { .. } => Birth::Minted,
            SignalBody::Activity { what: Activity::ModelOutput }
            | SignalBody::ToolStarted { .. }
            | SignalBody::SoftLocked { .. }
            | SignalBody::WorkStarted { .. }
                if living =>
            {
                Birth::MidTurn
            }
            SignalBody::Stopped { live: Some(live), .. } if living && !live.is_empty() => Birth::MidTurn,
            SignalBody::SessionEnded { .. } => Birth::Ended,
            SignalBody::Started { .. }
            | SignalBody::Activity { .. }
            | SignalBody::Displayed { .. }
            | SignalBody::ToolStarted { .. }
            | SignalBody::ToolFinished { .. }
            | SignalBody::SoftLocked { .. }
            | SignalBody::LockResolved { .. }
            | SignalBody::WorkStarted { .. }
            | SignalBody::WorkFinished { .. }
            | SignalBody::WorkLevel { .. }
            | SignalBody::Stopped { .. }
            | SignalBody::Aborted { .. }
            | SignalBody::Failed { .. }
            | SignalBody::IdleNoticed
            | SignalBody::AgentStated { .. }
            | SignalBody::ProcessExited { .. }
            | SignalBody::Orphaned
            | SignalBody::Removed
            | SignalBody::SoftLockCleared
            | SignalBody::Unknown { .. } => Birth::Recorded,
        }
    }

    fn mint(&mut self, signal: &Signal, when: When, step: &mut Step) -> Option<Sid> {
        let birth = Self::birth(signal);
        if birth == Birth::Recorded {
            self.state.unplaced = self.state.unplaced.saturating_add(1);
            step.recorded(Mark::UnknownRecorded);
            return None;
        }
        if !self.make_room(step) {
            Self::refuse(step);
            return None;
        }
        let mut session = Session::new(signal.key.clone(), Incarnation(1), &step.now);
        session.born = Some(when);
        match birth {
            Birth::MidTurn => self::mid_turn(&mut session, signal, step),
            Birth::Ended => {
                step.mark(Mark::MintedEnded);
                session.learn(&signal.facts);
                session.phase = Phase::Ended(EndCause::Reported);
                session.ended = Some(when);
                session.evidence.push(
                    &step.now,
                    when.boot_at(&step.now),
                    signal.source,
                    "session_end",
                    "never heard of before; stored as over",
                );
            }
            Birth::Minted | Birth::Recorded => step.mark(Mark::Minted),
        }
        let key = session.key.clone();
        session.shown = session.state();
        session.listed = step.number;
        let to = session.shown;
        let Some(sid) = self.state.sessions.insert(session) else {
            Self::refuse(step);
            return None;
        };
        step.effect(Effect::Transitioned {
            key,
            incarnation: Incarnation(1),
            from: None,
            to,
            evidence: "first heard of".to_owned(),
        });
        self.settle(sid, step);
        Some(sid)
    }

    /// Whether this signal begins the next life of an ended session; otherwise it is only recorded.
    fn reborn(&mut self, sid: Sid, signal: &Signal, when: When, step: &mut Step) -> bool {
        let Some(session) = self.state.sessions.get(sid) else { return false };
        let later = when.after(session.ended.as_ref());
        let birth = Self::birth(signal);
        let removed = session.phase == Phase::Ended(EndCause::Removed);
        let dead = signal.process.is_some_and(|p| session.former(&p.process).is_some_and(|f| f.exited));
        let starts = matches!(signal.body, SignalBody::Started { .. });
        let lives = match birth {
            Birth::Minted => later && !dead && (!removed || starts),
            Birth::MidTurn => later && !dead && !removed,
            Birth::Ended | Birth::Recorded => false,
        };
        if !lives {
            let ends = birth == Birth::Ended
                || matches!(
                    signal.body,
                    SignalBody::Removed | SignalBody::Orphaned | SignalBody::ProcessExited { .. }
                );
            let mark = match (ends, removed) {
                (true, _) => Mark::SecondEnd,
                (false, true) => Mark::RemovedStays,
                (false, false) => Mark::EarlierIgnored,
            };
            step.recorded(mark);
            // The end of a life whose beginning comes later, from a hook that was slow, is no end of the life before.
            let of_former = signal.process.is_some_and(|p| session.former(&p.process).is_some());
            if birth == Birth::Ended
                && later
                && !of_former
                && let Some(session) = self.state.sessions.get_mut(sid)
            {
                session.ended = Some(when);
            }
            // The agent may name the successor after its end was heard of.
            if let SignalBody::SessionEnded { reason, successor: Some(successor) } = &signal.body {
                self.on_session(sid, step, |session, _, step| {
                    if session.succeeded_by(*reason, successor) {
                        session.bequeath(*reason, Some(successor), step);
                    }
                });
            }
            if !matches!(signal.body, SignalBody::Displayed { .. }) {
                self.record(sid, step, signal.source, name_of(&signal.body), "the session is over");
            }
            return false;
        }
        self.on_session(sid, step, |session, _, step| {
            session.reborn(&step.now);
            session.born = Some(when);
            step.mark(Mark::MintedAgain);
            if birth == Birth::MidTurn {
                mid_turn(session, signal, step);
            } else {
                session.evidence.push(
                    &step.now,
                    when.boot_at(&step.now),
                    signal.source,
                    name_of(&signal.body),
                    "it lives again",
                );
            }
        });
        true
    }

    /// A new session takes over what a replaced one of the same process left running.
    fn inherit(&mut self, sid: Sid, signal: &Signal, when: When, step: &mut Step) {
        if self.state.bequests.is_empty()
            || !matches!(signal.body, SignalBody::Started { .. } | SignalBody::SessionStarted { .. })
        {
            return;
        }
        let process = signal.process.map(|p| p.process);
        let key = &signal.key;
        let at = self.state.bequests.iter().position(|b| {
            b.from.agent == key.agent
                && b.from != *key
                && (b.successor.as_ref() == Some(&key.id)
                    || process.is_some_and(|p| b.successor.is_none() && b.processes.contains(&p)))
        });
        let Some(at) = at else { return };
        let bequest = self.state.bequests.remove(at);
        if let Some(from) = self.state.sessions.find(&bequest.from)
            && let Some(from) = self.state.sessions.get_mut(from)
        {
            from.link(match bequest.goes_on {
                true => Lineage::ContinuedIn(key.id.clone()),
                false => Lineage::ClearedTo(key.id.clone()),
            });
        }
        self.on_session(sid, step, |session, _, step| {
            session.inherit(bequest, signal.source, when, step);
        });
    }

    /// Codex without its daemon announces only the new session after a clear: the former one of that process is over.
    fn end_cleared(&mut self, heir: Sid, signal: &Signal, when: When, step: &mut Step) {
        let Some(process) = signal.process.filter(|p| !p.shared).map(|p| p.process) else { return };
        let replaced: Vec<Sid> = self
            .index
            .by_process
            .get(&process)
            .into_iter()
            .flatten()
            .copied()
            .filter(|sid| *sid != heir)
            .filter(|sid| {
                self.state.sessions.get(*sid).is_some_and(|s| {
                    s.key.agent == signal.key.agent
                        && !s.is_ended()
                        && s.processes.iter().all(|p| p.process == process)
                })
            })
            .collect();
        for sid in replaced {
            self.on_session(sid, step, |session, _, step| {
                session.succeeded_by(EndReason::Cleared, &signal.key.id);
                session.bequeath(EndReason::Cleared, Some(&signal.key.id), step);
                session.end(EndCause::Cleared, Path::Normal, signal.source, when, step);
            });
            self.inherit(heir, signal, when, step);
        }
    }

    /// One exit concerns every session that has the process.
    fn process_exited(&mut self, signal: &Signal, process: &ProcessRef, when: When, step: &mut Step) {
        let users: Vec<Sid> = self.index.by_process.get(process).into_iter().flatten().copied().collect();
        step.resolved =
            self.state.sessions.find(&signal.key).and_then(|sid| self.named(sid, signal.incarnation));
        if users.is_empty() {
            return step.recorded(Mark::UnknownRecorded);
        }
        // Its watch ended with it: nothing is left to unwatch.
        self.index.by_process.remove(process);
        for sid in users {
            self.on_session(sid, step, |session, rules, step| {
                session.process_gone(process, EndCause::ProcessExited, signal.source, when, rules, step);
            });
        }
    }

    pub(crate) fn watch_reported(
        &mut self,
        key: &SessionKey,
        incarnation: Incarnation,
        process: &ProcessRef,
        outcome: &WatchOutcome,
        step: &mut Step,
    ) {
        let users: Vec<Sid> = self.index.by_process.get(process).into_iter().flatten().copied().collect();
        step.resolved = Some((key.clone(), incarnation));
        if users.is_empty() {
            return step.recorded(Mark::UnknownRecorded);
        }
        let when = When::now(&step.now, step.number);
        if *outcome == WatchOutcome::AlreadyGone {
            self.index.by_process.remove(process);
        }
        for sid in users {
            self.on_session(sid, step, |session, rules, step| match outcome {
                WatchOutcome::AlreadyGone => {
                    session.process_gone(process, EndCause::Orphaned, Source::Process, when, rules, step);
                }
                WatchOutcome::Watching => session.set_watch(process, Watch::Standing),
                WatchOutcome::Failed(why) => session.set_watch(process, Watch::Failed(cut(why, 200))),
            });
        }
    }
}

/// In the phase that the signal speaks of, before it is applied.
fn mid_turn(session: &mut Session, signal: &Signal, step: &mut Step) {
    step.mark(Mark::MintedMidTurn);
    session.first_seen_mid_turn = true;
    let works = matches!(
        &signal.body,
        SignalBody::Activity { .. } | SignalBody::ToolStarted { .. } | SignalBody::SoftLocked { .. }
    );
    if works {
        let main = signal.thread == Thread::Main;
        session.begin_turn(signal.turn.as_ref().filter(|_| main), &step.now);
        session.phase = Phase::Working;
    }
    session.evidence.push(
        &step.now,
        None,
        signal.source,
        name_of(&signal.body),
        "first seen in the middle of a turn",
    );
}

/// The subagent that a signal tells of.
fn announces(signal: &Signal) -> Option<&str> {
    match (&signal.body, &signal.thread) {
        (SignalBody::WorkStarted { id, what: WorkKind::Subagent, .. }, _) => Some(id),
        (_, Thread::Subagent(id)) => Some(id),
        _ => None,
    }
}

impl Session {
    /// Takes a process as one of this incarnation's.
    pub(crate) fn adopt(&mut self, process: AgentProcess, watch: bool, step: &mut Step) {
        let AgentProcess { process, shared, declared: _ } = process;
        if self.owns(&process) || self.former(&process).is_some_and(|f| f.exited) {
            return;
        }
        if self.processes.len() >= PROCESSES_MAX {
            return step.mark(Mark::LimitReached);
        }
        let state = if watch { Watch::Asked } else { Watch::BySetting };
        self.processes.push(Process { process, shared, watch: state });
        if watch {
            self.watch(process, step);
        } else {
            step.acquired.push(process);
        }
    }

    pub(crate) fn follow(&mut self, transcript: Option<&str>, step: &mut Step) {
        let Some(path) = transcript.filter(|t| self.transcript.as_deref() != Some(*t)) else { return };
        if path.len() > FACT_MAX_BYTES {
            return step.mark(Mark::LimitReached);
        }
        self.transcript = Some(path.to_owned());
        step.effect(Effect::FollowTranscript { key: self.key.clone(), path: path.to_owned() });
    }

    fn set_watch(&mut self, process: &ProcessRef, watch: Watch) {
        if let Some(own) = self.processes.iter_mut().find(|p| p.process == *process) {
            own.watch = watch;
        }
    }
}
