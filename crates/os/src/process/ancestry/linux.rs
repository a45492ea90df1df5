//! `/proc/PID/{stat,exe,cmdline}`.

use std::fs;

use super::walk::{ProcessRow, Step};
use crate::process::{
    Probe, identity,
    proc_files::{self, ReadError},
};

/// Arguments beyond this are not read; the last one may then be cut.
const MAX_ARGV_BYTES: u64 = 16 * 1024;

/// What the kernel appends to the path of a replaced executable.
const DELETED: &str = " (deleted)";

pub(super) fn read(pid: u32) -> Step {
    let stat = match proc_files::read_stat(pid) {
        Ok(stat) => stat,
        Err(ReadError::NotThere) => {
            return match identity::identify(pid) {
                Probe::No => Step::Gone,
                Probe::Yes(_) | Probe::Unknown { .. } => Step::Unreadable,
            };
        }
        Err(ReadError::Other(_)) => return Step::Unreadable,
    };
    let exe = executable(pid);
    let argv = arguments(pid);
    // The pid may have changed hands while its files were read one by one; the start tells.
    match proc_files::read_stat(pid) {
        Ok(again) if again.start_ticks == stat.start_ticks => {}
        Ok(_) | Err(ReadError::NotThere) => return Step::Gone,
        Err(ReadError::Other(_)) => return Step::Unreadable,
    }
    let row = ProcessRow {
        pid,
        ppid: stat.ppid,
        start: stat.start_ticks,
        exe,
        comm: stat.comm,
        argv,
        state: stat.state,
    };
    Step::Row { order: row.start, row }
}

/// The executable's path without the kernel's mark of deletion; empty when it is not ours to read.
pub(in crate::process) fn executable(pid: u32) -> String {
    let Ok(target) = fs::read_link(proc_files::path_of(pid, "exe")) else { return String::new() };
    let text = target.to_string_lossy();
    text.strip_suffix(DELETED).unwrap_or(&text).to_owned()
}

fn arguments(pid: u32) -> Vec<String> {
    let Ok(bytes) = proc_files::read_bounded(pid, "cmdline", MAX_ARGV_BYTES) else { return Vec::new() };
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
