//! pidfds in one epoll descriptor, itself watched by the runtime.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
    io::Errno,
};
use tokio::io::unix::AsyncFd;
use watchkeeper_core::identity::ProcessRef;

use super::watch::Added;
use crate::{
    clock::boot_id,
    process::proc_files::{self, Opened, ReadError},
    readable::readable,
};

/// Exits taken from the kernel at once; more wait in the kernel for the next call.
const MAX_EVENTS: usize = 256;

#[derive(Debug)]
pub(super) struct Source {
    epoll: AsyncFd<OwnedFd>,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    /// Never used twice, so that an event of a removed watch means nobody.
    next_token: u64,
    by_token: BTreeMap<u64, (ProcessRef, OwnedFd)>,
    tokens: BTreeMap<ProcessRef, u64>,
    /// Exited, not yet given out; still in `tokens` so that `remove` finds them.
    exited: VecDeque<ProcessRef>,
}

impl Source {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll: readable(epoll)?, watched: Mutex::default() })
    }

    pub(super) fn add(&self, process: ProcessRef) -> Added {
        if self.watched().tokens.contains_key(&process) {
            return Added::Watching;
        }
        let boot = boot_id();
        if boot.0 == 0 || process.boot.0 == 0 || process.start == 0 {
            return Added::Unknown { why: "no complete identity".to_owned() };
        }
        if process.boot != boot {
            return Added::Gone;
        }
        let pidfd = match proc_files::open_pidfd(process.pid) {
            Opened::Pidfd(pidfd) => pidfd,
            Opened::NoProcess => return Added::Gone,
            Opened::Refused(errno) => return Added::Refused { why: format!("pidfd_open: {errno}") },
        };
        let stat = proc_files::read_stat(process.pid);
        match proc_files::has_exited(&pidfd) {
            Ok(true) => return Added::Gone,
            Ok(false) => {}
            Err(errno) => return Added::Refused { why: format!("poll of a pidfd: {errno}") },
        }
        match stat {
            Ok(stat) if stat.start_ticks == process.start => {}
            Ok(_) => return Added::Gone,
            Err(ReadError::NotThere) => return Added::Unknown { why: "hidden from us".to_owned() },
            Err(ReadError::Other(why)) => return Added::Unknown { why },
        }
        let mut watched = self.watched();
        let token = watched.next_token;
        match epoll::add(&self.epoll, &pidfd, epoll::EventData::new_u64(token), epoll::EventFlags::IN) {
            Ok(()) => {
                watched.next_token += 1;
                watched.tokens.insert(process, token);
                watched.by_token.insert(token, (process, pidfd));
                Added::Watching
            }
            // The kernel's limit is fs.epoll.max_user_watches.
            Err(errno) => Added::Refused { why: format!("epoll_ctl: {errno}") },
        }
    }

    pub(super) fn remove(&self, process: &ProcessRef) -> bool {
        let mut watched = self.watched();
        let Some(token) = watched.tokens.remove(process) else { return false };
        watched.exited.retain(|p| p != process);
        // Closing the only descriptor of a pidfd takes it out of the epoll set.
        drop(watched.by_token.remove(&token));
        true
    }

    pub(super) fn len(&self) -> usize {
        self.watched().tokens.len()
    }

    /// Ends every watch of the kernel's.
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
            let mut ready = self.epoll.readable().await?;
            let mut watched = self.watched();
            if watched.collect(&self.epoll)? == 0 {
                ready.clear_ready();
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

    /// Moves exits from the kernel to the queue; how many events there were.
    fn collect(&mut self, epoll: &AsyncFd<OwnedFd>) -> io::Result<usize> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(MAX_EVENTS);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(epoll, spare_capacity(&mut events), Some(&at_once)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(1),
            Err(errno) => return Err(errno.into()),
        }
        for event in &events {
            // The event is packed: copy before use.
            let data = event.data;
            if let Some((process, pidfd)) = self.by_token.remove(&data.u64()) {
                drop(pidfd);
                self.exited.push_back(process);
            }
        }
        Ok(events.len())
    }
}
