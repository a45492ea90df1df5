//! The machine's side: leases, lid and displays, the keep-awake hold recomputed from facts, held hooks.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::{
    core::Core,
    deadline::DeadlineKind,
    effect::{Effect, HookAnswer},
    identity::{DeliveryId, Incarnation, SessionKey},
    index::Index,
    input::{InputBody, Known, Refused},
    lease::Lease,
    marks::Mark,
    session::cut,
    settings::KeepAwake,
    step::Step,
    suspend::Plan,
    table::Sid,
    time::{Mono, Wall},
    view::{DemandView, MachineView},
};

/// Hooks that may wait at once. Further ones are answered at once with nothing.
pub const HOOKS_MAX: usize = 1024;
/// Held kinds and refusals kept of a report. Further ones are dropped.
pub const REPORT_MAX: usize = 32;
/// While the hold is wanted it is asked for again so often, so that a lost one comes back.
pub const HOLD_VERIFY_EVERY: std::time::Duration = std::time::Duration::from_secs(300);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitingHook {
    pub(crate) sid: Sid,
    pub(crate) incarnation: Incarnation,
    pub(crate) until: Mono,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) leases: BTreeMap<String, Lease>,
    pub(crate) lid_closed: Known<bool>,
    pub(crate) displays: Known<u32>,
    pub(crate) on_battery: Known<bool>,
    pub(crate) battery_percent: Known<u8>,
    pub(crate) wanted: bool,
    pub(crate) wanted_since: Wall,
    pub(crate) held: Vec<String>,
    pub(crate) refused: Vec<Refused>,
    pub(crate) verify: Option<Mono>,
    /// A lid close was suppressed by our hold, and no sleep has followed it.
    pub(crate) owed: bool,
    pub(crate) plan: Option<Plan>,
    /// Requests that failed since the last debt.
    pub(crate) failures: u32,
    pub(crate) hooks: BTreeMap<DeliveryId, WaitingHook>,
    pub(crate) observers: u32,
    pub(crate) idle_since: Option<Mono>,
    pub(crate) cleanup: Option<Mono>,
    pub(crate) exit_asked: bool,
}

impl Machine {
    pub(crate) fn next_deadline(&self) -> Option<(Mono, DeadlineKind)> {
        let plan = self.plan.as_ref().map(Plan::deadline);
        let verify = self.verify.map(|at| (at, DeadlineKind::HoldVerify));
        let cleanup = self.cleanup.map(|at| (at, DeadlineKind::Cleanup));
        [plan, verify, cleanup].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    pub(crate) fn index(&self, index: &mut Index) {
        index.leases = self.leases.iter().map(|(id, l)| (l.until, id.clone())).collect();
        index.hooks = self.hooks.iter().map(|(delivery, h)| (h.until, *delivery)).collect();
    }
}

impl Core {
    pub(crate) fn armed(&self) -> bool {
        self.state.settings.keep_awake != KeepAwake::Off
    }

    /// A reason to keep the machine awake, whoever has it.
    pub(crate) fn demand(&self) -> bool {
        self.state.settings.keep_awake == KeepAwake::On
            || !self.index.protecting.is_empty()
            || !self.state.machine.leases.is_empty()
    }

    /// The lid is known to be shut and no external display is on, for certain.
    pub(crate) fn is_away(&self) -> bool {
        self.state.machine.lid_closed == Known::Is(true) && self.known_external() == Known::Is(false)
    }

    pub(crate) fn machine_input(&mut self, body: &InputBody, step: &mut Step) {
        match body {
            InputBody::LeaseTaken { id, owner, reason, length } => {
                self.lease_taken(id, owner, reason, *length, step);
            }
            InputBody::LeaseReleased { id } => self.lease_ended(id, step),
            InputBody::Lid { state } => self.lid_changed(*state, step),
            InputBody::Displays { external_on } => {
                self.state.machine.displays = *external_on;
                if matches!(external_on, Known::Is(n) if *n > 0) {
                    self.forgive(step);
                }
            }
            InputBody::Power { on_battery, percent } => {
                self.state.machine.on_battery = *on_battery;
                self.state.machine.battery_percent = *percent;
            }
            InputBody::SleepBegan => self.sleep_began(step),
            InputBody::HoldReported { held, refused } => {
                let machine = &mut self.state.machine;
                machine.held = held.iter().take(REPORT_MAX).map(|h| cut(h, 100)).collect();
                machine.refused = refused
                    .iter()
                    .take(REPORT_MAX)
                    .map(|r| Refused { kind: cut(&r.kind, 100), why: cut(&r.why, 500) })
                    .collect();
            }
            InputBody::SuspendReported { accepted, message } => {
                self.suspend_reported(*accepted, message, step);
            }
            InputBody::WebhookReported { accepted: _ } => self.webhook_reported(step),
            InputBody::SoundEnded => self.sound_ended(step),
            InputBody::ReplyReceived { key, incarnation, message } => {
                self.reply_received(key, *incarnation, message.as_deref(), step);
            }
            InputBody::HookGone { delivery } => self.hook_gone(*delivery, step),
            InputBody::Observers { count } => self.state.machine.observers = *count,
            InputBody::Signal { .. }
            | InputBody::DeadlineReached { .. }
            | InputBody::SettingsChanged { .. }
            | InputBody::SleepEnded { .. }
            | InputBody::WatchReported { .. }
            | InputBody::ProbeAnswered { .. }
            | InputBody::RuntimeStarted { .. } => {}
        }
    }

