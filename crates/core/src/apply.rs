//! What each signal does to the session it is about (the table of signals in the model).

use std::borrow::Cow;

use crate::{
    effect::Effect,
    lock::{self, ASK_BEFORE_SLEEP, Cleared, Lock},
    marks::Mark,
    ordering::{When, advance},
    session::{Deferred, EndCause, FACT_MAX_BYTES, Halt, Phase, Session, cut},
    signal::{
        Activity, AgentState, EndReason, LockSubject, Prompt, Signal, SignalBody, Source, StartCause, Thread,
        WorkEnd, WorkItem, WorkKind,
    },
    step::{Path, PathTaken, Rules, Step},
    work::{Begun, STATED_SHELL, Tool, Work},
};

/// How a signal's turn relates to the session's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnRelation {
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
    fn main(&self) -> bool {
        self.signal.thread == Thread::Main
    }
}

impl Session {
    /// Applies one signal to a session that is not ended.
    pub(crate) fn apply(&mut self, said: Said<'_>, rules: Rules<'_>, step: &mut Step) {
        let signal = said.signal;
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
                    self.work.tool_started(&cut(id, FACT_MAX_BYTES), tool);
                }
                self.worked_on(said, lock::Work::ToolStarted { id, name }, step);
            }
            SignalBody::ToolFinished { id, name, failed: _ } => {
                self.worked_on(said, lock::Work::ToolFinished { id, name }, step);
                self.work.tool_finished(&cut(id, FACT_MAX_BYTES), said.when);
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
            SignalBody::Aborted { tools_to_work } => {
                if said.main() {
                    self.abort(said, *tools_to_work, step);
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
                self.end(EndCause::Orphaned, Path::Cancel, signal.source, said.when, step)
            }
            SignalBody::Removed => {
                self.end(EndCause::Removed, Path::Abnormal, signal.source, said.when, step)
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
        self.evidence.push(&step.now, said.when.stamp, said.signal.source, what, rule);
    }

    fn ignored(&mut self, said: Said<'_>, step: &mut Step, mark: Mark, rule: &'static str) {
        let what = name_of(&said.signal.body);
        self.note(said, step, what, rule);
        step.recorded(mark);
    }

    fn relation(&self, said: Said<'_>) -> TurnRelation {
        let Some(named) = &said.signal.turn else { return TurnRelation::Same { named: false } };
        match &self.turn {
            Some(turn) if turn.id == *named => TurnRelation::Same { named: true },
            _ if self.earlier_turns.contains(named) => TurnRelation::Earlier,
            _ => TurnRelation::Newer,
        }
    }

    fn after_halt(&self, said: Said<'_>) -> bool {
        said.when.after(self.halted.as_ref().map(|h| &h.when))
    }

    /// Whether this belongs to a turn that was aborted.
    fn aborted(&self, said: Said<'_>) -> bool {
        self.phase != Phase::Working
            && self.halted.is_some_and(|h| h.aborted)
            && matches!(self.relation(said), TurnRelation::Same { .. })
    }

    /// The agent itself spoke.
    fn heard(&mut self, step: &Step) {
        self.heard = step.now.mono;
        self.silent_since_wake = false;
        self.stalled_after_wake = false;
    }

    fn active_again(&mut self, step: &mut Step) {
        self.refresh(&step.now);
        self.heard(step);
        step.disturbed = true;
    }

    /// To `working`, whatever was before.
    fn open(&mut self, said: Said<'_>, step: &mut Step) {
        match self.phase {
            Phase::Idle => step.mark(Mark::IdleToWorking),
            Phase::Background => step.mark(Mark::BackgroundToWorking),
            Phase::Working | Phase::Ended(_) => {}
        }
        self.phase = Phase::Working;
        self.deferred = None;
        self.drained = None;
        self.compaction = None;
        advance(&mut self.opened, said.when);
        advance(&mut self.decided, said.when);
    }

    /// The turn of this signal, if it is a new one, becomes the present turn.
    fn take_turn(&mut self, said: Said<'_>, step: &Step) {
        let named = said.signal.turn.as_ref();
        match (&mut self.turn, named) {
            (Some(turn), Some(named)) if turn.id == *named => {}
            // A turn that was noticed before the agent named it.
            (Some(turn), Some(named)) if turn.counted && self.phase == Phase::Working => {
                turn.id = named.clone();
                turn.counted = false;
            }
            (Some(_), None) if self.phase == Phase::Working => {}
            (_, named) => self.begin_turn(named, &step.now),
        }
    }

    fn started(&mut self, said: Said<'_>, prompt: Option<&Prompt>, rules: Rules<'_>, step: &mut Step) {
        if let Thread::Subagent(id) = &said.signal.thread {
            let id = cut(id, FACT_MAX_BYTES);
            let work = Work {
                kind: WorkKind::Subagent,
                label: None,
                process: None,
                when: said.when,
                since: step.now.wall,
                quiet: false,
                abandoned: false,
            };
            return self.work_started(said, &id, work, step);
        }
        if let Some(prompt) = prompt.filter(|_| self.prompt_preview.is_none() || self.after_halt(said)) {
            self.remember_prompt(prompt, rules.settings.record_prompts);
        }
        if self.relation(said) == TurnRelation::Earlier {
            return self.ignored(said, step, Mark::EarlierTurn, "a start of an earlier turn");
        }
        if !self.after_halt(said) {
            return self.ignored(said, step, Mark::EarlierIgnored, "it happened before the latest stop");
        }
        if self.aborted(said) && self.relation(said) == (TurnRelation::Same { named: true }) {
            return self.ignored(said, step, Mark::AbortedStaysShut, "its turn was interrupted");
        }
        self.take_turn(said, step);
        if self.lock.as_ref().is_some_and(|l| said.when.later_than(&l.when)) {
            self.lock = None;
            step.mark(Mark::LockClearedByStart);
        }
        self.open(said, step);
        self.note(said, step, "start", "a turn begins");
        self.active_again(step);
    }

    fn session_started(&mut self, said: Said<'_>, cause: StartCause, step: &mut Step) {
        if self.compaction.is_some() && cause == StartCause::Compact {
            self.end_compaction(said.signal.source, step);
        }
        let rule = match self.phase {
            Phase::Working | Phase::Background => {
                step.mark(Mark::LateSessionStart);
                "announced; what runs goes on"
            }
            Phase::Idle | Phase::Ended(_) => "announced; no turn runs by that",
        };
        self.note(said, step, "session_started", rule);
        self.heard(step);
    }

    fn activity(&mut self, said: Said<'_>, what: &Activity, rules: Rules<'_>, step: &mut Step) {
        match what {
            Activity::ModelOutput => self.worked_on(said, lock::Work::ModelOutput, step),
            Activity::Progress => self.worked_on(said, lock::Work::Other, step),
            Activity::Manual => {
                if self.lock.as_ref().is_some_and(|l| said.when.later_than(&l.when))
                    && !self.asks_before_sleep()
                {
                    self.lock = None;
                    step.mark(Mark::LockClearedByPerson);
                }
                self.note(said, step, "activity", "told by hand");
                self.active_again(step);
            }
            Activity::CompactionStarted => match self.phase {
                Phase::Idle | Phase::Background if self.after_halt(said) => {
                    let background = self.phase == Phase::Background;
                    step.mark(Mark::CompactionBetweenTurns);
                    step.mark(if background { Mark::BackgroundToWorking } else { Mark::IdleToWorking });
                    self.compaction = Some((step.now.mono, background));
                    self.phase = Phase::Working;
                    self.drained = None;
                    advance(&mut self.decided, said.when);
                    self.note(said, step, "compaction_started", "compaction between turns is work");
                    self.active_again(step);
                }
                Phase::Working | Phase::Idle | Phase::Background | Phase::Ended(_) => {
                    self.worked_on(said, lock::Work::Other, step);
                }
            },
            Activity::CompactionFinished if self.compaction.is_some() => {
                self.end_compaction(said.signal.source, step);
                self.follow_work(said.signal.source, rules, step);
                self.active_again(step);
            }
            Activity::CompactionFinished => self.worked_on(said, lock::Work::Other, step),
        }
    }

    /// The phase before the compaction returns, with no stop path.
    pub(crate) fn end_compaction(&mut self, source: Source, step: &mut Step) {
        if self.compaction.take().is_none() || self.phase != Phase::Working {
            return;
        }
        step.mark(Mark::CompactionEnded);
        if self.work.any_defers() || self.deferred.is_some() {
            step.mark(Mark::WorkingToBackground);
            self.phase = Phase::Background;
            self.deferred.get_or_insert(Deferred::Settled);
        } else {
            step.mark(Mark::WorkingToIdle);
            self.phase = Phase::Idle;
            self.lock = None;
        }
        self.evidence.push(&step.now, None, source, "compaction_finished", "the phase before it returns");
    }

    /// Work was done: by whom, on what, and whether it opens a turn or clears a lock.
    fn worked_on(&mut self, said: Said<'_>, work: lock::Work<'_>, step: &mut Step) {
        let opens = match work {
            lock::Work::ModelOutput | lock::Work::ToolStarted { .. } => said.main(),
            lock::Work::ToolFinished { .. } | lock::Work::Other => false,
        };
        let relation = self.relation(said);
        if relation == TurnRelation::Earlier {
            return step.recorded(Mark::EarlierTurn);
        }
        if !self.after_halt(said) {
            return step.recorded(Mark::EarlierIgnored);
        }
        if self.aborted(said) {
            return step.recorded(Mark::AbortedStaysShut);
        }
        let newer = relation == TurnRelation::Newer && said.main();
        match self.phase {
            Phase::Ended(_) => return step.recorded(Mark::EarlierIgnored),
            Phase::Idle if newer || opens => {
                step.mark(if newer { Mark::ReopenedByNewerTurn } else { Mark::ReopenedBySameTurn });
                self.lock = None;
                if newer || self.turn.is_none() {
                    self.take_turn(said, step);
                }
                self.open(said, step);
                let rule = if newer { "of a newer turn" } else { "the turn goes on after its stop" };
                self.note(said, step, name_of(&said.signal.body), rule);
            }
            Phase::Idle => {}
            Phase::Background if newer && opens => {
                step.mark(Mark::ReopenedByNewerTurn);
                self.lock = None;
                self.take_turn(said, step);
                self.open(said, step);
                self.note(said, step, name_of(&said.signal.body), "of a newer turn");
            }
            Phase::Background => {}
            Phase::Working => {
                if newer && self.compaction.is_none() {
                    self.take_turn(said, step);
                }
            }
        }
        if !self.clear_lock_by_work(said, work, step) && said.signal.source == Source::Transcript {
            // A record older than the lock is no sign of anything.
            if self.lock.as_ref().is_some_and(|l| !said.when.later_than(&l.when)) {
                return step.recorded(Mark::EarlierIgnored);
            }
        }
        if opens {
            advance(&mut self.worked, said.when);
            if matches!(work, lock::Work::ModelOutput) {
                advance(&mut self.spoke, said.when);
            }
        }
        self.evidence.routine(&step.now, said.signal.source, name_of(&said.signal.body));
        self.active_again(step);
    }

    fn clear_lock_by_work(&mut self, said: Said<'_>, work: lock::Work<'_>, step: &mut Step) -> bool {
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

    fn soft_locked(&mut self, said: Said<'_>, reason: &str, subject: &LockSubject, step: &mut Step) {
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

    fn set_lock(&mut self, said: Said<'_>, reason: &str, subject: LockSubject, step: &mut Step) {
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

    fn lock_resolved(&mut self, said: Said<'_>, subject: &LockSubject, step: &mut Step) {
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

    fn work_started(&mut self, said: Said<'_>, id: &str, work: Work, step: &mut Step) {
        let (kind, process) = (work.kind, work.process);
        let former = self.work.live.get(id).and_then(|w| w.process);
        let first_quiet = work.can_be_quiet() && !self.work.live.values().any(Work::can_be_quiet);
        let rule = match self.work.start(id, work) {
            Begun::New => {
                step.mark(Mark::WorkStarted);
                "tracked from here"
            }
            Begun::Reopened => {
                step.mark(Mark::WorkReopened);
                "it was finished before and goes on"
            }
            Begun::Known => {
                if let Some(process) = process.filter(|p| former != Some(*p)) {
                    step.released.extend(former);
                    self.watch(process, step);
                }
                return self.evidence.routine(&step.now, said.signal.source, "work_started");
            }
            Begun::Blocked => {
                return self.ignored(
                    said,
                    step,
                    Mark::WorkStartBlocked,
                    "it was finished later than this start",
                );
            }
            Begun::Full => {
                return self.ignored(
                    said,
                    step,
                    Mark::LimitReached,
                    "too many live items are tracked already",
                );
            }
        };
        if first_quiet {
            self.quiet_from = step.now.mono;
        }
        if let Some(process) = process {
            self.watch(process, step);
        }
        self.note(said, step, format!("work_started {}", kind_name(kind)), rule);
        self.background_by_work(step);
        if self.after_halt(said) {
            self.active_again(step);
        }
    }

    /// Live work makes an idle session a background one, and takes back a drained state.
    fn background_by_work(&mut self, step: &mut Step) {
        if !self.work.any_defers() {
            return;
        }
        self.drained = None;
        if self.phase == Phase::Idle {
            step.mark(Mark::IdleToBackground);
            self.phase = Phase::Background;
            self.lock = None;
            self.deferred.get_or_insert(Deferred::Settled);
        }
    }

    fn work_finished(&mut self, said: Said<'_>, id: &str, cause: WorkEnd, rules: Rules<'_>, step: &mut Step) {
        let process = self.work.live.get(id).and_then(|w| w.process);
        let ended = self.work.finish(id, said.when);
        self.work.drop_tools(&Thread::Subagent(id.to_owned()), said.when);
        if !ended {
            return step.recorded(Mark::EarlierIgnored);
        }
        if let Some(process) = process {
            step.released.push(process);
        }
        step.mark(Mark::WorkFinished);
        self.note(said, step, format!("work_finished {cause:?}").to_lowercase(), "its work item is over");
        if self
            .lock
            .as_ref()
            .is_some_and(|l| l.inactive || l.resolved_by(&LockSubject::Subagent(id.to_owned())))
        {
            self.clear_lock_by_subagent(said, id, step);
        }
        self.active_again(step);
        self.follow_work(said.signal.source, rules, step);
    }

    fn clear_lock_by_subagent(&mut self, said: Said<'_>, id: &str, step: &mut Step) {
        let Some(lock) = &self.lock else { return };
        let its = lock.inactive
            || lock.subject == LockSubject::Subagent(id.to_owned())
            || lock.thread == Thread::Subagent(id.to_owned());
        if its && said.when.later_than(&lock.when) {
            self.lock = None;
            step.mark(Mark::LockClearedBySubject);
        }
    }

    fn level(&mut self, said: Said<'_>, live: &[WorkItem], except: Option<&str>, step: &mut Step) {
        let had_quietable = self.work.live.values().any(Work::can_be_quiet);
        let processes: Vec<_> = self.work.live.values().filter_map(|w| w.process).collect();
        let (finished, begun) = self.work.level(live, except, said.when, step.now.wall);
        if finished > 0 {
            step.mark(Mark::WorkReconciled);
            let still: Vec<_> = self.work.live.values().filter_map(|w| w.process).collect();
            step.released.extend(processes.into_iter().filter(|p| !still.contains(p)));
        }
        if begun > 0 {
            step.mark(Mark::WorkStarted);
        }
        if !had_quietable && self.work.live.values().any(Work::can_be_quiet) {
            self.quiet_from = step.now.mono;
        }
        if finished > 0 || begun > 0 {
            let rule = format!("{finished} not on it: finished; {begun} new on it: tracked");
            self.note(said, step, "work_level", rule);
        }
        self.background_by_work(step);
    }

    /// After the set of live work changed: a deferred stop whose work is gone is carried out, at once or after the
    /// grace in which the agent may begin a turn by itself.
    pub(crate) fn follow_work(&mut self, source: Source, rules: Rules<'_>, step: &mut Step) {
        if self.phase != Phase::Background || self.work.any_defers() || self.drained.is_some() {
            return;
        }
        let ends = matches!(self.deferred, Some(Deferred::End(_)));
        if rules.wakes_model(self.agent()) && !ends {
            step.mark(Mark::Drained);
            self.drained = Some(step.now.mono);
            self.deferred.get_or_insert(Deferred::Settled);
            self.evidence.push(&step.now, None, source, "work_drained", "a turn may still begin by itself");
        } else {
            step.mark(Mark::DrainedAtOnce);
            self.carry_out(source, step);
        }
    }

    /// The deferred stop happens.
    pub(crate) fn carry_out(&mut self, source: Source, step: &mut Step) {
        if self.phase != Phase::Background {
            return;
        }
        self.drained = None;
        let deferred = self.deferred.take().unwrap_or(Deferred::Settled);
        step.mark(Mark::CarriedOut);
        self.evidence.push(&step.now, None, source, "work_drained", "the deferred stop is carried out");
        if let Deferred::End(cause) = deferred {
            let when = When::now(&step.now, step.number);
            return self.end(cause, Path::Normal, source, when, step);
        }
        step.mark(Mark::BackgroundToIdle);
        self.phase = Phase::Idle;
        self.lock = None;
        match deferred {
            Deferred::Stop | Deferred::Settled | Deferred::End(_) => {
                self.take_path(Path::Normal, false, step)
            }
            Deferred::Abort => self.take_path(Path::Abnormal, false, step),
        }
    }

    fn take_path(&mut self, path: Path, can_reply: bool, step: &mut Step) {
        let post = path == Path::Normal && self.turn.as_ref().is_some_and(|t| !t.told);
        if let Some(turn) = &mut self.turn {
            turn.told = true;
        }
        step.mark(match path {
            Path::Normal => Mark::PathNormal,
            Path::Abnormal => Mark::PathAbnormal,
            Path::Cancel => Mark::PathCancel,
        });
        step.path = Some(PathTaken { path, post, can_reply });
    }

    fn abort(&mut self, said: Said<'_>, tools_to_work: bool, step: &mut Step) {
        if tools_to_work && self.may_halt(said) {
            let locked = self.lock.as_ref().and_then(|l| l.tool().map(str::to_owned));
            let had_quietable = self.work.live.values().any(Work::can_be_quiet);
            if self.work.tools_to_work(locked.as_deref(), said.when, step.now.wall) > 0 {
                step.mark(Mark::ToolsToWork);
                if !had_quietable {
                    self.quiet_from = step.now.mono;
                }
            }
        }
        self.halt(said, Halted::Abort, step);
    }

    fn may_halt(&self, said: Said<'_>) -> bool {
        self.relation(said) != TurnRelation::Earlier
            && said.when.after(self.opened.as_ref())
            && said.when.after(self.worked.as_ref())
    }

    fn halt(&mut self, said: Said<'_>, halted: Halted, step: &mut Step) {
        if self.relation(said) == TurnRelation::Earlier {
            return self.ignored(said, step, Mark::EarlierTurn, "of an earlier turn");
        }
        if !self.may_halt(said) {
            return self.ignored(said, step, Mark::EarlierIgnored, "work was done since it happened");
        }
        let aborted = halted == Halted::Abort;
        if self.after_halt(said) {
            self.halted = Some(Halt { when: said.when, aborted });
        }
        advance(&mut self.decided, said.when);
        self.work.drop_tools(&Thread::Main, said.when);
        self.compaction = None;
        if self.lock.take().is_some() {
            step.mark(Mark::LockClearedByHalt);
        }
        self.last_activity = step.now.wall;
        self.heard(step);
        let before = self.phase;
        let told = self.turn.as_ref().is_none_or(|t| t.told);
        let what = name_of(&said.signal.body);
        if self.work.any_defers() {
            self.drained = None;
            let live = self.work.deferring();
            let deferred = match (self.deferred, halted) {
                (Some(Deferred::End(cause)), _) => Deferred::End(cause),
                _ if told => Deferred::Settled,
                (_, Halted::Stop { .. }) => Deferred::Stop,
                (Some(Deferred::Stop), Halted::Abort) => Deferred::Stop,
                (_, Halted::Abort) => Deferred::Abort,
            };
            self.deferred = Some(deferred);
            self.phase = Phase::Background;
            step.mark(Mark::StopDeferred);
            match before {
                Phase::Working => step.mark(Mark::WorkingToBackground),
                Phase::Idle => step.mark(Mark::IdleToBackground),
                Phase::Background | Phase::Ended(_) => {}
            }
            return self.note(said, step, what, format!("the stop is deferred: {live} live"));
        }
        match before {
            Phase::Working => {
                step.mark(Mark::WorkingToIdle);
                self.phase = Phase::Idle;
                self.deferred = None;
                self.note(
                    said,
                    step,
                    what,
                    if aborted { "the turn was interrupted" } else { "the turn is over" },
                );
                match halted {
                    Halted::Stop { can_reply } => self.take_path(Path::Normal, can_reply, step),
                    Halted::Abort => self.take_path(Path::Abnormal, false, step),
                }
            }
            Phase::Background => {
                // The agent's own later stop decides, whatever was deferred.
                step.mark(Mark::BackgroundToIdle);
                let deferred = self.deferred.take();
                self.drained = None;
                if let Some(Deferred::End(cause)) = deferred {
                    return self.end(cause, Path::Normal, said.signal.source, said.when, step);
                }
                self.phase = Phase::Idle;
                self.note(said, step, what, "the turn is over and nothing is left");
                match halted {
                    Halted::Stop { can_reply } => self.take_path(Path::Normal, can_reply, step),
                    Halted::Abort => self.take_path(Path::Abnormal, false, step),
                }
            }
            Phase::Idle | Phase::Ended(_) => self.note(said, step, what, "it was over already"),
        }
    }

    fn session_ended(
        &mut self,
        said: Said<'_>,
        reason: EndReason,
        successor: Option<&str>,
        rules: Rules<'_>,
        step: &mut Step,
    ) {
        if !said.main() {
            return step.recorded(Mark::EarlierTurn);
        }
        if !said.when.after(self.opened.as_ref()) || !said.when.after(self.born.as_ref()) {
            return self.ignored(said, step, Mark::EarlierIgnored, "the session began later than that");
        }
        let cause = match reason {
            EndReason::Reported => EndCause::Reported,
            EndReason::Cleared => EndCause::Cleared,
            EndReason::Forked => EndCause::Forked,
            EndReason::Moved => EndCause::Moved,
            EndReason::Stopped => EndCause::Stopped,
        };
        if let Some(successor) = successor {
            let id = cut(successor, FACT_MAX_BYTES);
            match reason {
                EndReason::Cleared => self.link(crate::signal::Lineage::ClearedTo(id)),
                EndReason::Reported | EndReason::Forked | EndReason::Moved | EndReason::Stopped => {
                    self.link(crate::signal::Lineage::ContinuedIn(id));
                }
            }
        }
        match reason {
            EndReason::Cleared | EndReason::Forked | EndReason::Moved => {
                self.bequeath(step);
                return self.end(cause, Path::Normal, said.signal.source, said.when, step);
            }
            EndReason::Reported | EndReason::Stopped => {}
        }
        let sender = said.signal.process.map(|p| p.process);
        if let Some(sender) = sender.filter(|p| self.owns(p)) {
            let others = self.processes.iter().filter(|p| !p.shared && p.process != sender).count();
            let own = self.processes.iter().any(|p| p.process == sender && !p.shared);
            if own && others > 0 && reason == EndReason::Reported {
                self.let_go(&sender, false);
                step.released.push(sender);
                step.mark(Mark::OneProcessLess);
                return self.note(said, step, "session_end", "another process of it lives");
            }
        }
        if self.has_own_process() && self.work.any_defers() {
            step.mark(Mark::EndDeferred);
            step.mark(Mark::StopDeferred);
            if self.phase == Phase::Working {
                step.mark(Mark::WorkingToBackground);
            }
            self.lock = None;
            self.compaction = None;
            self.drained = None;
            self.work.drop_tools(&Thread::Main, said.when);
            if self.after_halt(said) {
                self.halted = Some(Halt { when: said.when, aborted: false });
            }
            advance(&mut self.decided, said.when);
            self.phase = Phase::Background;
            self.deferred = Some(Deferred::End(cause));
            self.heard(step);
            let live = self.work.deferring();
            self.note(said, step, "session_end", format!("the end is deferred: {live} live"));
            return self.follow_work(said.signal.source, rules, step);
        }
        self.end(cause, Path::Normal, said.signal.source, said.when, step);
    }

    /// Live work goes to whoever takes this session's place.
    pub(crate) fn bequeath(&mut self, step: &mut Step) {
        let live = std::mem::take(&mut self.work.live);
        step.released.extend(live.values().filter_map(|w| w.process));
        step.bequest = live.into_iter().collect();
    }

    /// The first end of an incarnation is the one that counts.
    pub(crate) fn end(&mut self, cause: EndCause, path: Path, source: Source, when: When, step: &mut Step) {
        step.mark(match (self.phase, cause) {
            (Phase::Ended(_), _) => Mark::SecondEnd,
            (_, EndCause::Reported) => Mark::EndedReported,
            (_, EndCause::Cleared | EndCause::Forked | EndCause::Moved) => Mark::EndedReplaced,
            (_, EndCause::Stopped) => Mark::EndedStopped,
            (_, EndCause::ProcessExited) => Mark::EndedProcessExited,
            (_, EndCause::Orphaned) => Mark::EndedOrphaned,
            (_, EndCause::Removed) => Mark::EndedRemoved,
        });
        let was_active = self.is_active();
        match self.phase {
            Phase::Working => step.mark(Mark::WorkingToEnded),
            Phase::Background => step.mark(Mark::BackgroundToEnded),
            Phase::Idle => step.mark(Mark::IdleToEnded),
            Phase::Ended(_) => {
                self.evidence.push(&step.now, when.stamp, source, cause.name(), "it was over already");
                return step.recorded(Mark::SecondEnd);
            }
        }
        self.phase = Phase::Ended(cause);
        self.ended = Some(when);
        self.lock = None;
        self.deferred = None;
        self.drained = None;
        self.compaction = None;
        step.released.extend(self.work.live.values().filter_map(|w| w.process));
        self.work.live.clear();
        self.work.tools.clear();
        let exited = matches!(cause, EndCause::ProcessExited | EndCause::Orphaned);
        while let Some(process) = self.processes.last().map(|p| p.process) {
            self.let_go(&process, exited);
            step.released.push(process);
        }
        if self.transcript.is_some() {
            step.effect(Effect::UnfollowTranscript { key: self.key.clone() });
        }
        self.evidence.push(&step.now, when.stamp, source, cause.name(), "the session is over");
        if was_active {
            self.take_path(path, false, step);
        }
    }

    /// A process is gone: of work, of the agent, or both.
    pub(crate) fn process_gone(
        &mut self,
        process: &crate::ProcessRef,
        cause: EndCause,
        source: Source,
        when: When,
        rules: Rules<'_>,
        step: &mut Step,
    ) {
        let over: Vec<String> = self
            .work
            .live
            .iter()
            .filter(|(_, w)| w.process == Some(*process))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &over {
            // The kernel's word needs no comparison of times.
            if let Some(mut work) = self.work.live.remove(id) {
                work.when = when;
                self.work.finish(id, when);
                step.mark(Mark::WorkFinished);
            }
        }
        if !over.is_empty() {
            step.released.push(*process);
            self.evidence.push(&step.now, when.stamp, source, "process_exited", "its work item is over");
        }
        match self.let_go(process, true) {
            Some(gone) => {
                step.released.push(*process);
                if self.processes.is_empty() || gone.shared {
                    match self.deferred {
                        Some(Deferred::End(reported)) => self.end(reported, Path::Normal, source, when, step),
                        Some(_) | None => self.end(cause, Path::Cancel, source, when, step),
                    }
                    return;
                }
                step.mark(Mark::OneProcessLess);
                self.evidence.push(
                    &step.now,
                    when.stamp,
                    source,
                    "process_exited",
                    "another process of it lives",
                );
            }
            None if over.is_empty() => return step.recorded(Mark::UnknownRecorded),
            None => {}
        }
        self.follow_work(source, rules, step);
    }

    fn agent_stated(
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

    /// Asks for an exit watch on a process.
    pub(crate) fn watch(&mut self, process: crate::ProcessRef, step: &mut Step) {
        step.acquired.push(process);
        step.effect(Effect::WatchProcess { key: self.key.clone(), incarnation: self.incarnation, process });
    }
}

/// How a turn came to its halt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halted {
    Stop { can_reply: bool },
    Abort,
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
