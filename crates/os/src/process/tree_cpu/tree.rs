//! Summing a table of processes into subtrees. Portable and tested without processes.

use std::collections::BTreeMap;

use watchkeeper_core::{
    identity::ProcessRef,
    time::{Boot, BootId},
};

use crate::process::{Probe, RunState};

/// Young members listed per root; those that started later are left out and `young_cut` is set.
pub const MAX_YOUNG: usize = 256;

/// A subtree to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    pub process: ProcessRef,
    /// List the members that started after this; `None` lists none.
    pub young_since: Option<Boot>,
}

/// A subtree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSample {
    /// User and system time of the living members, and of the children that they have waited for. It falls when a
    /// member exits that nobody waits for: take a fall as "no news".
    pub cpu_ms: u64,
    /// Living members, the root included.
    pub processes: u32,
    pub root_state: RunState,
    /// Members that started after `young_since`, oldest first, the root excluded.
    pub young: Vec<Young>,
    pub young_cut: bool,
}

/// A process that a subtree started lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Young {
    pub process: ProcessRef,
    pub ppid: u32,
    /// When it started, to the kernel's precision (10 ms on Linux).
    pub started: Boot,
    /// Executable path; empty when unreadable.
    pub exe: String,
    pub comm: String,
    pub state: RunState,
}

/// One process of the table.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) pid: u32,
    pub(super) ppid: u32,
    pub(super) start: u64,
    pub(super) started: Boot,
    pub(super) cpu_ms: u64,
    pub(super) comm: String,
    pub(super) state: RunState,
}

/// The processes of the machine, by parent.
#[derive(Debug)]
pub(super) struct Table {
    boot: BootId,
    by_pid: BTreeMap<u32, Entry>,
    children: BTreeMap<u32, Vec<u32>>,
}

impl Table {
    pub(super) fn new(boot: BootId, entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut by_pid = BTreeMap::new();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for entry in entries {
            children.entry(entry.ppid).or_default().push(entry.pid);
            by_pid.insert(entry.pid, entry);
        }
        Self { boot, by_pid, children }
    }

    /// `exe_of` is asked only for listed young members.
    pub(super) fn sample(&self, root: &Root, exe_of: impl Fn(u32) -> String) -> Probe<TreeSample> {
        if root.process.boot.0 == 0 || self.boot.0 == 0 || root.process.start == 0 {
            return Probe::unknown("no complete identity");
        }
        let found = self.by_pid.get(&root.process.pid);
        let Some(top) = found.filter(|e| {
            root.process.boot == self.boot && e.start == root.process.start && e.state != RunState::Exited
        }) else {
            return Probe::No;
        };
        let mut sample = TreeSample {
            cpu_ms: 0,
            processes: 0,
            root_state: top.state,
            young: Vec::new(),
            young_cut: false,
        };
        let mut young: Vec<&Entry> = Vec::new();
        // A process has one parent, so a walk down meets each once, unless the table caught a reused pid in a
        // cycle; the start condition does not exclude equal starts, so taken pids are counted out by the bound.
        let mut open: Vec<&Entry> = vec![top];
        let mut left = self.by_pid.len();
        while let Some(entry) = open.pop() {
            let Some(rest) = left.checked_sub(1) else { break };
            left = rest;
            sample.cpu_ms = sample.cpu_ms.saturating_add(entry.cpu_ms);
            if entry.state != RunState::Exited {
                sample.processes += 1;
            }
            if entry.pid != top.pid && root.young_since.is_some_and(|since| entry.started > since) {
                young.push(entry);
            }
            let below = self.children.get(&entry.pid).into_iter().flatten();
            open.extend(
                below
                    .filter(|pid| **pid != entry.pid && **pid != top.pid)
                    .filter_map(|pid| self.by_pid.get(pid))
                    .filter(|child| child.start >= entry.start),
            );
        }
        young.sort_by_key(|entry| (entry.started, entry.pid));
        sample.young_cut = young.len() > MAX_YOUNG;
        sample.young = young
            .into_iter()
            .take(MAX_YOUNG)
            .map(|entry| Young {
                process: ProcessRef { pid: entry.pid, start: entry.start, boot: self.boot },
                ppid: entry.ppid,
                started: entry.started,
                exe: exe_of(entry.pid),
                comm: entry.comm.clone(),
                state: entry.state,
            })
            .collect();
        Probe::Yes(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId(7);

    fn entry(pid: u32, ppid: u32, start: u64, state: RunState) -> Entry {
        Entry { pid, ppid, start, started: Boot(start), cpu_ms: u64::from(pid), comm: String::new(), state }
    }

    /// Expected: CPU, living processes, young pids.
    #[track_caller]
    fn check(entries: &[(u32, u32, u64)], root: (u32, u64), expected: Option<(u64, u32, &[u32])>) {
        let entries = entries.iter().map(|(pid, ppid, start)| entry(*pid, *ppid, *start, RunState::Sleeping));
        let table = Table::new(BOOT, entries);
        let process = ProcessRef { pid: root.0, start: root.1, boot: BOOT };
        let got = table.sample(&Root { process, young_since: Some(Boot(15)) }, |_| String::new());
        let got = got
            .yes()
            .map(|s| (s.cpu_ms, s.processes, s.young.iter().map(|y| y.process.pid).collect::<Vec<_>>()));
        assert_eq!(got, expected.map(|(cpu, n, young)| (cpu, n, young.to_vec())));
    }

    #[test]
    fn a_subtree_is_summed_and_its_young_are_listed() {
        let table = [(1, 0, 1), (10, 1, 10), (20, 10, 12), (30, 20, 20), (31, 20, 16), (40, 1, 30)];
        check(&table, (10, 10), Some((91, 4, &[31, 30])));
        check(&table, (40, 30), Some((40, 1, &[])));
    }

    #[test]
    fn a_reused_root_and_a_child_older_than_its_parent_are_not_attributed() {
        let table = [(10, 1, 10), (20, 10, 9), (30, 20, 20)];
        check(&table, (10, 11), None);
        check(&table, (11, 10), None);
        check(&table, (10, 10), Some((10, 1, &[])));
    }

    #[test]
    fn a_cycle_ends() {
        check(&[(10, 20, 10), (20, 30, 10), (30, 20, 10)], (10, 10), Some((10, 1, &[])));
        check(&[(20, 30, 10), (30, 20, 10)], (20, 10), Some((50, 2, &[])));
        check(&[(10, 1, 10), (20, 20, 10)], (20, 10), Some((20, 1, &[])));
    }

    #[test]
    fn a_zombie_root_has_exited_and_an_unnamed_one_is_unknown() {
        let table = Table::new(BOOT, [entry(10, 1, 10, RunState::Exited)]);
        let process = ProcessRef { pid: 10, start: 10, boot: BOOT };
        assert_eq!(table.sample(&Root { process, young_since: None }, |_| String::new()), Probe::No);
        let process = ProcessRef { boot: BootId(0), ..process };
        assert!(matches!(
            table.sample(&Root { process, young_since: None }, |_| String::new()),
            Probe::Unknown { .. }
        ));
    }
}
