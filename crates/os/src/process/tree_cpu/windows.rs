//! The process list, then a handle per process. A process that cannot be opened belongs to no subtree: its start is
//! unknown. CPU of exited children is not counted.

use watchkeeper_core::time::{Boot, Now, Wall};

use super::tree::{Entry, Root, Table, TreeSample};
use crate::{
    clock,
    process::{Probe, RunState, ancestry, sys_windows},
};

/// Between 1601-01-01, where FILETIMEs begin, and 1970-01-01.
const EPOCH_MS: i64 = 11_644_473_600_000;

/// FILETIMEs and CPU times count in 100 ns.
const UNITS_PER_MS: u64 = 10_000;

pub(super) fn sample(roots: &[Root]) -> Vec<Probe<TreeSample>> {
    let list = match sys_windows::list() {
        Ok(list) => list,
        Err(e) => return roots.iter().map(|_| Probe::unknown(format!("listing processes: {e}"))).collect(),
    };
    let now = clock::now();
    let entries = list.into_iter().filter_map(|listed| {
        let process = sys_windows::open(listed.pid).ok()?;
        let times = sys_windows::times(&process).ok()?;
        let state = match sys_windows::has_exited(&process) {
            Ok(true) => RunState::Exited,
            Ok(false) => RunState::Running,
            Err(_) => RunState::Unknown,
        };
        Some(Entry {
            pid: listed.pid,
            ppid: listed.ppid,
            start: times.created,
            started: started(&now, times.created),
            cpu_ms: times.cpu / UNITS_PER_MS,
            comm: listed.name,
            state,
        })
    });
    let table = Table::new(clock::boot_id(), entries);
    roots.iter().map(|root| table.sample(root, ancestry::executable)).collect()
}

/// Starts are told on the wall clock only.
fn started(now: &Now, created: u64) -> Boot {
    let ms = i64::try_from(created / UNITS_PER_MS).unwrap_or(i64::MAX);
    now.stamp_of_wall(Wall(ms.saturating_sub(EPOCH_MS))).boot
}
