//! How an incarnation ends, by report or by the kernel, and what it leaves.

use crate::{
    apply::Said,
    core::Bequest,
    effect::Effect,
    identity::ProcessRef,
    marks::Mark,
    ordering::{When, advance},
    session::{Deferred, EndCause, FACT_MAX_BYTES, Halt, Phase, Session, cut},
    signal::{EndReason, Lineage, Source, Thread},
    step::{Path, PathTaken, Rules, Step},
};

impl Session {
    pub(crate) fn take_path(&mut self, path: Path, can_reply: bool, step: &mut Step) {
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

    pub(crate) fn session_ended(
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
            self.succeeded_by(reason, successor);
        }
        match reason {
            EndReason::Cleared | EndReason::Forked | EndReason::Moved => {
                self.bequeath(reason, successor, step);
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

    /// Links the session that takes this one's place; whether that is news.
    pub(crate) fn succeeded_by(&mut self, reason: EndReason, successor: &str) -> bool {
        let id = cut(successor, FACT_MAX_BYTES);
        let link = match reason {
            EndReason::Cleared => Lineage::ClearedTo(id),
            EndReason::Reported | EndReason::Forked | EndReason::Moved | EndReason::Stopped => {
                Lineage::ContinuedIn(id)
            }
        };
        let is_news = !self.lineage.contains(&link);
        self.link(link);
        is_news
    }

    /// Live work goes to whoever takes this session's place.
    pub(crate) fn bequeath(&mut self, reason: EndReason, successor: Option<&str>, step: &mut Step) {
        let live = std::mem::take(&mut self.work.live);
        step.released.extend(live.values().filter_map(|w| w.process));
        let own = self.processes.iter().map(|p| p.process);
        let bequest = Bequest {
            from: self.key.clone(),
            successor: successor.map(|id| cut(id, FACT_MAX_BYTES)),
            goes_on: reason != EndReason::Cleared,
            processes: own.chain(self.former.iter().map(|f| f.process)).collect(),
            live: live.into_iter().collect(),
        };
        // With nothing left, and nothing to tell its heir by, there is nothing to keep.
        let is_worth =
            !bequest.live.is_empty() || bequest.successor.is_some() || !bequest.processes.is_empty();
        step.bequest = Some(bequest).filter(|_| is_worth);
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
                self.evidence.push(
                    &step.now,
                    when.boot_at(&step.now),
                    source,
                    cause.name(),
                    "it was over already",
                );
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
        self.evidence.push(&step.now, when.boot_at(&step.now), source, cause.name(), "the session is over");
        if was_active {
            self.take_path(path, false, step);
        }
    }

    /// A process is gone: of work, of the agent, or both.
    pub(crate) fn process_gone(
        &mut self,
        process: &ProcessRef,
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
            self.evidence.push(
                &step.now,
                when.boot_at(&step.now),
                source,
                "process_exited",
                "its work item is over",
            );
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
                    when.boot_at(&step.now),
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

    /// Asks for an exit watch on a process.
    pub(crate) fn watch(&mut self, process: ProcessRef, step: &mut Step) {
        step.acquired.push(process);
        step.effect(Effect::WatchProcess { key: self.key.clone(), incarnation: self.incarnation, process });
    }
}
