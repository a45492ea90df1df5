//! The watch as callers see it: the kernel's source, and polling for the few that it refuses.

use std::{
    collections::BTreeSet,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use watchkeeper_core::identity::ProcessRef;

use super::platform::Source;
use crate::process::{Sameness, identity};

/// How often processes are looked at that the kernel cannot watch for us. An exit is then seen this late at most.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// How a process came to be watched, or why it need not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// The kernel will tell.
    Kernel,
    /// Looked at every [`POLL_INTERVAL`].
    Polled {
        /// Why the kernel cannot tell (descriptor limit, old kernel, filter), for `doctor`.
        why: String,
    },
    /// It had exited before it could be watched; there will be no notice.
    AlreadyGone,
}

/// A watch that was not set up.
#[derive(Debug, thiserror::Error)]
#[error("watching process {pid}: its identity is unknown: {why}")]
pub struct WatchError {
    pub pid: u32,
    pub why: String,
}

/// The event source could not be made.
#[derive(Debug, thiserror::Error)]
#[error("making the exit watch's event source")]
pub struct ExitWatchError(#[from] pub io::Error);

/// What a platform answers to a new watch.
#[derive(Debug)]
pub(super) enum Added {
    Watching,
    Gone,
    /// The kernel cannot watch this one now.
    Refused {
        why: String,
    },
    /// Not known to be the process that was meant.
    Unknown {
        why: String,
    },
}

/// All watched processes. Usable from one task at a time for [`next`](Self::next), from any for the rest.
#[derive(Debug)]
pub struct ExitWatch {
    source: Source,
    polled: Mutex<Polled>,
    /// Wakes a pending `next` when the first process becomes polled.
    polled_changed: Notify,
}

#[derive(Debug)]
struct Polled {
    processes: BTreeSet<ProcessRef>,
    next_look: Instant,
}

impl ExitWatch {
    /// Makes the event source. Must be called inside a tokio runtime with its IO driver on (current-thread will do).
    ///
    /// # Errors
    /// When the system gives no event descriptor.
    pub fn new() -> Result<Self, ExitWatchError> {
        Ok(Self {
            source: Source::new()?,
            polled: Mutex::new(Polled {
                processes: BTreeSet::new(),
                next_look: Instant::now() + POLL_INTERVAL,
            }),
            polled_changed: Notify::new(),
        })
    }

    /// Watches `process` until its exit or [`unwatch`](Self::unwatch). Does not block. The identity is checked after
    /// the pid is pinned, so that the notice is about this process and no later one. A process that is watched
    /// already stays watched once: it gives one notice.
    ///
    /// # Errors
    /// When it cannot be told whether the pid still is that process; it is then not watched.
    pub fn watch(&self, process: ProcessRef) -> Result<Watch, WatchError> {
        match self.source.add(process) {
            Added::Watching => Ok(Watch::Kernel),
            Added::Gone => Ok(Watch::AlreadyGone),
            Added::Unknown { why } => Err(WatchError { pid: process.pid, why }),
            Added::Refused { why } => match identity::same(&process) {
                Sameness::Different => Ok(Watch::AlreadyGone),
                // Unknown, too: a look can only ever tell the exit of this very process.
                Sameness::Same | Sameness::Unknown => {
                    self.poll(process);
                    Ok(Watch::Polled { why })
                }
            },
        }
    }

    /// Ends a watch; whether there was one. A notice that was not yet taken is dropped with it.
    pub fn unwatch(&self, process: &ProcessRef) -> bool {
        let polled = self.polled().processes.remove(process);
        self.source.remove(process) || polled
    }

    /// How many processes are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.source.len() + self.polled().processes.len()
    }

    /// Whether none is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of them are polled, for `doctor`.
    #[must_use]
    pub fn polled_len(&self) -> usize {
        self.polled().processes.len()
    }

    /// Waits for the next exit; its watch ends with it. Cancel-safe: a notice is only taken by returning it.
    pub async fn next(&self) -> ProcessRef {
        loop {
            let next_look = {
                let polled = self.polled();
                (!polled.processes.is_empty()).then_some(polled.next_look)
            };
            let look = async {
                match next_look {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let lost = tokio::select! {
                exited = self.source.exited() => match exited {
                    Ok(process) => return process,
                    Err(e) => Some(e),
                },
                () = look => None,
                () = self.polled_changed.notified() => continue,
            };
            if let Some(e) = lost {
                let processes = self.source.take_all();
                tracing::warn!(error = %e, processes = processes.len(), "the kernel's exit notices failed; polling");
                for process in processes {
                    self.poll(process);
                }
                if self.is_empty() {
                    // Nothing to lose; do not spin on a broken source.
                    sleep_until(Instant::now() + POLL_INTERVAL).await;
                }
            }
            if let Some(process) = self.look() {
                return process;
            }
        }
    }

    fn poll(&self, process: ProcessRef) {
        let mut polled = self.polled();
        if polled.processes.is_empty() {
            polled.next_look = Instant::now() + POLL_INTERVAL;
        }
        polled.processes.insert(process);
        drop(polled);
        self.polled_changed.notify_one();
    }

    /// One exited process among the polled; when there is none, the next look is [`POLL_INTERVAL`] away.
    fn look(&self) -> Option<ProcessRef> {
        let mut polled = self.polled();
        if polled.next_look > Instant::now() {
            return None;
        }
        let gone = polled.processes.iter().copied().find(|p| identity::same(p) == Sameness::Different);
        match gone {
            Some(process) => _ = polled.processes.remove(&process),
            None => polled.next_look = Instant::now() + POLL_INTERVAL,
        }
        gone
    }

    fn polled(&self) -> MutexGuard<'_, Polled> {
        // A panic elsewhere cannot leave a half-made set.
        self.polled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
