//! `EVFILT_PROC` in one kqueue, itself watched by the runtime.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{event::kqueue::EventFlags, io::Errno, process::Pid};
use tokio::io::unix::AsyncFd;
use watchkeeper_core::identity::ProcessRef;

use super::{sys_macos, watch::Added};
use crate::{
    process::{Sameness, identity},
    readable::readable,
};

#[derive(Debug)]
pub(super) struct Source {
    queue: AsyncFd<OwnedFd>,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    /// Never used twice, so that an event of a removed watch means nobody.
    next_token: usize,
    by_token: BTreeMap<usize, ProcessRef>,
    tokens: BTreeMap<ProcessRef, usize>,
    /// Exited, not yet given out; still in `tokens` so that `remove` finds them.
    exited: VecDeque<ProcessRef>,
}

impl Source {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { queue: readable(sys_macos::open()?)?, watched: Mutex::default() })
    }

    pub(super) fn add(&self, process: ProcessRef) -> Added {
        let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return Added::Gone };
        let mut watched = self.watched();
        if watched.tokens.contains_key(&process) {
            return Added::Watching;
        }
        let token = watched.next_token;
        match sys_macos::change(self.queue.get_ref(), pid, token, EventFlags::ADD | EventFlags::ONESHOT) {
            Ok(()) => {}
            Err(Errno::SRCH) => return Added::Gone,
            Err(errno) => return Added::Refused { why: format!("kevent: {errno}") },
        }
        watched.next_token += 1;
        // Asked after the kernel has tied the watch to whoever has the pid.
        match identity::same(&process) {
            Sameness::Same => {
                watched.by_token.insert(token, process);
                watched.tokens.insert(process, token);
                Added::Watching
            }
            other @ (Sameness::Different | Sameness::Unknown) => {
                // The watch may have fired already; then there is nothing to delete.
                _ = sys_macos::change(self.queue.get_ref(), pid, token, EventFlags::DELETE);
                match other {
                    Sameness::Different => Added::Gone,
                    Sameness::Same | Sameness::Unknown => {
                        Added::Unknown { why: format!("process {} cannot be identified", process.pid) }
                    }
                }
            }
        }
    }

    pub(super) fn remove(&self, process: &ProcessRef) -> bool {
        let mut watched = self.watched();
        let Some(token) = watched.tokens.remove(process) else { return false };
        watched.exited.retain(|p| p != process);
        if watched.by_token.remove(&token).is_some()
            && let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw)
        {
            // Fired meanwhile: its event will find no token.
            _ = sys_macos::change(self.queue.get_ref(), pid, token, EventFlags::DELETE);
        }
        true
    }

    pub(super) fn len(&self) -> usize {
        self.watched().tokens.len()
    }

    pub(super) fn take_all(&self) -> Vec<ProcessRef> {
        let mut watched = self.watched();
        watched.by_token.clear();
        watched.exited.clear();
        std::mem::take(&mut watched.tokens).into_keys().collect()
    }

    /// Cancel-safe.
    pub(super) async fn exited(&self) -> io::Result<ProcessRef> {
        loop {
            if let Some(process) = self.watched().take_exited() {
                return Ok(process);
            }
            let mut ready = self.queue.readable().await?;
            match sys_macos::exited(self.queue.get_ref()) {
                Ok(tokens) if tokens.is_empty() => ready.clear_ready(),
                Ok(tokens) => self.watched().collect(&tokens),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        // Each change of the maps is complete before anything can panic.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn take_exited(&mut self) -> Option<ProcessRef> {
        let process = self.exited.pop_front()?;
        self.tokens.remove(&process);
        Some(process)
    }

    fn collect(&mut self, tokens: &[usize]) {
        for token in tokens {
            if let Some(process) = self.by_token.remove(token) {
                self.exited.push_back(process);
            }
        }
    }
}
