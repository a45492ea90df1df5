//! `/proc/PID/stat`, read while a pidfd pins the pid.

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};

use crate::process::{
    Probe, RunState,
    proc_files::{self, Opened, ReadError},
};

/// Start of a living process in clock ticks since boot.
pub(super) fn start_of(pid: u32) -> Probe<u64> {
    match proc_files::open_pidfd(pid) {
        Opened::NoProcess => Probe::No,
        Opened::Pidfd(pidfd) => {
            let stat = proc_files::read_stat(pid);
            // Asked after the read: a process that is still there had this pid, and so this line, all the while.
            match proc_files::has_exited(&pidfd) {
                Ok(true) => Probe::No,
                Ok(false) => match stat {
                    Ok(stat) => Probe::Yes(stat.start_ticks),
                    Err(ReadError::NotThere) => Probe::unknown(format!("process {pid} is hidden from us")),
                    Err(ReadError::Other(why)) => Probe::Unknown { why },
                },
                Err(errno) => Probe::unknown(format!("poll of the pidfd of {pid}: {errno}")),
            }
        }
        Opened::Refused(_) => unpinned(pid),
    }
}

/// Without a pidfd: two equal reads make a reuse in between all but impossible, and a zombie is told by its state.
fn unpinned(pid: u32) -> Probe<u64> {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Probe::No };
    match (proc_files::read_stat(pid), proc_files::read_stat(pid)) {
        (Ok(first), Ok(second)) if first.start_ticks == second.start_ticks => match second.state {
            RunState::Exited => Probe::No,
            RunState::Running
            | RunState::Sleeping
            | RunState::DiskWait
            | RunState::Stopped
            | RunState::Traced
            | RunState::Unknown => Probe::Yes(second.start_ticks),
        },
        (_, Err(ReadError::NotThere)) if test_kill_process(raw) == Err(Errno::SRCH) => Probe::No,
        (_, Err(ReadError::Other(why))) => Probe::Unknown { why },
        _ => Probe::unknown(format!("process {pid} cannot be read steadily")),
    }
}
