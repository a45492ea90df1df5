//! What each signal does to the session it is about (the table of signals in the model).

use std::borrow::Cow;

use crate::{
    lock,
    marks::Mark,
    ordering::When,
    session::{EndCause, FACT_MAX_BYTES, Phase, Session, cut, prefix},
    signal::{Activity, Signal, SignalBody, Source, Thread, WorkKind},
    step::{Path, Rules, Step},
    turns::Halted,
    work::{Tool, Work},
};

/// How a signal's turn relates to the session's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnRelation {
    /// The present one, or none was named.
    Same {
        named: bool,
    },
    Earlier,
    Newer,
}

/// Who said it and when: what every rule needs of a signal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) signal: &'a Signal,
    pub(crate) when: When,
}

impl Said<'_> {
    pub(crate) fn main(&self) -> bool {
        self.signal.thread == Thread::Main
    }
}

impl Session {
    /// Applies one signal to a session that is not ended.
    pub(crate) fn apply(&mut self, said: Said<'_>, rules: Rules<'_>, step: &mut Step) {
        let signal = said.signal;
        // A transcript that is taken up again still tells of what an earlier process was killed in.
        let is_history = self.taken_up.as_ref().is_some_and(|taken_up| taken_up.later_than(&said.when));
        if is_history && signal.source == Source::Transcript {
            return step.recorded(Mark::EarlierIgnored);
        }
        match &signal.body {
            SignalBody::Started { prompt } => self.started(said, prompt.as_ref(), rules, step),
            SignalBody::SessionStarted { cause } => self.session_started(said, *cause, step),
            SignalBody::Activity { what } => self.activity(said, what, rules, step),
            SignalBody::Displayed { .. } => step.recorded(Mark::DisplayedOnly),
            SignalBody::ToolStarted { id, name } => {
                let dead = !self.after_halt(said) || (self.aborted(said) && said.main());
                if !dead {
                    let tool = Tool {
                        name: cut(name, FACT_MAX_BYTES),
                        when: said.when,
                        thread: signal.thread.clone(),
                    };
                    self.work.tool_started(prefix(id, FACT_MAX_BYTES), tool);
                }
                self.worked_on(said, lock::Work::ToolStarted { id, name }, step);
            }
            SignalBody::ToolFinished { id, name, failed: _ } => {
                self.worked_on(said, lock::Work::ToolFinished { id, name }, step);
                self.work.tool_finished(prefix(id, FACT_MAX_BYTES), said.when);
            }
            SignalBody::SoftLocked { reason, subject } => self.soft_locked(said, reason, subject, step),
            SignalBody::LockResolved { subject } => self.lock_resolved(said, subject, step),
            SignalBody::WorkStarted { id, what, label, process } => {
                let work = Work {
                    kind: *what,
                    label: label.as_deref().map(|l| cut(l, FACT_MAX_BYTES)),
                    process: *process,
                    when: said.when,
                    since: step.now.wall,
                    quiet: false,
                    abandoned: false,
                };
                self.work_started(said, &cut(id, FACT_MAX_BYTES), work, step);
            }
            SignalBody::WorkFinished { id, cause } => {
                self.work_finished(said, &cut(id, FACT_MAX_BYTES), *cause, rules, step);
            }
            SignalBody::WorkLevel { live, except } => {
                self.level(said, live, except.as_deref(), step);
                self.follow_work(signal.source, rules, step);
            }
            SignalBody::Stopped { final_message: _, can_continue, continued: _, live } => {
                let subject = match &signal.thread {
                    Thread::Main => None,
                    Thread::Subagent(id) => Some(id.as_str()),
                };
                if let Some(live) = live {
                    self.level(said, live, subject, step);
                }
                match subject {
                    None => self.halt(said, Halted::Stop { can_reply: *can_continue }, step),
                    Some(_) => step.recorded(Mark::EarlierTurn),
                }
                self.follow_work(signal.source, rules, step);
            }
            SignalBody::Aborted { tools_to_work, call } => {
                if said.main() {
                    self.abort(said, *tools_to_work, call.as_deref(), step);
                    self.follow_work(signal.source, rules, step);
                } else {
                    step.recorded(Mark::EarlierTurn);
                }
            }
            SignalBody::Failed { message: _, fatal } => match (said.main(), fatal) {
                (false, _) => step.recorded(Mark::EarlierTurn),
                (true, true) => self.halt(said, Halted::Abort, step),
                (true, false) => self.halt(said, Halted::Stop { can_reply: false }, step),
            },
            SignalBody::IdleNoticed => match said.main() {
                true => self.halt(said, Halted::Stop { can_reply: false }, step),
                false => step.recorded(Mark::EarlierTurn),
            },
            SignalBody::SessionEnded { reason, successor } => {
                self.session_ended(said, *reason, successor.as_deref(), rules, step);
            }
            SignalBody::AgentStated { state, waiting_for } => {
                self.agent_stated(said, *state, waiting_for.as_deref(), rules, step);
            }
            SignalBody::ProcessExited { process } => {
                self.process_gone(process, EndCause::ProcessExited, signal.source, said.when, rules, step);
            }
            SignalBody::Orphaned => {
                self.end(EndCause::Orphaned, Path::Cancel, signal.source, said.when, step);
            }
            SignalBody::Removed => {
                self.end(EndCause::Removed, Path::Abnormal, signal.source, said.when, step);
            }
            SignalBody::SoftLockCleared => match self.lock.take() {
                Some(_) => {
                    step.mark(Mark::LockClearedByPerson);
                    self.note(said, step, "clear_softlock", "a person cleared the lock");
                    self.refresh(&step.now);
                }
                None => step.recorded(Mark::LockKept),
            },
            SignalBody::Unknown { event } => {
                let what = cut(event, 100);
                self.note(said, step, what, "no adapter knows this event");
                step.recorded(Mark::DisplayedOnly);
            }
        }
    }

