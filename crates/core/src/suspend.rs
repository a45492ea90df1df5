//! The one suspend plan of the machine: delay, re-check, question, re-check, webhook, sound, re-check, request.
//!
//! A plan exists only while the machine is away (lid shut and no display, both known), a sleep is owed and nothing
//! demands the machine. It is part of what keeps the machine awake until its request is settled.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};

use crate::{
    core::Core,
    deadline::DeadlineKind,
    effect::{Effect, HookAnswer, Probe, SuspendReason, Webhook},
    identity::{DeliveryId, Incarnation, SessionKey},
    input::{Known, ProbeAnswer},
    lock::{ASK_BEFORE_SLEEP, Lock},
    marks::Mark,
    ordering::When,
    session::{PROBE_WAIT, Phase, Session},
    signal::{LockSubject, Source, Thread},
    step::{Path, PathTaken, Step},
    table::Sid,
    time::Mono,
};

/// An attempt of the PreSuspend webhook may take so long.
pub const WEBHOOK_WAIT: Duration = Duration::from_secs(5);
/// A sound may take so long.
pub const SOUND_WAIT: Duration = Duration::from_secs(30);
/// The system may take so long to answer a request; unanswered counts as failed.
pub const REQUEST_WAIT: Duration = Duration::from_secs(60);
/// After a failed request the next one waits so long, doubled each time.
pub const BACK_OFF: Duration = Duration::from_secs(60);
/// Requests for one debt. After that the debt is dropped: the system's own lid action decides.
pub const REQUESTS_MAX: u32 = 3;
/// Looks at waiting sessions whose answer stays unknown. After that the plan is dropped.
pub const CHECKS_MAX: u32 = 5;
/// Sessions remembered in one plan. A further one joins without its own webhook.
pub const MEMBERS_MAX: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    Delay,
    /// Waiting sessions are looked at: did the person answer without the agent saying so?
    Check(BTreeSet<Sid>),
    Ask,
    Webhook,
    Sound,
    Request,
    /// The machine goes to sleep without our request: everything waits for the resume.
    Elsewhere,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) sid: Sid,
    pub(crate) key: SessionKey,
    pub(crate) incarnation: Incarnation,
    /// Its PostSessionEnd goes out if the plan is cancelled before the PreSuspend attempt.
    pub(crate) post: bool,
    pub(crate) hook: Option<DeliveryId>,
    pub(crate) asked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) reason: SuspendReason,
    pub(crate) stage: Stage,
    pub(crate) due: Mono,
    pub(crate) members: Vec<Member>,
    /// The PreSuspend webhook was attempted.
    pub(crate) announced: bool,
    checks: u32,
}

impl Plan {
    pub(crate) fn deadline(&self) -> (Mono, DeadlineKind) {
        let kind = match self.stage {
            Stage::Delay | Stage::Check(_) => DeadlineKind::SuspendDelay,
            Stage::Ask => DeadlineKind::AskBeforeSleep,
            Stage::Webhook => DeadlineKind::Webhook,
            Stage::Sound => DeadlineKind::Sound,
            Stage::Request | Stage::Elsewhere => DeadlineKind::SuspendRequest,
        };
        (self.due, kind)
    }

    /// Past the point where it can be cancelled or joined.
    pub(crate) fn is_settling(&self) -> bool {
        matches!(self.stage, Stage::Request | Stage::Elsewhere)
    }

    pub(crate) fn describe(&self) -> String {
        let stage = match self.stage {
            Stage::Delay => "delay",
            Stage::Check(_) => "looking at waiting sessions",
            Stage::Ask => "asking",
            Stage::Webhook => "announcing",
            Stage::Sound => "sound",
            Stage::Request => "requested",
            Stage::Elsewhere => "the machine goes to sleep by itself",
        };
        format!("{:?}, {stage}", self.reason)
    }
}

impl Core {
    /// Whether a suspend may be prepared at this moment.
    pub(crate) fn could_suspend(&self) -> bool {
        self.state.settings.suspend
            && self.armed()
            && !self.demand()
            && self.is_away()
            && self.state.machine.owed
    }

