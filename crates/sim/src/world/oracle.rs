//! What must hold whatever happens, kept apart from the core's own invariants: counted from the outside.

use std::collections::{BTreeMap, BTreeSet};

use watchkeeper_core::{
    Core, DeliveryId, Effect, Incarnation, Mono, SessionKey, effect::Webhook, view::ShownState,
};

/// A hook that was told to wait is answered at the latest so long after its bound; deadlines fire to the millisecond here.
const HOOK_GRACE_NS: u64 = 1_000_000;

type Life = (SessionKey, Incarnation);

#[derive(Debug, Default)]
pub(super) struct Oracle {
    ends: BTreeMap<Life, u32>,
    /// Turns whose end was announced, until the session is seen to work again: at most one PostSessionEnd each. A turn that
    /// only the agent's own state tells of has no id.
    announced: BTreeSet<(Life, u32)>,
    /// The newest turn that was heard of, by session.
    turns: BTreeMap<SessionKey, u32>,
    announced_suspends: u32,
    /// Hooks that wait, until when.
    pub(super) held: BTreeMap<DeliveryId, Mono>,
    answered: BTreeSet<DeliveryId>,
    pub(super) problems: Vec<String>,
}

/// What the world knows at the moment of an effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Truth {
    pub(super) lid_closed: Option<bool>,
    pub(super) displays: Option<u32>,
}

impl Oracle {
    pub(super) fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }

    /// Looks at an effect before it is carried out.
    pub(super) fn effect(&mut self, effect: &Effect, truth: Truth, core: &Core) {
        match effect {
            Effect::Transitioned { key, incarnation, to, .. } => {
                let life = (key.clone(), *incarnation);
                if *to == ShownState::Working {
                    self.announced.retain(|(announced, _)| *announced != life);
                }
                if *to == ShownState::Ended {
                    let ends = self.ends.entry(life).or_default();
                    *ends += 1;
                    if *ends > 1 {
                        self.problem(format!("{key} #{} ended twice", incarnation.0));
                    }
                }
            }
            Effect::Webhook { event: Webhook::PostSessionEnd { key, incarnation } } => {
                let turn = self.turns.get(key).copied().unwrap_or(0);
                if !self.announced.insert(((key.clone(), *incarnation), turn)) {
                    self.problem(format!("{key} #{}: two PostSessionEnd in turn {turn}", incarnation.0));
                }
            }
            Effect::Webhook { event: Webhook::PreSuspend { .. } } => {
                self.announced_suspends += 1;
                if self.announced_suspends > 1 {
                    self.problem("two PreSuspend for one suspend");
                }
            }
            Effect::Webhook { event: Webhook::Canceled } => self.announced_suspends = 0,
            Effect::RequestSuspend { .. } => {
                self.announced_suspends = 0;
                if truth.lid_closed != Some(true) || truth.displays != Some(0) {
                    self.problem(format!("a suspend was requested with {truth:?}"));
                }
                if !core.machine().reasons.is_empty() {
                    self.problem(format!("a suspend was requested while {}", core.why()));
                }
            }
            Effect::HoldHook { delivery, until } => {
                if self.answered.contains(delivery) {
                    self.problem(format!("hook {delivery} is held after its answer"));
                }
                self.held.insert(*delivery, *until);
            }
            Effect::AnswerHook { delivery, .. } => {
                self.held.remove(delivery);
                if !self.answered.insert(*delivery) {
                    self.problem(format!("hook {delivery} was answered twice"));
                }
            }
            Effect::SetHold { .. }
            | Effect::WatchProcess { .. }
            | Effect::UnwatchProcess { .. }
            | Effect::FollowTranscript { .. }
            | Effect::UnfollowTranscript { .. }
            | Effect::Probe { .. }
            | Effect::PlaySound { .. }
            | Effect::AskBeforeSleep { .. }
            | Effect::WithdrawQuestion { .. }
            | Effect::RecordSuspend { .. }
            | Effect::BackUpLidAction
            | Effect::ChangeLidAction
            | Effect::RestoreLidAction
            | Effect::ExitRuntime => {}
        }
    }

    /// A signal of this turn reached the core.
    pub(super) fn heard(&mut self, key: &SessionKey, turn: u32) {
        let newest = self.turns.entry(key.clone()).or_default();
        *newest = turn.max(*newest);
    }

    /// A suspend that was announced and then cut off by a crash or a sleep of the system's own may be announced again.
    pub(super) fn forget_announcement(&mut self) {
        self.announced_suspends = 0;
    }

    /// Hooks die with the daemon: their own deadlines answer them.
    pub(super) fn daemon_gone(&mut self) {
        self.held.clear();
    }

    pub(super) fn hook_gone(&mut self, delivery: DeliveryId) {
        self.held.remove(&delivery);
    }

    /// Looks at the core when nothing is left to be done at this moment.
    pub(super) fn at_rest(&mut self, core: &Core, now: Mono) {
        for violation in core.check_invariants() {
            self.problem(format!("invariant {}: {}", violation.invariant, violation.what));
        }
        let late: Vec<DeliveryId> = self
            .held
            .iter()
            .filter(|(_, until)| now.0 > until.0.saturating_add(HOOK_GRACE_NS))
            .map(|(delivery, _)| *delivery)
            .collect();
        for delivery in late {
            self.held.remove(&delivery);
            self.problem(format!("hook {delivery} was not answered by its bound"));
        }
    }
}
