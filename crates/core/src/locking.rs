//! How a session comes to wait for a person, and how it goes on.

use crate::{
    apply::{Said, TurnRelation, name_of},
    lock::{self, ASK_BEFORE_SLEEP, Cleared, Lock},
    marks::Mark,
    ordering::advance,
    session::{Phase, Session},
    signal::{AgentState, LockSubject, Thread},
    step::Step,
};

impl Session {
    pub(crate) fn clear_lock_by_work(
        &mut self,
        said: Said<'_>,
        work: lock::Work<'_>,
        step: &mut Step,
    ) -> bool {
        let Some(lock) = &self.lock else { return false };
        if self.asks_before_sleep() || !said.when.later_than(&lock.when) {
            return false;
        }
        let (mark, rule) = match lock.cleared_by(work, &said.signal.thread) {
            Some(Cleared::BySubject) => (Mark::LockClearedBySubject, "what it waited for is resolved"),
            Some(Cleared::ByWork) => (Mark::LockClearedByWork, "work later than the lock"),
            None => {
                step.mark(Mark::LockKept);
                return false;
            }
        };
        self.lock = None;
        step.mark(mark);
        advance(&mut self.decided, said.when);
        self.note(said, step, name_of(&said.signal.body), rule);
        true
    }

    pub(crate) fn soft_locked(
        &mut self,
        said: Said<'_>,
        reason: &str,
        subject: &LockSubject,
        step: &mut Step,
    ) {
        if self.can_ask == Some(false) {
            return self.ignored(said, step, Mark::LockRefused, "nobody can be asked in this mode");
        }
        let asks = reason == ASK_BEFORE_SLEEP;
        match self.phase {
            Phase::Ended(_) => return self.ignored(said, step, Mark::LockRefused, "the session is over"),
            Phase::Idle if !asks => return self.ignored(said, step, Mark::LockRefused, "no turn runs"),
            Phase::Idle => {
                if !self.after_halt(said) {
                    return self.ignored(
                        said,
                        step,
                        Mark::EarlierIgnored,
                        "it happened before the latest stop",
                    );
                }
            }
            Phase::Working | Phase::Background => {
                let relation = self.relation(said);
                if relation == TurnRelation::Earlier {
                    return self.ignored(said, step, Mark::EarlierTurn, "of an earlier turn");
                }
                if self.aborted(said) && said.main() {
                    return self.ignored(said, step, Mark::AbortedStaysShut, "its turn was interrupted");
                }
                let busy = match &self.agent_state {
                    Some((AgentState::Busy, when)) => Some(when),
                    _ => None,
                };
                let spoke = self.spoke.as_ref().filter(|_| said.main());
                if !self.after_halt(said)
                    || !said.when.after(self.opened.as_ref())
                    || !said.when.after(spoke)
                    || !said.when.after(busy)
                {
                    return self.ignored(said, step, Mark::EarlierIgnored, "work was done since it happened");
                }
                if relation == TurnRelation::Newer && said.main() {
                    self.take_turn(said, step);
                }
            }
        }
        self.set_lock(said, reason, subject.clone(), step);
    }

    pub(crate) fn set_lock(&mut self, said: Said<'_>, reason: &str, subject: LockSubject, step: &mut Step) {
        let thread = said.signal.thread.clone();
        let lock = Lock::new(reason, subject, thread, said.when, step.now.mono, &self.work);
        let rule = format!("waits for a person: {}", lock.reason);
        match &mut self.lock {
            Some(known) => known.merge(lock),
            None => self.lock = Some(lock),
        }
        step.mark(Mark::Locked);
        advance(&mut self.decided, said.when);
        self.note(said, step, "soft_lock", rule);
        self.heard(step);
    }

    pub(crate) fn lock_resolved(&mut self, said: Said<'_>, subject: &LockSubject, step: &mut Step) {
        let hit = self.lock.as_ref().is_some_and(|l| {
            said.when.later_than(&l.when) && !self.asks_before_sleep() && l.resolved_by(subject)
        });
        if !hit {
            return step.recorded(Mark::LockKept);
        }
        self.lock = None;
        step.mark(Mark::LockClearedBySubject);
        advance(&mut self.decided, said.when);
        self.note(said, step, "lock_resolved", "what it waited for is resolved");
        self.active_again(step);
    }

    pub(crate) fn clear_lock_by_subagent(&mut self, said: Said<'_>, id: &str, step: &mut Step) {
        let Some(lock) = &self.lock else { return };
        let its = lock.inactive
            || lock.subject == LockSubject::Subagent(id.to_owned())
            || lock.thread == Thread::Subagent(id.to_owned());
        if its && said.when.later_than(&lock.when) {
            self.lock = None;
            step.mark(Mark::LockClearedBySubject);
        }
    }
}