    /// Cancels, joins or begins the plan after everything else of an input was applied.
    pub(crate) fn follow_plan(&mut self, step: &mut Step) {
        let requested = self.state.machine.plan.as_ref().is_some_and(Plan::is_settling);
        let stands = self.could_suspend();
        if self.state.machine.plan.is_some() && !requested && (step.disturbed || !stands) {
            self.cancel_plan(true, step);
        }
        // A question that the cancel withdrew may have been all that kept its session from protecting.
        let stands = stands && self.could_suspend();
        let paths = std::mem::take(&mut step.paths);
        let mut alone: Vec<(Sid, PathTaken)> = Vec::new();
        for (sid, path) in paths {
            match &self.state.machine.plan {
                Some(plan) if !plan.is_settling() => self.join(sid, path, step),
                Some(_) | None => alone.push((sid, path)),
            }
        }
        if self.state.machine.plan.is_none() && stands && !step.no_plan {
            self.begin_plan(&alone, step);
        } else {
            for (sid, path) in alone {
                if path.post {
                    self.tell_end(sid, step);
                }
            }
        }
    }

    fn member(&self, sid: Sid, path: PathTaken) -> Option<Member> {
        let session = self.state.sessions.get(sid)?;
        let waits = |h: &crate::machine::WaitingHook| h.sid == sid && h.incarnation == session.incarnation;
        let hook = self.state.machine.hooks.iter().find(|(_, h)| waits(h)).map(|(delivery, _)| *delivery);
        Some(Member {
            sid,
            key: session.key.clone(),
            incarnation: session.incarnation,
            post: path.post,
            hook: hook.filter(|_| path.can_reply),
            asked: false,
        })
    }

    fn begin_plan(&mut self, paths: &[(Sid, PathTaken)], step: &mut Step) {
        let silent = !paths.is_empty() && paths.iter().all(|(_, p)| p.path == Path::Cancel);
        let (reason, delay) = if !self.index.active.is_empty() {
            (SuspendReason::SoftLocked, self.state.settings.waiting_delay)
        } else if silent {
            (SuspendReason::Silent, self.state.settings.post_stop_delay)
        } else {
            (SuspendReason::Completed, self.state.settings.post_stop_delay)
        };
        step.mark(Mark::SuspendPlanned);
        let members =
            paths.iter().take(MEMBERS_MAX).filter_map(|(sid, path)| self.member(*sid, *path)).collect();
        self.state.machine.plan = Some(Plan {
            reason,
            stage: Stage::Delay,
            due: step.now.mono.after(delay),
            members,
            announced: false,
            checks: 0,
        });
    }

    fn join(&mut self, sid: Sid, path: PathTaken, step: &mut Step) {
        step.mark(Mark::SuspendJoined);
        let member = self.member(sid, path);
        let delay = self.state.settings.post_stop_delay;
        let Some(plan) = &mut self.state.machine.plan else { return };
        if let Some(member) = member {
            let full = plan.members.len() >= MEMBERS_MAX;
            match plan.members.iter_mut().find(|m| m.sid == sid && m.incarnation == member.incarnation) {
                Some(known) => {
                    known.post |= member.post && !plan.announced;
                    known.hook = known.hook.or(member.hook);
                }
                None if full => step.marks.set(Mark::LimitReached),
                None => plan.members.push(member),
            }
        }
        // A cancel path keeps its place, its webhooks and its hold; a stop begins the delay again.
        if path.path != Path::Cancel {
            let nobody_waits = self.index.active.is_empty();
            if plan.reason == SuspendReason::Silent
                || (plan.reason == SuspendReason::SoftLocked && nobody_waits)
            {
                plan.reason = SuspendReason::Completed;
            }
            plan.stage = Stage::Delay;
            plan.due = step.now.mono.after(delay);
        }
    }

    fn tell_end(&mut self, sid: Sid, step: &mut Step) {
        if !self.state.settings.webhooks {
            return;
        }
        if let Some(session) = self.state.sessions.get(sid) {
            step.mark(Mark::PostSessionEndSent);
            let event =
                Webhook::PostSessionEnd { key: session.key.clone(), incarnation: session.incarnation };
            step.effect(Effect::Webhook { event });
        }
    }

    /// Everything the plan holds is let go. `posts`: whoever stopped is told of after all.
    fn cancel_plan(&mut self, posts: bool, step: &mut Step) {
        let Some(plan) = self.state.machine.plan.take() else { return };
        step.mark(Mark::SuspendCancelled);
        let asked = plan.members.iter().any(|m| m.asked);
        for member in &plan.members {
            self.withdraw(member, step);
            if posts && member.post && !plan.announced && self.state.settings.webhooks {
                step.mark(Mark::PostSessionEndSent);
                let event =
                    Webhook::PostSessionEnd { key: member.key.clone(), incarnation: member.incarnation };
                step.effect(Effect::Webhook { event });
            }
        }
        if (plan.announced || asked) && self.state.settings.webhooks {
            step.effect(Effect::Webhook { event: Webhook::Canceled });
        }
    }

