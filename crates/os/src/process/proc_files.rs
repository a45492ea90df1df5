//! Reading `/proc`: bounded, and with "gone" told apart from "not allowed".

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use watchkeeper_core::time::Boot;

use super::proc_stat::{self, ProcStat};

/// A stat line is about 300 bytes; what lies beyond this is not read and the line is refused.
const MAX_STAT_BYTES: u64 = 4096;

/// Why a file of a process was not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The process is not visible; it may have gone or be hidden from us (`hidepid`).
    NotThere,
    Other(String),
}

pub(crate) fn path_of(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// The stat line of a process or, for a thread id, of its thread: callers check by pidfd that it is a process.
pub(crate) fn read_stat(pid: u32) -> Result<ProcStat, ReadError> {
    let bytes = read_bounded(pid, "stat", MAX_STAT_BYTES)?;
    proc_stat::parse(&bytes).ok_or_else(|| ReadError::Other(format!("/proc/{pid}/stat is no stat line")))
}

/// At most `limit` bytes of a file of a process; more are left unread.
pub(crate) fn read_bounded(pid: u32, file: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
    let path = path_of(pid, file);
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(512);
        File::open(&path)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::NOENT | Errno::SRCH) => ReadError::NotThere,
        _ => ReadError::Other(format!("{}: {e}", path.display())),
    })
}

/// What opening a pidfd told.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The process (never a mere thread) exists, perhaps exited and not reaped.
    Pidfd(OwnedFd),
    /// No process has this pid.
    NoProcess,
    /// The kernel (before 5.3), a seccomp filter or the descriptor limit refused.
    Refused(Errno),
}

pub(crate) fn open_pidfd(pid: u32) -> Opened {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Opened::NoProcess };
    match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(fd) => Opened::Pidfd(fd),
        // INVAL (NOENT since 6.9) is the answer for the id of a thread that leads no process.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Opened::NoProcess,
        Err(errno) => Opened::Refused(errno),
    }
}

/// Whether the process behind a pidfd has exited with all its threads.
pub(crate) fn has_exited(pidfd: &impl AsFd) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        match poll(&mut fds, Some(&at_once)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// A start in clock ticks as a moment of the boot clock.
pub(crate) fn started_at(start_ticks: u64) -> Boot {
    let hertz = rustix::param::clock_ticks_per_second().max(1);
    let nanos = u128::from(start_ticks) * 1_000_000_000 / u128::from(hertz);
    Boot(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// CPU time in clock ticks as milliseconds.
pub(crate) fn ticks_to_ms(ticks: u64) -> u64 {
    let hertz = rustix::param::clock_ticks_per_second().max(1);
    u64::try_from(u128::from(ticks) * 1000 / u128::from(hertz)).unwrap_or(u64::MAX)
}
