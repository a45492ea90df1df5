//! kqueue's calls, which rustix marks unsafe for the sake of descriptor filters.
#![expect(unsafe_code, reason = "kevent is unsafe in general; with process filters alone it is not")]

use std::{io, os::fd::OwnedFd, ptr};

use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        kqueue::{self, Event, EventFilter, EventFlags, ProcessEvents},
    },
    io::{Errno, FdFlags},
    process::Pid,
};

/// Exits taken from the kernel at once; more wait in the kernel for the next call.
const MAX_EVENTS: usize = 256;

pub(super) fn open() -> io::Result<OwnedFd> {
    let queue = kqueue::kqueue()?;
    rustix::io::fcntl_setfd(&queue, FdFlags::CLOEXEC)?;
    Ok(queue)
}

/// Adds or deletes the watch for the exit of a pid.
pub(super) fn change(queue: &OwnedFd, pid: Pid, token: usize, flags: EventFlags) -> Result<(), Errno> {
    let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
    let event = Event::new(filter, flags, ptr::without_provenance_mut(token));
    let mut none: [Event; 0] = [];
    // SAFETY: the filter names a process, no descriptor; the token is never used as an address.
    unsafe { kqueue::kevent_timespec(queue, &[event], &mut none, None) }.map(|_count| ())
}

/// Tokens of processes that have exited; does not wait.
pub(super) fn exited(queue: &OwnedFd) -> Result<Vec<usize>, Errno> {
    let mut events: Vec<Event> = Vec::with_capacity(MAX_EVENTS);
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: nothing is changed, and all filters of this queue name processes.
    unsafe { kqueue::kevent_timespec(queue, &[], spare_capacity(&mut events), Some(&at_once)) }?;
    Ok(events.iter().map(|event| event.udata().addr()).collect())
}