    /// Closes the question of one session and lets its hook go.
    fn withdraw(&mut self, member: &Member, step: &mut Step) {
        if member.asked {
            step.effect(Effect::WithdrawQuestion {
                key: member.key.clone(),
                incarnation: member.incarnation,
            });
            self.unask(member.sid, member.incarnation, step);
        }
        if let Some(delivery) = member.hook {
            self.answer_hook(delivery, HookAnswer::Nothing, step);
        }
    }

    fn unask(&mut self, sid: Sid, incarnation: Incarnation, step: &mut Step) {
        let asked = self
            .state
            .sessions
            .get(sid)
            .is_some_and(|s| s.incarnation == incarnation && s.asks_before_sleep());
        if asked {
            self.on_session(sid, step, |session, _, step| {
                session.lock = None;
                session.evidence.push(
                    &step.now,
                    None,
                    Source::Timer,
                    "ask_before_sleep",
                    "the question is closed",
                );
            });
        }
    }

    pub(crate) fn plan_due(&mut self, kind: &DeadlineKind, step: &mut Step) {
        let Some(plan) = &mut self.state.machine.plan else { return };
        match kind {
            DeadlineKind::SuspendDelay => {
                step.mark(Mark::DueSuspendDelay);
                if let Stage::Check(_) = plan.stage {
                    return self.check_unknown(step);
                }
                if plan.reason == SuspendReason::SoftLocked {
                    return self.check_waiting(step);
                }
                self.ask_or_go_on(step);
            }
            DeadlineKind::AskBeforeSleep => {
                step.mark(Mark::DueAskBeforeSleep);
                self.close_questions(step);
                self.announce_suspend(step);
            }
            DeadlineKind::Webhook => {
                step.mark(Mark::DueWebhook);
                self.play_or_request(step);
            }
            DeadlineKind::Sound => {
                step.mark(Mark::DueSound);
                self.request(step);
            }
            DeadlineKind::SuspendRequest => {
                step.mark(Mark::DueSuspendRequest);
                if plan.stage == Stage::Elsewhere {
                    // It did not sleep after all: what is owed is owed still.
                    return self.cancel_plan(true, step);
                }
                self.suspend_reported(false, "the system did not answer", step);
            }
            DeadlineKind::Inactivity
            | DeadlineKind::WakeGrace { .. }
            | DeadlineKind::WorkMax { .. }
            | DeadlineKind::BackgroundQuiet { .. }
            | DeadlineKind::Compaction { .. }
            | DeadlineKind::HeldHook { .. }
            | DeadlineKind::LeaseExpiry { .. }
            | DeadlineKind::HoldVerify
            | DeadlineKind::Cleanup => {}
        }
    }

    /// Before a suspend because all wait: an agent may have gone on without saying that it was answered.
    fn check_waiting(&mut self, step: &mut Step) {
        let pending = self.probe_waiting(step);
        if pending.is_empty() {
            return self.ask_or_go_on(step);
        }
        if let Some(plan) = &mut self.state.machine.plan {
            plan.stage = Stage::Check(pending);
            plan.due = step.now.mono.after(PROBE_WAIT);
        }
    }

    fn probe_waiting(&mut self, step: &mut Step) -> BTreeSet<Sid> {
        let mut asked = BTreeSet::new();
        for sid in &self.index.active {
            let Some(session) = self.state.sessions.get(*sid) else { continue };
            if session.lock.as_ref().is_some_and(Lock::may_resolve_silently) && session.can_be_probed() {
                step.effects.push(session.probe(Probe::YoungerChild));
                asked.insert(*sid);
            }
        }
        asked
    }

    fn check_unknown(&mut self, step: &mut Step) {
        step.mark(Mark::SuspendUnknown);
        let delay = self.state.settings.waiting_delay;
        let Some(plan) = &mut self.state.machine.plan else { return };
        plan.checks = plan.checks.saturating_add(1);
        if plan.checks >= CHECKS_MAX {
            self.state.machine.owed = false;
            return self.cancel_plan(true, step);
        }
        plan.stage = Stage::Delay;
        plan.due = step.now.mono.after(delay);
    }

