//! The model's invariants as far as the core alone can break them, as a function over its state.

use serde::{Deserialize, Serialize};

use crate::{
    core::Core,
    identity::SessionKey,
    session::{Deferred, Phase, Session},
};

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Number of the invariant in the model, 0 for one of the core's own bookkeeping.
    pub invariant: u8,
    pub session: Option<SessionKey>,
    pub what: String,
}

impl Core {
    /// Checks the state between two inputs. Empty when all is well. Costs time in proportion to everything stored:
    /// for tests, simulation and `doctor`.
    #[must_use]
    pub fn check_invariants(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut fail = |invariant: u8, session: Option<&Session>, what: String| {
            found.push(Violation { invariant, session: session.map(|s| s.key.clone()), what });
        };
        let machine = &self.state.machine;
        let demand = self.demand();
        let wanted = self.armed() && (demand || machine.plan.is_some());
        if machine.wanted != wanted {
            fail(1, None, format!("the hold is wanted: {}, by the facts: {wanted}", machine.wanted));
        }
        if let Some(plan) = machine.plan.as_ref().filter(|p| !p.is_settling()) {
            if demand {
                fail(5, None, format!("a suspend is planned ({}) while there is demand", plan.describe()));
            }
            if !self.is_away() {
                fail(5, None, "a suspend is planned while the machine is not known to be away".to_owned());
            }
            if !machine.owed {
                fail(5, None, "a suspend is planned that nobody is owed".to_owned());
            }
        }
        for (delivery, hook) in &machine.hooks {
            if !self.index.hooks.contains(&(hook.until, *delivery)) {
                fail(8, None, format!("hook {delivery} waits without a deadline"));
            }
        }
        if self.next_deadline().is_some() && !self.may_have_deadlines() {
            fail(11, None, "a timer is armed though nothing runs".to_owned());
        }
        for (sid, session) in self.state.sessions.iter() {
            for (invariant, what) in session.violations() {
                fail(invariant, Some(session), what);
            }
            // Early is fine for the two that are armed lazily, late never.
            let dues = session.dues(&self.state.settings);
            if session.armed != dues.armed_for(&session.armed)
                || session.armed.inactivity.is_some() != dues.inactivity.is_some()
                || session.armed.work_max.is_some() != dues.work_max.is_some()
            {
                fail(0, Some(session), "its deadlines are not those of its facts".to_owned());
            }
            if session.shown != session.state() {
                fail(0, Some(session), format!("told {:?}, is {:?}", session.shown, session.state()));
            }
            if self.index.protecting.contains(&sid) != session.protects() {
                fail(0, Some(session), "the set of protecting sessions is wrong".to_owned());
            }
            if self.index.active.contains(&sid) != session.is_active() {
                fail(0, Some(session), "the set of active sessions is wrong".to_owned());
            }
        }
        let rebuilt = Self::rebuild(self.state.clone());
        if rebuilt.index != self.index {
            fail(0, None, "the indexes are not those of the sessions".to_owned());
        }
        found
    }

    fn may_have_deadlines(&self) -> bool {
        let machine = &self.state.machine;
        machine.cleanup.is_some()
            || machine.wanted
            || machine.plan.is_some()
            || !machine.hooks.is_empty()
            || !machine.leases.is_empty()
            || !self.index.active.is_empty()
            || machine.observers > 0
    }
}

impl Session {
    fn violations(&self) -> Vec<(u8, String)> {
        let mut found = Vec::new();
        match self.phase {
            Phase::Ended(_) => {
                if self.protects() || self.lock.is_some() || self.deferred.is_some() {
                    found.push((3, "it is over and still does something".to_owned()));
                }
                if !self.processes.is_empty() || !self.work.live.is_empty() {
                    found.push((3, "it is over and still has processes or work".to_owned()));
                }
                if self.ended.is_none() {
                    found.push((3, "it is over without a time".to_owned()));
                }
            }
            Phase::Background => {
                let empty = !self.work.any_defers();
                if empty != self.drained.is_some() {
                    found.push((7, "background work and the grace after it disagree".to_owned()));
                }
                if self.deferred.is_none() {
                    found.push((7, "in the background without a deferred stop".to_owned()));
                }
            }
            Phase::Working => {
                if matches!(self.deferred, Some(Deferred::End(_))) && self.compaction.is_none() {
                    found.push((3, "an end is deferred while a turn runs".to_owned()));
                }
                if self.drained.is_some() {
                    found.push((7, "the grace after background work runs while a turn runs".to_owned()));
                }
            }
            Phase::Idle => {
                if self.work.any_defers() {
                    found.push((7, "idle with live work".to_owned()));
                }
                if self.lock.is_some() && !self.asks_before_sleep() {
                    found.push((
                        13,
                        "idle and locked by something else than the question before a sleep".to_owned(),
                    ));
                }
                if self.protects() || self.drained.is_some() || self.deferred.is_some() {
                    found.push((1, "idle and still protecting".to_owned()));
                }
            }
        }
        if self.can_ask == Some(false) && self.lock.as_ref().is_some_and(|l| !l.inactive) {
            found.push((13, "locked though nobody can be asked".to_owned()));
        }
        if !self.is_ended() && self.unwatched().is_none() && self.processes.is_empty() {
            found.push((10, "neither watched nor flagged".to_owned()));
        }
        found
    }
}
