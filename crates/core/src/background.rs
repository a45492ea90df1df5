//! Background work as signals tell of it, and the stops that it defers.

use crate::{
    apply::{Said, kind_name},
    marks::Mark,
    ordering::When,
    session::{Deferred, Phase, Session},
    signal::{LockSubject, Source, Thread, WorkEnd, WorkItem},
    step::{Path, Rules, Step},
    work::{Begun, Work},
};

impl Session {
    pub(crate) fn work_started(&mut self, said: Said<'_>, id: &str, work: Work, step: &mut Step) {
        let kind = work.kind;
        let first_quiet = work.can_be_quiet() && !self.work.live.values().any(Work::can_be_quiet);
        let rule = match self.track(id, work, step) {
            Begun::New => {
                step.mark(Mark::WorkStarted);
                "tracked from here"
            }
            Begun::Reopened => {
                step.mark(Mark::WorkReopened);
                "it was finished before and goes on"
            }
            Begun::Known => {
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
        self.note(said, step, format!("work_started {}", kind_name(kind)), rule);
        self.background_by_work(step);
        if self.after_halt(said) {
            self.active_again(step);
        }
    }

    /// Starts an item and watches the process that it runs in; one that it ran in before is let go.
    pub(crate) fn track(&mut self, id: &str, work: Work, step: &mut Step) -> Begun {
        let former = self.work.live.get(id).and_then(|w| w.process);
        let begun = self.work.start(id, work);
        let now = self.work.live.get(id).and_then(|w| w.process);
        if former != now {
            step.released.extend(former);
            if let Some(process) = now {
                self.watch(process, step);
            }
        }
        begun
    }

    /// Live work makes an idle session a background one, and takes back a drained state.
    pub(crate) fn background_by_work(&mut self, step: &mut Step) {
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

    pub(crate) fn work_finished(
        &mut self,
        said: Said<'_>,
        id: &str,
        cause: WorkEnd,
        rules: Rules<'_>,
        step: &mut Step,
    ) {
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

    pub(crate) fn level(&mut self, said: Said<'_>, live: &[WorkItem], except: Option<&str>, step: &mut Step) {
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
                self.take_path(Path::Normal, false, step);
            }
            Deferred::Abort => self.take_path(Path::Abnormal, false, step),
        }
    }
}