    pub(crate) fn machine_deadline(&mut self, kind: &DeadlineKind, step: &mut Step) {
        let now = step.now.mono;
        match kind {
            DeadlineKind::HeldHook { delivery } => {
                if self.state.machine.hooks.get(delivery).is_some_and(|h| h.until <= now) {
                    step.mark(Mark::DueHeldHook);
                    return self.hook_timed_out(*delivery, step);
                }
            }
            DeadlineKind::LeaseExpiry { id } => {
                if self.state.machine.leases.get(id).is_some_and(|l| l.until <= now) {
                    step.mark(Mark::DueLeaseExpiry);
                    return self.lease_ended(id, step);
                }
            }
            DeadlineKind::HoldVerify => {
                if self.state.machine.verify.is_some_and(|at| at <= now) {
                    step.mark(Mark::DueHoldVerify);
                    self.state.machine.verify = Some(now.after(HOLD_VERIFY_EVERY));
                    let why = self.why_wanted();
                    return step.effect(Effect::SetHold { wanted: true, why });
                }
            }
            DeadlineKind::Cleanup => {
                if self.state.machine.cleanup.is_some_and(|at| at <= now) {
                    return self.cleanup_due(step);
                }
            }
            DeadlineKind::SuspendDelay
            | DeadlineKind::AskBeforeSleep
            | DeadlineKind::Webhook
            | DeadlineKind::Sound
            | DeadlineKind::SuspendRequest => {
                let due = self.state.machine.plan.as_ref().map(Plan::deadline);
                if due.is_some_and(|(at, armed)| at <= now && armed == *kind) {
                    return self.plan_due(kind, step);
                }
            }
            DeadlineKind::Inactivity
            | DeadlineKind::WakeGrace { .. }
            | DeadlineKind::WorkMax { .. }
            | DeadlineKind::BackgroundQuiet { .. }
            | DeadlineKind::Compaction { .. } => {}
        }
        step.recorded(Mark::NotDue);
    }

    /// What follows for the machine from everything an input changed.
    pub(crate) fn conclude(&mut self, step: &mut Step) {
        self.follow_plan(step);
        self.follow_hold(step);
        self.follow_lifetime(step);
    }

    /// The hold is wanted if and only if it is armed and somebody needs it; the effect goes out when that changes.
    fn follow_hold(&mut self, step: &mut Step) {
        let wanted = self.armed() && (self.demand() || self.state.machine.plan.is_some());
        if wanted == self.state.machine.wanted {
            return;
        }
        let why = if wanted { self.why_wanted() } else { self.why_not() };
        let machine = &mut self.state.machine;
        machine.wanted = wanted;
        machine.wanted_since = step.now.wall;
        machine.verify = wanted.then(|| step.now.mono.after(HOLD_VERIFY_EVERY));
        if wanted {
            step.mark(Mark::HoldTaken);
            step.effect(Effect::BackUpLidAction);
            step.effect(Effect::ChangeLidAction);
            step.effect(Effect::SetHold { wanted, why });
        } else {
            step.mark(Mark::HoldReleased);
            step.effect(Effect::RestoreLidAction);
            step.effect(Effect::SetHold { wanted, why });
        }
    }

    /// After a restart of the shell: the hold is gone and hook connections are broken.
    pub(crate) fn machine_restarted(&mut self, shift: &impl Fn(Mono) -> Mono, step: &mut Step) {
        let machine = &mut self.state.machine;
        machine.held.clear();
        machine.refused.clear();
        machine.observers = 0;
        machine.exit_asked = false;
        machine.verify = machine.verify.map(shift);
        machine.idle_since = machine.idle_since.map(shift);
        machine.cleanup = machine.cleanup.map(shift);
        for lease in machine.leases.values_mut() {
            lease.until = shift(lease.until);
        }
        for hook in machine.hooks.values_mut() {
            hook.until = shift(hook.until);
        }
        if let Some(plan) = &mut machine.plan {
            plan.due = shift(plan.due);
        }
        machine.index(&mut self.index);
        let broken: Vec<DeliveryId> = self.state.machine.hooks.keys().copied().collect();
        for delivery in broken {
            self.hook_gone(delivery, step);
        }
        if self.state.machine.wanted {
            let why = self.why_wanted();
            step.effect(Effect::BackUpLidAction);
            step.effect(Effect::ChangeLidAction);
            step.effect(Effect::SetHold { wanted: true, why });
        } else {
            step.effect(Effect::RestoreLidAction);
        }
    }

