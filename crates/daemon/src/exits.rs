//! Exits of agents: one counts when everything was heard that its session said before, and in any case soon.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;
use watchkeeper_core::{InputBody, ProcessRef};

use crate::{dispatcher::Dispatcher, intake_hooks::SPOOL_A_TURN};

/// An exit counts so long after it was noticed although not everything was heard that came before it.
const EXIT_WITHIN: Duration = Duration::from_secs(5);

/// Processes that are gone while not all was heard of what they did. Bounded by what is watched.
#[derive(Debug, Default)]
pub(crate) struct Exits(VecDeque<Exited>);

#[derive(Debug, Clone, Copy)]
struct Exited {
    process: ProcessRef,
    /// Its exit counts by then.
    latest: Instant,
}

impl Exits {
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the next of them counts, whatever was heard by then.
    #[must_use]
    pub(crate) fn latest(&self) -> Option<Instant> {
        self.0.iter().map(|exited| exited.latest).min()
    }
}

impl Dispatcher {
    pub(crate) fn process_exited(&mut self, process: ProcessRef) {
        self.exited.0.push_back(Exited { process, latest: Instant::now() + EXIT_WITHIN });
        self.settle_exits();
    }

    /// The last words of a hook that found no room, of a transcript and of a state file come before the exit that ends their
    /// session. What cannot be heard in this turn is heard in the next.
    pub(crate) fn settle_exits(&mut self) {
        if self.exited.is_empty() {
            return;
        }
        let spool_is_heard = !self.journal.is_behind() && self.drain_spool() < SPOOL_A_TURN;
        for exited in std::mem::take(&mut self.exited.0) {
            let Exited { process, latest } = exited;
            let sessions = self.core.incarnations_of(&process);
            for (key, _) in &sessions {
                self.look_at(key);
            }
            let is_heard = spool_is_heard && !sessions.iter().any(|(key, _)| self.unread.has(key));
            if !is_heard && Instant::now() < latest {
                self.exited.0.push_back(exited);
                continue;
            }
            for (key, incarnation) in self.core.incarnations_of(&process) {
                let signal = crate::boot::exit_signal(key, incarnation, process, &self.now());
                _ = self.apply(InputBody::Signal { signal: Box::new(signal), held: None });
            }
        }
    }
}
