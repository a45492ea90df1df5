//! The kernel's unique process id, which no later process of this boot gets.

use rustix::io::Errno;

use crate::process::{Probe, sys_macos};

pub(super) fn start_of(pid: u32) -> Probe<u64> {
    if pid == 0 {
        return Probe::No;
    }
    // Asked first: of a zombie the short information is refused as of a process that never was.
    match sys_macos::short_info(pid) {
        Ok(info) if info.pbsi_status == libc::SZOMB => return Probe::No,
        Ok(_) => {}
        Err(Errno::SRCH) => return Probe::No,
        Err(errno) => return Probe::unknown(format!("process {pid}: {errno}")),
    }
    match sys_macos::unique_identifier(pid) {
        Ok(identifier) => Probe::Yes(identifier.unique_id),
        Err(Errno::SRCH) => Probe::No,
        Err(errno) => Probe::unknown(format!("process {pid}: {errno}")),
    }
}
