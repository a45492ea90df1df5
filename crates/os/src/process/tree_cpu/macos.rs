//! libproc, one pass for all roots. CPU of processes of other users is not told, and counts as none; that of exited
//! children is not either.

use watchkeeper_core::time::Wall;

use super::tree::{Entry, Root, Table, TreeSample};
use crate::{
    clock,
    process::{Probe, ancestry, sys_macos},
};

pub(super) fn sample(roots: &[Root]) -> Vec<Probe<TreeSample>> {
    let pids = match sys_macos::all_pids() {
        Ok(pids) => pids,
        Err(errno) => {
            return roots.iter().map(|_| Probe::unknown(format!("listing pids: {errno}"))).collect();
        }
    };
    let now = clock::now();
    let entries = pids.into_iter().filter_map(|pid| {
        let info = sys_macos::short_info(pid).ok()?;
        let start = sys_macos::unique_identifier(pid).ok()?.unique_id;
        // The kernel tells starts on the wall clock only; of other users' processes not at all.
        let started = sys_macos::full_info(pid).map_or_else(
            |_| now.stamp_of_wall(Wall(0)).boot,
            |full| {
                let ms =
                    full.pbi_start_tvsec.saturating_mul(1000).saturating_add(full.pbi_start_tvusec / 1000);
                now.stamp_of_wall(Wall(i64::try_from(ms).unwrap_or(i64::MAX))).boot
            },
        );
        Some(Entry {
            pid,
            ppid: info.pbsi_ppid,
            start,
            started,
            cpu_ms: sys_macos::cpu_ns(pid).map_or(0, |nanos| nanos / 1_000_000),
            comm: ancestry::comm(&info),
            state: ancestry::state(info.pbsi_status),
        })
    });
    let table = Table::new(clock::boot_id(), entries);
    roots.iter().map(|root| table.sample(root, ancestry::executable)).collect()
}
