//! Silence: how a session that nothing is heard of is looked at before it is locked, and the deadlines of its own.
//!
//! Half of the timeout: a first figure of its processes' CPU time. All of it: the agent's own word, else a second
//! look whose answer decides. What cannot be known extends, within `work_max` since the agent itself was heard.

use crate::{
    core::Core,
    deadline::DeadlineKind,
    effect::{Effect, Probe},
    identity::{Incarnation, SessionKey},
    input::{Known, ProbeAnswer},
    lock::Lock,
    marks::Mark,
    ordering::When,
    session::{Dues, EndCause, Look, Phase, Session},
    signal::{AgentState, Source},
    step::{Rules, Step, Verdict},
    table::Sid,
    time::Mono,
};

/// What a look at a silent session says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Works(Mark, &'static str),
    Unknown(&'static str),
    Silent,
    AgentGone,
}

impl Core {
    pub(crate) fn deadline_reached(&mut self, kind: &DeadlineKind, step: &mut Step) {
        let now = step.now.mono;
        let due = |at: Option<Mono>| at.is_some_and(|at| at <= now);
        let session = |core: &Self, key: &SessionKey| {
            let sid = core.state.sessions.find(key)?;
            Some((sid, core.state.sessions.get(sid)?.armed))
        };
        match kind {
            DeadlineKind::Inactivity => return self.inactivity_due(step),
            DeadlineKind::WakeGrace { key } => {
                if let Some((sid, _)) = session(self, key).filter(|(_, armed)| due(armed.wake_grace)) {
                    step.mark(Mark::DueWakeGrace);
                    return self.on_session(sid, step, |s, _, step| s.carry_out(Source::Timer, step));
                }
            }
            DeadlineKind::WorkMax { key } => {
                if let Some((sid, _)) = session(self, key).filter(|(_, armed)| due(armed.work_max)) {
                    self.disarm(sid, |armed| armed.work_max = None);
                    return self.on_session(sid, step, |s, rules, step| {
                        if due(s.dues(rules.settings).work_max) {
                            step.mark(Mark::DueWorkMax);
                            s.work_max_reached(rules, step);
                        }
                    });
                }
            }
            DeadlineKind::BackgroundQuiet { key } => {
                if let Some((sid, _)) = session(self, key).filter(|(_, armed)| due(armed.quiet)) {
                    step.mark(Mark::DueBackgroundQuiet);
                    return self.on_session(sid, step, |s, _, step| {
                        s.quiet_from = step.now.mono;
                        step.effect(s.probe(Probe::BackgroundQuiet));
                    });
                }
            }
            DeadlineKind::Compaction { key } => {
                if let Some((sid, _)) = session(self, key).filter(|(_, armed)| due(armed.compaction)) {
                    step.mark(Mark::DueCompaction);
                    return self.on_session(sid, step, |s, rules, step| {
                        s.end_compaction(Source::Timer, step);
                        s.follow_work(Source::Timer, rules, step);
                    });
                }
            }
            DeadlineKind::HeldHook { .. }
            | DeadlineKind::LeaseExpiry { .. }
            | DeadlineKind::SuspendDelay
            | DeadlineKind::AskBeforeSleep
            | DeadlineKind::Webhook
            | DeadlineKind::Sound
            | DeadlineKind::SuspendRequest
            | DeadlineKind::HoldVerify
            | DeadlineKind::Cleanup => return self.machine_deadline(kind, step),
        }
        step.recorded(Mark::NotDue);
    }

    fn inactivity_due(&mut self, step: &mut Step) {
        let now = step.now.mono;
        let armed: Vec<Sid> =
            self.index.inactivity.iter().take_while(|(at, _)| *at <= now).map(|(_, sid)| *sid).collect();
        if armed.is_empty() {
            return step.recorded(Mark::NotDue);
        }
        for sid in armed {
            self.disarm(sid, |armed| armed.inactivity = None);
            self.on_session(sid, step, |session, rules, step| {
                if session.dues(rules.settings).inactivity.is_some_and(|at| at <= now) {
                    step.mark(Mark::DueInactivity);
                    session.look_at_silence(rules, step);
                }
            });
        }
    }

    /// Forgets a deadline that was reached, so that it is armed anew for its exact moment.
    fn disarm(&mut self, sid: Sid, which: impl FnOnce(&mut Dues)) {
        if let Some(session) = self.state.sessions.get_mut(sid) {
            let armed = session.armed;
            which(&mut session.armed);
            self.index.rearm(sid, &armed, &session.armed);
        }
    }

