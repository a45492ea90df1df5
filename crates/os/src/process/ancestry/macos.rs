//! libproc for the parent and the path, the argument area for the arguments.

use std::ffi::CStr;

use rustix::io::Errno;

use super::{
    argument_area,
    walk::{ProcessRow, Step},
};
use crate::process::{RunState, sys_macos};

/// The argument area beyond this is not read; the last argument may then be cut.
const MAX_ARGUMENT_BYTES: usize = 16 * 1024;

pub(super) fn read(pid: u32) -> Step {
    let info = match sys_macos::short_info(pid) {
        Ok(info) => info,
        Err(Errno::SRCH) => return Step::Gone,
        Err(_) => return Step::Unreadable,
    };
    let Ok(identifier) = sys_macos::unique_identifier(pid) else {
        return Step::Skip { ppid: info.pbsi_ppid };
    };
    let row = ProcessRow {
        pid,
        ppid: info.pbsi_ppid,
        start: identifier.unique_id,
        exe: executable(pid),
        comm: comm(&info),
        argv: sys_macos::argument_area(pid, MAX_ARGUMENT_BYTES)
            .map_or_else(Vec::new, |area| argument_area::arguments(&area)),
        state: state(info.pbsi_status),
    };
    // The pid may have changed hands while it was read piece by piece.
    match sys_macos::unique_identifier(pid) {
        Ok(again) if again.unique_id == identifier.unique_id => Step::Row { order: row.start, row },
        Ok(_) | Err(_) => Step::Gone,
    }
}

pub(in crate::process) fn executable(pid: u32) -> String {
    sys_macos::executable(pid).map_or_else(String::new, |path| String::from_utf8_lossy(&path).into_owned())
}

pub(in crate::process) fn comm(info: &libc::proc_bsdshortinfo) -> String {
    let bytes: Vec<u8> = info.pbsi_comm.iter().map(|byte| byte.cast_unsigned()).chain([0]).collect();
    CStr::from_bytes_until_nul(&bytes)
        .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}

pub(in crate::process) fn state(status: u32) -> RunState {
    match status {
        libc::SRUN => RunState::Running,
        libc::SSLEEP => RunState::Sleeping,
        libc::SSTOP => RunState::Stopped,
        libc::SZOMB => RunState::Exited,
        _ => RunState::Unknown,
    }
}