    pub(crate) fn note(
        &mut self,
        said: Said<'_>,
        step: &Step,
        what: impl Into<Cow<'static, str>>,
        rule: impl Into<Cow<'static, str>>,
    ) {
        self.evidence.push(&step.now, said.when.boot_at(&step.now), said.signal.source, what, rule);
    }

    pub(crate) fn ignored(&mut self, said: Said<'_>, step: &mut Step, mark: Mark, rule: &'static str) {
        let what = name_of(&said.signal.body);
        self.note(said, step, what, rule);
        step.recorded(mark);
    }

    pub(crate) fn relation(&self, said: Said<'_>) -> TurnRelation {
        let Some(named) = &said.signal.turn else { return TurnRelation::Same { named: false } };
        match &self.turn {
            Some(turn) if turn.id == *named => TurnRelation::Same { named: true },
            _ if self.earlier_turns.contains(named) => TurnRelation::Earlier,
            _ => TurnRelation::Newer,
        }
    }

    pub(crate) fn after_halt(&self, said: Said<'_>) -> bool {
        said.when.after(self.halted.as_ref().map(|h| &h.when))
    }

    /// Whether this belongs to a turn that was aborted.
    pub(crate) fn aborted(&self, said: Said<'_>) -> bool {
        self.phase != Phase::Working
            && self.halted.is_some_and(|h| h.aborted)
            && matches!(self.relation(said), TurnRelation::Same { .. })
    }

    /// The agent itself spoke.
    pub(crate) fn heard(&mut self, step: &Step) {
        self.heard = step.now.mono;
        self.silent_since_wake = false;
        self.stalled_after_wake = false;
    }

    pub(crate) fn active_again(&mut self, step: &mut Step) {
        self.refresh(&step.now);
        self.heard(step);
        step.disturbed = true;
    }
}

pub(crate) fn kind_name(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::Shell => "shell",
        WorkKind::Subagent => "subagent",
        WorkKind::Task => "task",
        WorkKind::Scheduled => "scheduled",
        WorkKind::Monitor => "monitor",
        WorkKind::Terminal => "terminal",
    }
}

/// The public name of a signal.
pub(crate) fn name_of(body: &SignalBody) -> &'static str {
    match body {
        SignalBody::Started { .. } => "start",
        SignalBody::SessionStarted { .. } => "session_started",
        SignalBody::Activity { what: Activity::ModelOutput } => "model_output",
        SignalBody::Activity { .. } => "activity",
        SignalBody::Displayed { .. } => "displayed",
        SignalBody::ToolStarted { .. } => "tool_started",
        SignalBody::ToolFinished { .. } => "tool_finished",
        SignalBody::SoftLocked { .. } => "soft_lock",
        SignalBody::LockResolved { .. } => "lock_resolved",
        SignalBody::WorkStarted { .. } => "work_started",
        SignalBody::WorkFinished { .. } => "work_finished",
        SignalBody::WorkLevel { .. } => "work_level",
        SignalBody::Stopped { .. } => "stop",
        SignalBody::Aborted { .. } => "aborted",
        SignalBody::Failed { .. } => "failed",
        SignalBody::IdleNoticed => "idle_notice",
        SignalBody::SessionEnded { .. } => "session_end",
        SignalBody::AgentStated { .. } => "agent_state",
        SignalBody::ProcessExited { .. } => "process_exited",
        SignalBody::Orphaned => "orphaned",
        SignalBody::Removed => "removed",
        SignalBody::SoftLockCleared => "clear_softlock",
        SignalBody::Unknown { .. } => "unknown",
    }
}