    pub(crate) fn probe_answered(
        &mut self,
        key: &SessionKey,
        incarnation: Incarnation,
        probe: Probe,
        answer: &ProbeAnswer,
        step: &mut Step,
    ) {
        step.resolved = Some((key.clone(), incarnation));
        let sid = self.state.sessions.find(key);
        let current = sid.filter(|sid| {
            self.state.sessions.get(*sid).is_some_and(|s| s.incarnation == incarnation && !s.is_ended())
        });
        let Some(sid) = current else {
            step.mark(Mark::StaleIncarnation);
            step.verdict = Verdict::Stale;
            return;
        };
        match probe {
            Probe::Inactivity => {
                self.on_session(sid, step, |s, rules, step| s.silence_answered(answer, rules, step));
            }
            Probe::BackgroundQuiet => {
                self.on_session(sid, step, |s, rules, step| s.quiet_answered(answer, rules, step));
            }
            Probe::YoungerChild => self.lock_probe_answered(sid, answer, step),
        }
    }
}

impl Session {
    pub(crate) fn probe(&self, probe: Probe) -> Effect {
        Effect::Probe { key: self.key.clone(), incarnation: self.incarnation, probe }
    }

    fn look_at_silence(&mut self, rules: Rules<'_>, step: &mut Step) {
        match self.look {
            Look::Fresh => {
                self.look = Look::Based;
                if self.can_be_probed() {
                    step.mark(Mark::InactivityBaseline);
                    step.effect(self.probe(Probe::Inactivity));
                }
            }
            Look::Based => {
                let newest = [self.decided, self.worked, self.opened];
                let busy = matches!(&self.agent_state, Some((AgentState::Busy, when))
                    if newest.iter().flatten().all(|other| !other.later_than(when)));
                if busy {
                    step.mark(Mark::ExtendedByState);
                    return self.extend("agent_state: it says that it is busy", None, step);
                }
                if self.can_be_probed() {
                    step.mark(Mark::InactivityAsked);
                    self.look = Look::Asked(step.now.mono);
                    return step.effect(self.probe(Probe::Inactivity));
                }
                // No process is known, so there is nothing to look at: only what it told can speak for it.
                if self.work.tools.is_empty() && !self.work.any_counts() {
                    self.lock_inactive(rules, step);
                } else {
                    step.mark(Mark::ExtendedUnknown);
                    self.extend("unknown: work was told of, and no process can be looked at", None, step);
                }
            }
            Look::Asked(_) => {
                step.mark(Mark::ExtendedUnknown);
                self.extend("unknown: the look at its processes was not answered", None, step);
            }
        }
    }

    fn extend(&mut self, why: &'static str, baseline: Option<(u64, Mono)>, step: &mut Step) {
        self.refreshed = step.now.mono;
        self.look = Look::Based;
        self.baseline = baseline;
        self.evidence.push(&step.now, None, Source::Timer, "inactivity", why);
    }

    fn silence_answered(&mut self, answer: &ProbeAnswer, rules: Rules<'_>, step: &mut Step) {
        let figure = match answer.tree_cpu_ms {
            Known::Is(ms) => Some((ms, step.now.mono)),
            Known::Unknown => None,
        };
        if self.dues(rules.settings).inactivity.is_none() {
            // It stopped, ended or waits by now: the question is settled.
            self.look = Look::Fresh;
            return step.recorded(Mark::NotDue);
        }
        match self.look {
            Look::Fresh => step.recorded(Mark::NotDue),
            Look::Based => {
                if self.baseline.is_none() {
                    self.baseline = figure;
                }
            }
            Look::Asked(_) => match self.finding(answer, step.now.mono) {
                Finding::Works(mark, why) => {
                    step.mark(mark);
                    self.extend(why, figure, step);
                }
                Finding::Unknown(why) => {
                    step.mark(Mark::ExtendedUnknown);
                    self.extend(why, figure, step);
                }
                Finding::AgentGone => {
                    let when = When::now(&step.now, step.number);
                    while let Some(process) = self.processes.first().map(|p| p.process) {
                        self.process_gone(&process, EndCause::Orphaned, Source::Process, when, rules, step);
                    }
                }
                Finding::Silent => self.lock_inactive(rules, step),
            },
        }
    }

