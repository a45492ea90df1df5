//! The walk up, over any reader of rows. Portable and tested without processes.

use crate::process::RunState;

/// The longest chain. At the limit the walk ends with [`ChainEnd::TooLong`].
pub const MAX_ANCESTORS: usize = 32;

/// One process of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRow {
    pub pid: u32,
    pub ppid: u32,
    /// Start identity, as in `ProcessRef::start`; zero when unknown.
    pub start: u64,
    /// Executable path, a trailing ` (deleted)` removed; empty when unreadable.
    pub exe: String,
    /// The kernel's short name; a last resort, since a process can set it.
    pub comm: String,
    /// Arguments, cut at 16 KiB in all; empty when unreadable.
    pub argv: Vec<String>,
    pub state: RunState,
}

/// A chain and why it is no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The process itself first, then its parent, and so on.
    pub rows: Vec<ProcessRow>,
    pub end: ChainEnd,
}

/// Why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEnd {
    /// The last row's parent is the system's first process or none.
    Top,
    /// A pid came twice.
    Cycle,
    /// A parent started after its child: the parent is gone and its pid is another's.
    Reused,
    /// The next process has exited.
    Gone,
    /// The next process cannot be read, nor its parent.
    Unreadable,
    /// [`MAX_ANCESTORS`] rows.
    TooLong,
}

/// What a reader found of one pid.
#[derive(Debug)]
#[cfg_attr(
    not(windows),
    allow(dead_code, reason = "only Windows knows the parent of a process that it cannot open")
)]
pub(super) enum Step {
    Row {
        row: ProcessRow,
        /// Start on a scale where a parent's is not above its child's; zero when unknown. On macOS the start
        /// identity is a serial number, which orders processes as well as a time does.
        order: u64,
    },
    /// Not readable itself, but its parent is known: passed over.
    Skip {
        ppid: u32,
    },
    Gone,
    Unreadable,
}

pub(super) fn walk(pid: u32, mut read: impl FnMut(u32) -> Step) -> Chain {
    let mut rows: Vec<ProcessRow> = Vec::new();
    let mut visited: Vec<u32> = Vec::new();
    let mut child_order = 0_u64;
    let mut next = pid;
    let end = loop {
        // The first process of a Unix is an ancestor of all and an agent to none; zero stands for "no parent".
        if next == 0 || (next == 1 && !visited.is_empty()) {
            break ChainEnd::Top;
        }
        if visited.contains(&next) {
            break ChainEnd::Cycle;
        }
        if visited.len() >= MAX_ANCESTORS {
            break ChainEnd::TooLong;
        }
        visited.push(next);
        match read(next) {
            Step::Row { row, order } => {
                if child_order != 0 && order > child_order {
                    break ChainEnd::Reused;
                }
                if order != 0 {
                    child_order = order;
                }
                next = row.ppid;
                rows.push(row);
            }
            Step::Skip { ppid } => next = ppid,
            Step::Gone => break ChainEnd::Gone,
            Step::Unreadable => break ChainEnd::Unreadable,
        }
    };
    Chain { rows, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(pid, ppid, order)`; order 0 = unreadable but parent known.
    #[track_caller]
    fn check(table: &[(u32, u32, u64)], from: u32, pids: &[u32], end: ChainEnd) {
        let chain = walk(from, |pid| match table.iter().find(|row| row.0 == pid) {
            None => Step::Gone,
            Some((_, ppid, 0)) => Step::Skip { ppid: *ppid },
            Some((_, ppid, order)) => Step::Row {
                row: ProcessRow {
                    pid,
                    ppid: *ppid,
                    start: *order,
                    exe: String::new(),
                    comm: String::new(),
                    argv: Vec::new(),
                    state: RunState::Sleeping,
                },
                order: *order,
            },
        });
        let got: Vec<u32> = chain.rows.iter().map(|row| row.pid).collect();
        assert_eq!((got.as_slice(), chain.end), (pids, end));
    }

    #[test]
    fn the_walk_stops_where_it_must() {
        check(&[(9, 8, 30), (8, 1, 20), (1, 0, 1)], 9, &[9, 8], ChainEnd::Top);
        check(&[(9, 8, 30), (8, 0, 20)], 9, &[9, 8], ChainEnd::Top);
        check(&[(9, 8, 30), (8, 7, 30), (7, 9, 30)], 9, &[9, 8, 7], ChainEnd::Cycle);
        check(&[(9, 9, 30)], 9, &[9], ChainEnd::Cycle);
        check(&[(9, 8, 30), (8, 1, 31)], 9, &[9], ChainEnd::Reused);
        check(&[(9, 8, 30)], 9, &[9], ChainEnd::Gone);
        check(&[], 9, &[], ChainEnd::Gone);
        check(&[], 0, &[], ChainEnd::Top);
    }

    #[test]
    fn an_unreadable_ancestor_is_passed_over_and_hides_no_reuse() {
        check(&[(9, 8, 30), (8, 7, 0), (7, 1, 10)], 9, &[9, 7], ChainEnd::Top);
        check(&[(9, 8, 30), (8, 7, 0), (7, 1, 40)], 9, &[9], ChainEnd::Reused);
    }

    #[test]
    fn the_walk_is_bounded() {
        let long: Vec<(u32, u32, u64)> = (0..100).map(|n| (1000 - n, 999 - n, 100 - u64::from(n))).collect();
        let chain = walk(1000, |pid| {
            let row = long.iter().find(|row| row.0 == pid).unwrap();
            Step::Skip { ppid: row.1 }
        });
        assert_eq!((chain.rows.len(), chain.end), (0, ChainEnd::TooLong));
        check(&long, 1000, &(0..32).map(|n| 1000 - n).collect::<Vec<_>>(), ChainEnd::TooLong);
    }

    #[test]
    fn the_first_process_may_be_asked_for_itself() {
        check(&[(1, 0, 1)], 1, &[1], ChainEnd::Top);
    }
}