    /// The hook that waits for what was just decided about its session; `true` when it is held.
    pub(crate) fn take_hook(&mut self, sid: Sid, step: &mut Step) -> bool {
        let Some(delivery) = step.hook.take() else { return false };
        let settings = &self.state.settings;
        let asks = settings.ask_before_sleep
            && settings.suspend
            && self.armed()
            && step.paths.iter().any(|(s, p)| *s == sid && p.can_reply)
            && self.could_suspend();
        if !asks || self.state.machine.hooks.len() >= HOOKS_MAX {
            return false;
        }
        let Some(session) = self.state.sessions.get(sid) else { return false };
        let until =
            step.now.mono.after(settings.post_stop_delay).after(settings.ask_timeout).after(HOOK_MARGIN);
        let hook = WaitingHook { sid, incarnation: session.incarnation, until };
        self.state.machine.hooks.insert(delivery, hook);
        self.index.hooks.insert((until, delivery));
        step.mark(Mark::HookHeld);
        step.effect(Effect::HoldHook { delivery, until });
        true
    }

    /// Answers a hook that waits, if it still does.
    pub(crate) fn answer_hook(&mut self, delivery: DeliveryId, answer: HookAnswer, step: &mut Step) {
        if self.drop_hook(delivery).is_some() {
            step.mark(Mark::HookAnswered);
            step.effect(Effect::AnswerHook { delivery, answer });
        }
    }

    pub(crate) fn drop_hook(&mut self, delivery: DeliveryId) -> Option<WaitingHook> {
        let hook = self.state.machine.hooks.remove(&delivery)?;
        self.index.hooks.remove(&(hook.until, delivery));
        Some(hook)
    }

    fn why_wanted(&self) -> String {
        let machine = &self.state.machine;
        let protecting = self.index.protecting.len();
        match self.protecting().next() {
            Some(session) if protecting == 1 => format!("{}: {}", session.key, session.protects_why()),
            Some(session) => {
                format!("{protecting} sessions, among them {}: {}", session.key, session.protects_why())
            }
            None => match machine.leases.iter().next() {
                Some((_, lease)) => format!("held by {}: {}", lease.owner, lease.reason),
                None if self.state.settings.keep_awake == KeepAwake::On => "keep_awake is on".to_owned(),
                None => match &machine.plan {
                    Some(plan) => format!("before a suspend: {}", plan.describe()),
                    None => "nothing".to_owned(),
                },
            },
        }
    }

    fn why_not(&self) -> String {
        if !self.armed() {
            return "keep_awake is off".to_owned();
        }
        let waiting = self.index.active.len();
        if waiting > 0 {
            return format!("{waiting} active, all waiting for a person");
        }
        "no session works".to_owned()
    }

    pub(crate) fn why_line(&self) -> String {
        let machine = &self.state.machine;
        if !machine.wanted {
            return format!("not kept awake: {}", self.why_not());
        }
        let refused: Vec<&str> = machine.refused.iter().map(|r| r.kind.as_str()).collect();
        let why = self.why_wanted();
        match (machine.held.is_empty(), refused.is_empty()) {
            (false, true) => format!("kept awake: {why}"),
            (false, false) => format!("kept awake ({} refused): {why}", refused.join(", ")),
            (true, false) => format!("not kept awake, the system refused {}: {why}", refused.join(", ")),
            (true, true) => format!("to be kept awake, not confirmed by the system yet: {why}"),
        }
    }

    pub(crate) fn machine_view(&self) -> MachineView {
        let machine = &self.state.machine;
        let sessions = self.protecting().map(|s| DemandView {
            session: Some(s.key.clone()),
            lease: None,
            why: s.protects_why(),
            since: s.since,
        });
        let leases = machine.leases.iter().map(|(id, lease)| DemandView {
            session: None,
            lease: Some(id.clone()),
            why: format!("{}: {}", lease.owner, lease.reason),
            since: lease.since,
        });
        let mut reasons: Vec<DemandView> = sessions.chain(leases).collect();
        if self.state.settings.keep_awake == KeepAwake::On {
            reasons.push(DemandView {
                session: None,
                lease: None,
                why: "keep_awake is on".to_owned(),
                since: machine.wanted_since,
            });
        }
        MachineView {
            awake: !machine.held.is_empty(),
            armed: self.armed(),
            wanted: machine.wanted,
            held: machine.held.clone(),
            refused: machine.refused.clone(),
            reasons,
            lid_closed: machine.lid_closed,
            external_displays: machine.displays,
            on_battery: machine.on_battery,
            battery_percent: machine.battery_percent,
            suspend: machine.plan.as_ref().map(Plan::describe),
        }
    }

    pub(crate) fn resolve(&self, key: &SessionKey, incarnation: Incarnation) -> Option<Sid> {
        let sid = self.state.sessions.find(key)?;
        self.state.sessions.get(sid).is_some_and(|s| s.incarnation == incarnation).then_some(sid)
    }
}

/// Beyond the delay and the wait for an answer, for the steps between (seconds, chosen).
const HOOK_MARGIN: std::time::Duration = std::time::Duration::from_secs(60);
