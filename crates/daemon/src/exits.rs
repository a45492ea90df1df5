//! Exits of agents: one counts when everything was heard that hooks and transcripts said before, and in any case soon.

use std::time::Duration;

use tokio::time::Instant;
use watchkeeper_core::{Incarnation, InputBody, ProcessRef, SessionKey, input::WatchOutcome};

use crate::{dispatcher::Dispatcher, event::Event, intake_hooks::Drained, sources::Sources};

/// An exit counts so long after it was noticed although not everything was heard that came before it.
const EXIT_WITHIN: Duration = Duration::from_secs(15);
/// A hook that was let in before has so long for its frame: at its own deadline it takes its event to the spool.
const FRAMES_WITHIN: Duration = Duration::from_millis(250);
/// Hooks let in at once because an exit was noticed; those behind them knock on.
const KNOCKS_MAX: usize = 256;

/// A spool that cannot be listed is tried again after so long.
const SPOOL_AGAIN: Duration = Duration::from_millis(250);

/// Processes that are gone while not all was heard of what they did. Bounded by what is watched.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    waiting: Vec<Exited>,
    /// Nothing is tried before.
    pause: Option<Instant>,
}

#[derive(Debug)]
struct Exited {
    process: ProcessRef,
    /// The session that asked for a watch of a process that was gone already; `None`: it was watched.
    asked_by: Option<(SessionKey, Incarnation)>,
    /// The last hook that was let in before.
    last_hook: u64,
    hooks: Hooks,
    /// Hooks that are on their way are not waited for any longer.
    frames_by: Instant,
    /// Its exit counts by then.
    latest: Instant,
}

/// The hooks that were let in before an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooks {
    OnTheirWay,
    Queued,
    Heard,
}

impl Dispatcher {
    /// A watched process is gone.
    pub(crate) fn process_exited(&mut self, process: ProcessRef, sources: &mut Sources) {
        // Its last hook may stand at the door.
        for _ in 0..KNOCKS_MAX {
            let Some(knock) = sources.knocking() else { break };
            self.hook_knocked(knock, &mut sources.tasks);
        }
        self.note_exit(process, None);
        // One is settled at once; of many at once each would have all of them looked at.
        if self.exited.waiting.len() == 1 {
            self.settle_exits();
        }
    }

    /// A process was gone before it could be watched. Not at once: what else was decided together is carried out first.
    pub(crate) fn gone_before_watch(
        &mut self,
        key: SessionKey,
        incarnation: Incarnation,
        process: ProcessRef,
    ) {
        self.note_exit(process, Some((key, incarnation)));
    }

    fn note_exit(&mut self, process: ProcessRef, asked_by: Option<(SessionKey, Incarnation)>) {
        let now = Instant::now();
        self.exited.waiting.push(Exited {
            process,
            asked_by,
            last_hook: self.readers.last(),
            hooks: Hooks::OnTheirWay,
            frames_by: now + FRAMES_WITHIN,
            latest: now + EXIT_WITHIN,
        });
    }

    /// When exits are to be looked at again although nobody says anything.
    pub(crate) fn next_settling(&self) -> Option<Instant> {
        let is_behind = self.journal.is_behind();
        let now = Instant::now();
        let next = self.exited.waiting.iter().map(|exited| match exited.hooks {
            // Nothing is read while the journal is behind; its next report wakes us.
            _ if is_behind => exited.latest,
            Hooks::OnTheirWay if self.readers.are_through(exited.last_hook) => now,
            Hooks::OnTheirWay => exited.frames_by,
            Hooks::Queued => exited.latest,
            Hooks::Heard => self.exited.pause.unwrap_or(now).min(exited.latest),
        });
        next.min()
    }

    /// What hooks up to this number brought stood in the queue before this word.
    pub(crate) fn hooks_heard(&mut self, number: u64) {
        for exited in &mut self.exited.waiting {
            if exited.hooks == Hooks::Queued && exited.last_hook <= number {
                exited.hooks = Hooks::Heard;
            }
        }
        self.settle_exits();
    }

    /// Lets those exits count before which everything was heard: hooks that were let in, the spool, the transcripts of their
    /// sessions. What cannot be heard in this turn is heard in the next.
    pub(crate) fn settle_exits(&mut self) {
        self.queue_behind_hooks();
        let now = Instant::now();
        let is_due = |exited: &Exited| exited.hooks == Hooks::Heard || now >= exited.latest;
        if !self.exited.waiting.iter().any(is_due) {
            return;
        }
        let spool = if self.journal.is_behind() { Drained::Failed } else { self.drain_spool() };
        self.exited.pause = (spool == Drained::Failed).then(|| now + SPOOL_AGAIN);
        for exited in std::mem::take(&mut self.exited.waiting) {
            if is_due(&exited) && (self.is_heard(&exited, spool) || now >= exited.latest) {
                self.count_exit(exited);
            } else {
                self.exited.waiting.push(exited);
            }
        }
    }

    /// Hooks that were let in before an exit are in our queue by now, or will not be: the exit takes its place behind them.
    fn queue_behind_hooks(&mut self) {
        let now = Instant::now();
        let readers = &self.readers;
        let is_through = |exited: &&mut Exited| {
            exited.hooks == Hooks::OnTheirWay
                && (readers.are_through(exited.last_hook) || now >= exited.frames_by)
        };
        let mut through: Vec<&mut Exited> = self.exited.waiting.iter_mut().filter(is_through).collect();
        let Some(number) = through.iter().map(|exited| exited.last_hook).max() else { return };
        if self.events.try_send(Event::HooksHeard { number }).is_err() {
            return; // no room: the next turn makes some
        }
        for exited in &mut through {
            exited.hooks = Hooks::Queued;
        }
    }

    fn is_heard(&mut self, exited: &Exited, spool: Drained) -> bool {
        let sessions = self.core.incarnations_of(&exited.process);
        for (key, _) in &sessions {
            self.look_at(key);
        }
        spool == Drained::All && !sessions.iter().any(|(key, _)| self.unread.has(key))
    }

    fn count_exit(&mut self, exited: Exited) {
        let Exited { process, asked_by, .. } = exited;
        if let Some((key, incarnation)) = asked_by {
            let outcome = WatchOutcome::AlreadyGone;
            _ = self.apply(InputBody::WatchReported { key, incarnation, process, outcome });
            return;
        }
        for (key, incarnation) in self.core.incarnations_of(&process) {
            let signal = crate::boot::exit_signal(key, incarnation, process, &self.now());
            _ = self.apply(InputBody::Signal { signal: Box::new(signal), held: None });
        }
    }
}
