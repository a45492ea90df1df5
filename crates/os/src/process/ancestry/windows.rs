//! A handle per process; the process list for parents of those that cannot be opened.

use windows_sys::Win32::Foundation::ERROR_INVALID_PARAMETER;

use super::{
    command_line,
    walk::{ProcessRow, Step},
};
use crate::process::{RunState, sys_windows};

/// A command line with its header; a longer one is left out.
const MAX_COMMAND_LINE_BYTES: usize = 16 * 1024;

pub(super) fn read(pid: u32) -> Step {
    let process = match sys_windows::open(pid) {
        Ok(process) => process,
        Err(e) if e.raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed()) => return Step::Gone,
        Err(_) => return from_list(pid),
    };
    let Ok(times) = sys_windows::times(&process) else { return from_list(pid) };
    let Ok(ppid) = sys_windows::parent(&process) else { return from_list(pid) };
    let exe = sys_windows::image(&process).unwrap_or_default();
    let comm = exe.rsplit(['\\', '/']).next().unwrap_or_default().to_owned();
    let line = sys_windows::command_line(&process, MAX_COMMAND_LINE_BYTES);
    let state = match sys_windows::has_exited(&process) {
        Ok(true) => RunState::Exited,
        Ok(false) => RunState::Running,
        Err(_) => RunState::Unknown,
    };
    let row = ProcessRow {
        pid,
        ppid,
        start: times.created,
        exe,
        comm,
        argv: line.map_or_else(Vec::new, |line| command_line::split(&line)),
        state,
    };
    Step::Row { order: row.start, row }
}

/// A process of the system or of another user: passed over, if it is there.
fn from_list(pid: u32) -> Step {
    let Ok(list) = sys_windows::list() else { return Step::Unreadable };
    list.iter().find(|listed| listed.pid == pid).map_or(Step::Gone, |listed| Step::Skip { ppid: listed.ppid })
}

pub(in crate::process) fn executable(pid: u32) -> String {
    sys_windows::open(pid).and_then(|process| sys_windows::image(&process)).unwrap_or_default()
}
