//! `/proc/*/stat`, one pass for all roots.

use std::fs;

use super::tree::{Entry, Root, Table, TreeSample};
use crate::{
    clock::boot_id,
    process::{Probe, ancestry, proc_files},
};

/// Processes read in one pass; those beyond are left out (Linux's own default limit of pids is higher only on
/// machines with more than 32 cores).
const MAX_PROCESSES: usize = 65_536;

pub(super) fn sample(roots: &[Root]) -> Vec<Probe<TreeSample>> {
    let listing = match fs::read_dir("/proc") {
        Ok(listing) => listing,
        Err(e) => return roots.iter().map(|_| Probe::unknown(format!("/proc: {e}"))).collect(),
    };
    let entries = listing
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .take(MAX_PROCESSES)
        .filter_map(|pid| proc_files::read_stat(pid).ok())
        .map(|stat| Entry {
            pid: stat.pid,
            ppid: stat.ppid,
            start: stat.start_ticks,
            started: proc_files::started_at(stat.start_ticks),
            cpu_ms: proc_files::ticks_to_ms(stat.cpu_ticks),
            comm: stat.comm,
            state: stat.state,
        });
    let table = Table::new(boot_id(), entries);
    roots.iter().map(|root| table.sample(root, ancestry::executable)).collect()
}
