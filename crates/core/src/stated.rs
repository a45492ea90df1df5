//! The agent's own live state: stronger than hooks and transcripts, and only when it is newer than they are.

use crate::{
    apply::Said,
    marks::Mark,
    ordering::advance,
    session::{Phase, Session},
    signal::{AgentState, LockSubject, WorkKind},
    step::{Rules, Step},
    turns::Halted,
    work::{STATED_SHELL, Work},
};

impl Session {
    pub(crate) fn agent_stated(
        &mut self,
        said: Said<'_>,
        state: AgentState,
        waiting_for: Option<&str>,
        rules: Rules<'_>,
        step: &mut Step,
    ) {
        let what = match state {
            AgentState::Busy => "agent_state busy",
            AgentState::Idle => "agent_state idle",
            AgentState::Shell => "agent_state shell",
            AgentState::Waiting => "agent_state waiting",
            AgentState::Dialog => "agent_state dialog",
            AgentState::Gone => "agent_state gone",
        };
        if matches!(&self.agent_state, Some((_, when)) if !said.when.later_than(when)) {
            return step.recorded(Mark::StatedOlder);
        }
        self.agent_state = Some((state, said.when));
        let newer = said.when.after(self.decided.as_ref())
            && said.when.after(self.worked.as_ref())
            && self.after_halt(said)
            && said.when.after(self.opened.as_ref());
        if !newer && !matches!(state, AgentState::Dialog | AgentState::Gone) {
            self.note(said, step, what, "older than what is known");
            return step.recorded(Mark::StatedOlder);
        }
        match state {
            AgentState::Busy => {
                step.mark(Mark::StatedBusy);
                if self.asks_before_sleep() {
                    return step.recorded(Mark::LockKept);
                }
                if self.lock.take().is_some() {
                    step.mark(Mark::LockClearedByState);
                    self.note(said, step, what, "the agent works again");
                }
                if self.phase != Phase::Working {
                    self.begin_turn(None, &step.now);
                    self.open(said, step);
                    self.note(said, step, what, "the agent works");
                }
                advance(&mut self.decided, said.when);
                self.active_again(step);
            }
            AgentState::Idle | AgentState::Shell => {
                step.mark(if state == AgentState::Idle { Mark::StatedIdle } else { Mark::StatedShell });
                if state == AgentState::Idle {
                    self.work.finish(STATED_SHELL, said.when);
                } else if !self.work.any_defers() {
                    let work = Work {
                        kind: WorkKind::Shell,
                        label: None,
                        process: None,
                        when: said.when,
                        since: step.now.wall,
                        quiet: false,
                        abandoned: false,
                    };
                    self.quiet_from = step.now.mono;
                    self.work.start(STATED_SHELL, work);
                    self.background_by_work(step);
                }
                if self.compaction.is_some() {
                    self.end_compaction(said.signal.source, step);
                } else if self.phase == Phase::Working {
                    let halted = match state {
                        AgentState::Shell => Halted::Stop { can_reply: false },
                        AgentState::Idle
                        | AgentState::Busy
                        | AgentState::Waiting
                        | AgentState::Dialog
                        | AgentState::Gone => Halted::Abort,
                    };
                    self.halt(said, halted, step);
                }
                self.follow_work(said.signal.source, rules, step);
            }
            AgentState::Waiting => {
                step.mark(Mark::StatedWaiting);
                let reason = match waiting_for {
                    Some("permission prompt") | None => "permission_prompt",
                    Some("input needed") => "question",
                    Some(other) => other,
                };
                if self.is_active() && self.lock.is_none() && self.can_ask != Some(false) {
                    self.set_lock(said, reason, LockSubject::Session, step);
                } else {
                    step.recorded(Mark::LockRefused);
                }
            }
            AgentState::Dialog => step.recorded(Mark::StatedDialog),
            AgentState::Gone => {
                self.note(said, step, what, "its process decides");
                step.recorded(Mark::StatedGone);
            }
        }
    }
}