    /// A look at a waiting session was answered: did it go on?
    pub(crate) fn lock_probe_answered(&mut self, sid: Sid, answer: &ProbeAnswer, step: &mut Step) {
        let now = step.now.mono;
        let mut unknown = false;
        self.on_session(sid, step, |session, _, step| {
            let Some(lock) = session.lock.as_mut().filter(|l| l.may_resolve_silently()) else {
                return step.recorded(Mark::NotDue);
            };
            let moved = Session::cpu_moved(lock.cpu, answer.tree_cpu_ms, now);
            if let Known::Is(ms) = answer.tree_cpu_ms {
                lock.cpu = Some((ms, now));
            }
            let goes_on = answer.younger_child == Known::Is(true) || moved == Known::Is(true);
            unknown = !goes_on && answer.younger_child == Known::Unknown;
            if goes_on && answer.stopped != Known::Is(true) {
                session.lock = None;
                session.decided = Some(When::now(&step.now, step.number));
                step.mark(Mark::LockClearedByProcess);
                session.evidence.push(
                    &step.now,
                    None,
                    Source::Process,
                    "probe",
                    "its processes work: the person answered",
                );
                session.refresh(&step.now);
                step.disturbed = true;
            }
        });
        let Some(plan) = &mut self.state.machine.plan else { return };
        let Stage::Check(pending) = &mut plan.stage else { return };
        if unknown {
            return self.check_unknown(step);
        }
        if pending.remove(&sid) && pending.is_empty() && !step.disturbed {
            self.ask_or_go_on(step);
        }
    }

    fn ask_or_go_on(&mut self, step: &mut Step) {
        if !self.could_suspend() {
            return self.cancel_plan(true, step);
        }
        let wait = self.state.settings.ask_timeout;
        let ask = self.state.settings.ask_before_sleep;
        let Some(plan) = &mut self.state.machine.plan else { return };
        let mut asked: Vec<(Sid, SessionKey, Incarnation)> = Vec::new();
        for member in plan.members.iter_mut().filter(|m| ask && !m.asked && m.hook.is_some()) {
            member.asked = true;
            asked.push((member.sid, member.key.clone(), member.incarnation));
        }
        let open = plan.members.iter().any(|m| m.asked && m.hook.is_some());
        if !open {
            return self.announce_suspend(step);
        }
        plan.stage = Stage::Ask;
        plan.due = step.now.mono.after(wait);
        step.mark(Mark::SuspendAsked);
        for (sid, key, incarnation) in asked {
            self.on_session(sid, step, |session, _, step| session.ask(step));
            step.effect(Effect::AskBeforeSleep { key, incarnation });
        }
    }

    /// The time for answers is over.
    fn close_questions(&mut self, step: &mut Step) {
        let members = self.state.machine.plan.as_ref().map(|p| p.members.clone()).unwrap_or_default();
        for member in &members {
            self.withdraw(member, step);
        }
        if let Some(plan) = &mut self.state.machine.plan {
            for member in &mut plan.members {
                member.hook = None;
            }
        }
    }

    fn announce_suspend(&mut self, step: &mut Step) {
        if !self.could_suspend() {
            return self.cancel_plan(true, step);
        }
        let webhooks = self.state.settings.webhooks;
        let Some(plan) = &mut self.state.machine.plan else { return };
        if !webhooks || plan.announced || plan.reason == SuspendReason::Silent {
            return self.play_or_request(step);
        }
        plan.announced = true;
        plan.stage = Stage::Webhook;
        plan.due = step.now.mono.after(WEBHOOK_WAIT);
        let reason = plan.reason;
        step.mark(Mark::SuspendWebhook);
        step.effect(Effect::Webhook { event: Webhook::PreSuspend { reason } });
    }

    fn play_or_request(&mut self, step: &mut Step) {
        let sound = self.state.settings.sound.clone();
        let Some(plan) = &mut self.state.machine.plan else { return };
        match sound {
            Some(name) => {
                plan.stage = Stage::Sound;
                plan.due = step.now.mono.after(SOUND_WAIT);
                step.mark(Mark::SuspendSound);
                step.effect(Effect::PlaySound { name });
            }
            None => self.request(step),
        }
    }

    fn request(&mut self, step: &mut Step) {
        if !self.could_suspend() {
            return self.cancel_plan(true, step);
        }
        let mode = self.state.settings.suspend_mode;
        let Some(plan) = &mut self.state.machine.plan else { return };
        plan.stage = Stage::Request;
        plan.due = step.now.mono.after(REQUEST_WAIT);
        let reason = plan.reason;
        step.mark(Mark::SuspendRequested);
        step.effect(Effect::RequestSuspend { mode, reason });
    }

