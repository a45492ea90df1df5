//! What begins, continues and halts a turn.
//!
//! Whether a statement belongs to this turn or an earlier one, and whether it is later than the latest stop, is decided
//! in `apply`; what a halt does about live work, in `background`.

use crate::{
    apply::{Said, TurnRelation, name_of},
    lock,
    marks::Mark,
    ordering::advance,
    session::{Deferred, FACT_MAX_BYTES, Halt, Phase, Session, cut},
    signal::{Activity, Prompt, PromptOrigin, Source, StartCause, Thread, WorkKind},
    step::{Path, Rules, Step},
    work::Work,
};

impl Session {
    /// To `working`, whatever was before.
    pub(crate) fn open(&mut self, said: Said<'_>, step: &mut Step) {
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
    pub(crate) fn take_turn(&mut self, said: Said<'_>, step: &Step) {
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

    pub(crate) fn started(
        &mut self,
        said: Said<'_>,
        prompt: Option<&Prompt>,
        rules: Rules<'_>,
        step: &mut Step,
    ) {
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
        // What names the session is what a person asked for, not the notice that some work of it is done.
        let is_worth = |prompt: &&Prompt| {
            self.prompt_preview.is_none() || (prompt.origin == PromptOrigin::Person && self.after_halt(said))
        };
        if let Some(prompt) = prompt.filter(is_worth) {
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

    pub(crate) fn session_started(&mut self, said: Said<'_>, cause: StartCause, step: &mut Step) {
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
        self.registered = true;
        // A session that starts up has no history, and agents may announce it after its first records. That of a fork begins with
        // another session's.
        if matches!(cause, StartCause::Resume | StartCause::Fork) {
            advance(&mut self.taken_up, said.when);
        }
        self.note(said, step, "session_started", rule);
        self.heard(step);
    }

    pub(crate) fn activity(&mut self, said: Said<'_>, what: &Activity, rules: Rules<'_>, step: &mut Step) {
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
            Activity::CompactionStarted if !said.when.after(self.compacted.as_ref()) => {
                self.ignored(said, step, Mark::EarlierIgnored, "that compaction is over");
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
            Activity::CompactionFinished => {
                advance(&mut self.compacted, said.when);
                if self.compaction.is_none() {
                    return self.worked_on(said, lock::Work::Other, step);
                }
                self.end_compaction(said.signal.source, step);
                self.follow_work(said.signal.source, rules, step);
                self.active_again(step);
            }
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
    pub(crate) fn worked_on(&mut self, said: Said<'_>, work: lock::Work<'_>, step: &mut Step) {
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

    pub(crate) fn abort(&mut self, said: Said<'_>, tools_to_work: bool, call: Option<&str>, step: &mut Step) {
        let opened = self.opened.as_ref();
        let is_of_this_turn =
            |call: &str| self.work.tools.iter().any(|(id, tool)| id == call && tool.when.after(opened));
        if call.is_some_and(|call| !is_of_this_turn(call)) {
            return self.ignored(said, step, Mark::EarlierTurn, "by a call that did not begin in this turn");
        }
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

    pub(crate) fn may_halt(&self, said: Said<'_>) -> bool {
        self.relation(said) != TurnRelation::Earlier
            && said.when.after(self.opened.as_ref())
            && said.when.after(self.worked.as_ref())
    }

    pub(crate) fn halt(&mut self, said: Said<'_>, halted: Halted, step: &mut Step) {
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
}

/// How a turn came to its halt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halted {
    Stop { can_reply: bool },
    Abort,
}
