//! The creation time, read while a handle pins the pid.

use windows_sys::Win32::Foundation::ERROR_INVALID_PARAMETER;

use crate::process::{Probe, sys_windows};

/// Creation time of a living process as a FILETIME.
pub(super) fn start_of(pid: u32) -> Probe<u64> {
    // 0 is the idle "process"; `OpenProcess` rounds other numbers down to a multiple of four, so that a number that
    // is none would name its neighbour.
    if pid == 0 || !pid.is_multiple_of(4) {
        return Probe::No;
    }
    let process = match sys_windows::open(pid) {
        Ok(process) => process,
        Err(e) if e.raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed()) => return Probe::No,
        Err(e) => return Probe::unknown(format!("opening process {pid}: {e}")),
    };
    match (sys_windows::has_exited(&process), sys_windows::times(&process)) {
        (Ok(true), _) => Probe::No,
        (Ok(false), Ok(times)) => Probe::Yes(times.created),
        (Err(e), _) | (_, Err(e)) => Probe::unknown(format!("asking process {pid}: {e}")),
    }
}
