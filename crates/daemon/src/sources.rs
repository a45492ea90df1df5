//! Where events come from: the one `select!` of the daemon.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use watchkeeper_os::process::exit_watch::ExitWatch;

use crate::{
    door::{Caller, DoorError, Listener, Stream},
    event::Event,
    signals::StopSignals,
};

/// After an accept failed for want of descriptors or memory, knocking callers wait this long instead of being tried in a
/// tight loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Paths remembered between two looks; past it everything is looked at.
const TOUCHED_MAX: usize = 4096;

/// Files that change all the time are looked at once in so long at most. A change after a quiet time is looked at right away.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// After a look comes a rest of so many times what it took: the more is written, the more is looked at together, since to be
/// woken and to commit cost as much for one line as for a hundred,
const REST: u32 = 24;
/// but the rest is no longer than this.
const REST_MAX: Duration = Duration::from_millis(50);

/// Paths that changed, from the file watcher's thread to the dispatcher. Merging loses nothing: a path is looked at as it is
/// when its turn comes.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    known: Mutex<Known>,
    some: Notify,
}

#[derive(Debug, Default)]
struct Known {
    paths: BTreeSet<PathBuf>,
    /// Everything must be looked at; no path says more than that.
    everything: bool,
    /// When the next look is due at the earliest.
    next_look: Option<Instant>,
}

impl Touched {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds paths; an empty set means everything.
    pub(crate) fn add(&self, paths: BTreeSet<PathBuf>) {
        let mut known = self.known();
        known.everything |= paths.is_empty() || known.paths.len() + paths.len() > TOUCHED_MAX;
        known.paths.extend(paths);
        if known.everything {
            known.paths.clear();
        }
        drop(known);
        self.some.notify_one();
    }

    /// Waits for paths and takes them; an empty set means everything. Cancellation safe.
    async fn take(&self) -> BTreeSet<PathBuf> {
        loop {
            let next_look = self.known().next_look;
            if let Some(due) = next_look {
                sleep_until(due).await;
            }
            if let Some(paths) = self.take_now() {
                return paths;
            }
            self.some.notified().await;
        }
    }

    /// A look at what was taken took so long.
    pub(crate) fn looked_for(&self, took: Duration) {
        self.known().next_look = Some(Instant::now() + took.saturating_mul(REST).clamp(LOOK_EVERY, REST_MAX));
    }

    fn take_now(&self) -> Option<BTreeSet<PathBuf>> {
        let mut known = self.known();
        if !known.everything && known.paths.is_empty() {
            return None;
        }
        known.everything = false;
        known.next_look = Some(Instant::now() + LOOK_EVERY);
        Some(std::mem::take(&mut known.paths))
    }
}

/// Everything that can wake the dispatcher.
#[derive(Debug)]
pub(crate) struct Sources {
    pub queue: mpsc::Receiver<Event>,
    pub hook_door: Listener,
    pub api_door: Listener,
    pub exits: Arc<ExitWatch>,
    pub touched: Arc<Touched>,
    pub signals: StopSignals,
    pub tasks: JoinSet<()>,
    pub paused_until: Option<Instant>,
}

/// When the dispatcher wants to be woken without anything happening.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Alarms {
    pub deadline: Option<Instant>,
    pub reconcile: Option<Instant>,
}

impl Sources {
    /// A hook that knocks at this moment; `None` when nobody does.
    pub(crate) fn knocking(&mut self) -> Option<Result<(Stream, Caller), DoorError>> {
        let accepting = std::pin::pin!(self.hook_door.accept());
        // Whoever knocks later wakes the `select!`, which asks anew.
        match accepting.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(knock) => Some(knock),
            Poll::Pending => None,
        }
    }

    /// The next event, chosen at random among those that are ready, so that no busy source keeps the others out.
    /// Cancellation safe. With no alarm set and nobody calling, it sleeps for ever.
    pub(crate) async fn next(&mut self, alarms: Alarms) -> Event {
        if self.paused_until.is_some_and(|until| until <= Instant::now()) {
            self.paused_until = None;
        }
        let open = self.paused_until.is_none();
        let event = tokio::select! {
            signal = self.signals.next() => Event::Signal(signal),
            Some(event) = self.queue.recv() => event,
            process = self.exits.next() => Event::ProcessExited(process),
            () = at(alarms.deadline) => Event::DeadlineReached,
            paths = self.touched.take() => Event::FilesTouched(paths),
            knock = self.hook_door.accept(), if open => Event::HookKnocked(knock),
            knock = self.api_door.accept(), if open => Event::ApiKnocked(knock),
            Some(result) = self.tasks.join_next() => Event::TaskEnded { result },
            () = at(alarms.reconcile) => Event::ReconcileDue,
            () = at(self.paused_until) => Event::ReconcileDue,
        };
        if let Event::HookKnocked(Err(DoorError::Accept { .. }))
        | Event::ApiKnocked(Err(DoorError::Accept { .. })) = &event
        {
            self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
        }
        event
    }
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> BTreeSet<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_all_the_time_is_looked_at_together() {
        let touched = Touched::default();
        let began = Instant::now();
        touched.add(paths(&["a"]));
        assert_eq!((touched.take().await, began.elapsed()), (paths(&["a"]), Duration::ZERO));
        touched.looked_for(LOOK_EVERY);
        let rest = LOOK_EVERY * REST;
        touched.add(paths(&["a"]));
        // Whoever gives up waiting takes nothing along.
        let waiting = tokio::time::timeout(rest / 2, touched.take()).await;
        assert!(waiting.is_err());
        touched.add(paths(&["b"]));
        assert_eq!((touched.take().await, began.elapsed()), (paths(&["a", "b"]), rest));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_look_is_followed_by_a_longer_rest() {
        let touched = Touched::default();
        for (took, rest) in [(1, 24), (0, 1), (2, 48), (u64::from(u32::MAX), 50)] {
            touched.looked_for(Duration::from_millis(took));
            touched.add(paths(&["a"]));
            let began = Instant::now();
            assert_eq!(touched.take().await, paths(&["a"]));
            assert_eq!(began.elapsed(), Duration::from_millis(rest), "after {took} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn everything_says_more_than_any_path() {
        let touched = Touched::default();
        touched.add(paths(&["a"]));
        touched.add(BTreeSet::new());
        touched.add(paths(&["b"]));
        assert_eq!(touched.take().await, BTreeSet::new());
        assert!(touched.take_now().is_none());
    }
}