    pub(crate) fn suspend_reported(&mut self, accepted: bool, message: &str, step: &mut Step) {
        let mode = self.state.settings.suspend_mode;
        let Some(plan) = self.state.machine.plan.as_mut().filter(|p| p.stage == Stage::Request) else {
            return step.recorded(Mark::NotDue);
        };
        let reason = plan.reason;
        let message = crate::session::cut(message, 500);
        step.effect(Effect::RecordSuspend { mode, reason, success: accepted, message });
        let machine = &mut self.state.machine;
        if accepted {
            step.mark(Mark::SuspendAccepted);
            machine.owed = false;
            machine.failures = 0;
            return self.finish_plan(step);
        }
        step.mark(Mark::SuspendFailed);
        machine.failures = machine.failures.saturating_add(1);
        let failures = machine.failures;
        if failures >= REQUESTS_MAX {
            machine.owed = false;
            return self.cancel_plan(true, step);
        }
        if let Some(plan) = &mut machine.plan {
            plan.stage = Stage::Delay;
            plan.due = step.now.mono.after(BACK_OFF.saturating_mul(1 << failures.min(8)));
        }
    }

    /// The plan did what it was for.
    fn finish_plan(&mut self, step: &mut Step) {
        self.close_questions(step);
        self.state.machine.plan = None;
        step.no_plan = true;
    }

    pub(crate) fn webhook_reported(&mut self, step: &mut Step) {
        if self.state.machine.plan.as_ref().is_some_and(|p| p.stage == Stage::Webhook) {
            return self.play_or_request(step);
        }
        step.recorded(Mark::NotDue);
    }

    pub(crate) fn sound_ended(&mut self, step: &mut Step) {
        if self.state.machine.plan.as_ref().is_some_and(|p| p.stage == Stage::Sound) {
            return self.request(step);
        }
        step.recorded(Mark::NotDue);
    }

    /// A close that our hold suppressed makes a sleep owed; opening forgives it.
    pub(crate) fn lid_changed(&mut self, closed: Known<bool>, step: &mut Step) {
        let before = self.state.machine.lid_closed;
        self.state.machine.lid_closed = closed;
        match (before, closed) {
            (_, Known::Is(false)) => self.forgive(step),
            (Known::Is(false), Known::Is(true)) => {
                let machine = &mut self.state.machine;
                let refused = machine.refused.iter().any(|r| r.kind.contains("lid"));
                if machine.wanted && !refused {
                    step.mark(Mark::Owed);
                    machine.owed = true;
                    machine.failures = 0;
                }
                // Answers that an agent does not report are looked for now.
                self.probe_waiting(step);
            }
            (_, Known::Is(true) | Known::Unknown) => {}
        }
    }

    pub(crate) fn forgive(&mut self, step: &mut Step) {
        if std::mem::take(&mut self.state.machine.owed) {
            step.mark(Mark::DebtForgiven);
        }
    }

    /// Ours or not. What waits is settled at the resume, since nobody can be told in time.
    pub(crate) fn sleep_began(&mut self, step: &mut Step) {
        let Some(plan) = self.state.machine.plan.as_mut().filter(|p| p.stage != Stage::Request) else {
            return;
        };
        plan.stage = Stage::Elsewhere;
        plan.due = step.now.mono.after(REQUEST_WAIT);
        step.mark(Mark::SleptElsewhere);
    }

    /// A sleep ends every sequence: questions are closed, hooks let go, whoever stopped is told of.
    pub(crate) fn machine_woke(&mut self, step: &mut Step) {
        self.forgive(step);
        self.state.machine.failures = 0;
        step.no_plan = true;
        let Some(plan) = &self.state.machine.plan else { return };
        if plan.stage == Stage::Request {
            let (mode, reason) = (self.state.settings.suspend_mode, plan.reason);
            step.mark(Mark::SuspendAccepted);
            let message = "the machine slept".to_owned();
            step.effect(Effect::RecordSuspend { mode, reason, success: true, message });
            return self.finish_plan(step);
        }
        step.mark(Mark::SleptElsewhere);
        self.cancel_plan(true, step);
    }