    fn finding(&self, answer: &ProbeAnswer, now: Mono) -> Finding {
        if answer.agent_alive == Known::Is(false) {
            return Finding::AgentGone;
        }
        let live = self.work.any_counts();
        if answer.stopped == Known::Is(true) {
            // A stopped process is not evidence of work; work of its own may still be alive.
            return match answer.background_alive {
                Known::Is(true) if live => Finding::Works(Mark::ExtendedByBackground, "background_alive"),
                Known::Unknown if live => Finding::Unknown("unknown: whether its background work lives"),
                Known::Is(_) | Known::Unknown => Finding::Silent,
            };
        }
        let tool = !self.work.tools.is_empty();
        if tool && answer.agent_alive == Known::Is(true) {
            return Finding::Works(Mark::ExtendedByTool, "tool_in_flight");
        }
        let cpu = Self::cpu_moved(self.baseline, answer.tree_cpu_ms, now);
        if cpu == Known::Is(true) {
            return Finding::Works(Mark::ExtendedByCpu, "cpu");
        }
        if live && answer.background_alive == Known::Is(true) {
            return Finding::Works(Mark::ExtendedByBackground, "background_alive");
        }
        if cpu == Known::Unknown {
            return Finding::Unknown("unknown: its use of CPU");
        }
        if live && answer.background_alive == Known::Unknown {
            return Finding::Unknown("unknown: whether its background work lives");
        }
        if tool {
            return Finding::Unknown("unknown: whether the agent with a tool in flight lives");
        }
        Finding::Silent
    }

    fn lock_inactive(&mut self, rules: Rules<'_>, step: &mut Step) {
        if self.phase == Phase::Background {
            // Known to be dead, all of it: it is over rather than waiting for somebody.
            let when = When::now(&step.now, step.number);
            let dead: Vec<String> = self
                .work
                .live
                .iter()
                .filter(|(_, w)| w.counts() && w.process.is_some())
                .map(|(id, _)| id.clone())
                .collect();
            for id in dead {
                step.released.extend(self.work.live.get(&id).and_then(|w| w.process));
                if self.work.finish(&id, when) {
                    step.mark(Mark::WorkFinished);
                }
            }
            self.evidence.push(
                &step.now,
                None,
                Source::Process,
                "inactivity",
                "no process of its work is alive",
            );
            if !self.work.any_counts() {
                self.look = Look::Fresh;
                self.refreshed = step.now.mono;
                return self.follow_work(Source::Process, rules, step);
            }
            step.mark(Mark::ExtendedUnknown);
            return self.extend("unknown: work without a known process", None, step);
        }
        let minutes = rules.settings.inactivity_timeout.map_or(0, |t| t.as_secs() / 60);
        self.lock_for_silence(minutes, step);
    }

    fn lock_for_silence(&mut self, minutes: u64, step: &mut Step) {
        let when = When::now(&step.now, step.number);
        let lock = Lock::inactive(minutes, when, step.now.mono);
        let rule = format!("{}: nothing says that it works", lock.reason);
        self.lock = Some(lock);
        self.stalled_after_wake = self.silent_since_wake;
        self.decided = Some(when);
        step.mark(Mark::InactivityLocked);
        self.evidence.push(&step.now, None, Source::Timer, "inactivity", rule);
    }

    /// Nothing was heard of the agent itself for `work_max`: elapsed time completes nothing, but keeps nothing awake.
    fn work_max_reached(&mut self, rules: Rules<'_>, step: &mut Step) {
        step.mark(Mark::WorkMaxReached);
        for work in self.work.live.values_mut().filter(|w| w.defers()) {
            work.abandoned = true;
            step.marks.set(Mark::WorkAbandoned);
        }
        self.evidence.push(
            &step.now,
            None,
            Source::Timer,
            "work_max",
            "its work is past its bound: abandoned",
        );
        if self.phase == Phase::Working && self.lock.is_none() {
            self.lock_for_silence(rules.settings.work_max.as_secs() / 60, step);
        }
    }

    fn quiet_answered(&mut self, answer: &ProbeAnswer, rules: Rules<'_>, step: &mut Step) {
        match answer.background_moved {
            Known::Is(false) => {
                let mut any = false;
                for work in self.work.live.values_mut().filter(|w| w.counts() && w.can_be_quiet()) {
                    work.quiet = true;
                    any = true;
                }
                if any {
                    step.mark(Mark::WorkQuiet);
                    let rule = "no CPU and no output for a long time: quiet, keeps nothing awake";
                    self.evidence.push(&step.now, None, Source::Process, "background_quiet", rule);
                }
            }
            Known::Is(true) => {
                step.mark(Mark::WorkMoved);
                self.quiet_from = step.now.mono;
                for work in self.work.live.values_mut() {
                    work.quiet = false;
                }
            }
            // Asked again later; bounded by `work_max`.
            Known::Unknown => step.mark(Mark::ExtendedUnknown),
        }
        self.follow_work(Source::Process, rules, step);
    }
}