    /// A person answered the question before the sleep.
    pub(crate) fn reply_received(
        &mut self,
        key: &SessionKey,
        incarnation: Incarnation,
        message: Option<&str>,
        step: &mut Step,
    ) {
        step.resolved = Some((key.clone(), incarnation));
        let sid = self.resolve(key, incarnation);
        let plan = self.state.machine.plan.as_mut();
        let member = plan.and_then(|p| {
            p.members.iter_mut().find(|m| Some(m.sid) == sid && m.incarnation == incarnation && m.asked)
        });
        let Some(member) = member.filter(|m| m.hook.is_some()) else { return step.recorded(Mark::NotDue) };
        let (sid, hook) = (member.sid, member.hook.take());
        match message {
            Some(message) => {
                step.mark(Mark::PathContinuation);
                // A continued turn tells nobody that it ended.
                member.post = false;
                if let Some(delivery) = hook {
                    let message = message.to_owned();
                    self.answer_hook(delivery, HookAnswer::Continue { message }, step);
                }
                self.on_session(sid, step, |session, _, step| session.continued(step));
                self.cancel_plan(true, step);
            }
            None => {
                let member = member.clone();
                if let Some(delivery) = hook {
                    self.answer_hook(delivery, HookAnswer::Nothing, step);
                }
                self.withdraw(&member, step);
                self.questions_left(step);
            }
        }
    }

    /// Goes on when nobody is asked any more.
    fn questions_left(&mut self, step: &mut Step) {
        let Some(plan) = &self.state.machine.plan else { return };
        if plan.stage == Stage::Ask && !plan.members.iter().any(|m| m.asked && m.hook.is_some()) {
            self.announce_suspend(step);
        }
    }

    /// The agent took its hook back: its question is closed, and the plan begins its delay again.
    pub(crate) fn hook_gone(&mut self, delivery: DeliveryId, step: &mut Step) {
        if self.drop_hook(delivery).is_none() {
            return step.recorded(Mark::NotDue);
        }
        step.mark(Mark::HookGone);
        self.forget_hook(delivery, step);
        let delay = self.state.settings.post_stop_delay;
        if let Some(plan) = self.state.machine.plan.as_mut().filter(|p| p.stage == Stage::Ask) {
            plan.stage = Stage::Delay;
            plan.due = step.now.mono.after(delay);
        }
    }

    pub(crate) fn hook_timed_out(&mut self, delivery: DeliveryId, step: &mut Step) {
        self.answer_hook(delivery, HookAnswer::Nothing, step);
        self.forget_hook(delivery, step);
        self.questions_left(step);
    }

    /// Its number may be given to another session: nothing may point to it any more.
    pub(crate) fn forget_on_machine(&mut self, sid: Sid, step: &mut Step) {
        let hooks: Vec<DeliveryId> = self
            .state
            .machine
            .hooks
            .iter()
            .filter(|(_, h)| h.sid == sid)
            .map(|(delivery, _)| *delivery)
            .collect();
        for delivery in hooks {
            self.answer_hook(delivery, HookAnswer::Nothing, step);
        }
        if let Some(plan) = &mut self.state.machine.plan {
            plan.members.retain(|m| m.sid != sid);
            if let Stage::Check(pending) = &mut plan.stage {
                pending.remove(&sid);
            }
        }
    }

    fn forget_hook(&mut self, delivery: DeliveryId, step: &mut Step) {
        let Some(plan) = &mut self.state.machine.plan else { return };
        let Some(member) = plan.members.iter_mut().find(|m| m.hook == Some(delivery)) else { return };
        member.hook = None;
        let member = member.clone();
        self.withdraw(&member, step);
    }
}

impl Session {
    /// The question before the sleep: shown as waiting, protects nothing.
    fn ask(&mut self, step: &mut Step) {
        if self.phase != Phase::Idle || self.can_ask == Some(false) {
            return;
        }
        let when = When::now(&step.now, step.number);
        self.lock = Some(Lock::new(
            ASK_BEFORE_SLEEP,
            LockSubject::Session,
            Thread::Main,
            when,
            step.now.mono,
            &self.work,
        ));
        step.mark(Mark::Locked);
        self.evidence.push(
            &step.now,
            None,
            Source::Timer,
            ASK_BEFORE_SLEEP,
            "asked before the machine sleeps",
        );
    }

    /// A person's reply goes back to the agent: its turn goes on.
    fn continued(&mut self, step: &mut Step) {
        if self.is_ended() {
            return;
        }
        let when = When::now(&step.now, step.number);
        self.lock = None;
        self.deferred = None;
        self.drained = None;
        if self.phase == Phase::Idle {
            step.mark(Mark::IdleToWorking);
        }
        self.phase = Phase::Working;
        self.opened = Some(when);
        self.decided = Some(when);
        self.refresh(&step.now);
        self.evidence.push(&step.now, None, Source::User, "reply", "a person's reply resumes the turn");
    }
}
