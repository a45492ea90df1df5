//! What is derived from the sessions so that one input costs the same with ten sessions and with ten thousand.
//! Never stored: rebuilt from the sessions after a snapshot was read.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    identity::{AgentKind, DeliveryId, ProcessRef},
    session::{Dues, Session},
    table::Sid,
    time::Mono,
};

/// A deadline of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    WakeGrace,
    WorkMax,
    Quiet,
    Compaction,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Index {
    pub(crate) inactivity: BTreeSet<(Mono, Sid)>,
    pub(crate) deadlines: BTreeSet<(Mono, Sid, Slot)>,
    pub(crate) leases: BTreeSet<(Mono, String)>,
    pub(crate) hooks: BTreeSet<(Mono, DeliveryId)>,
    pub(crate) protecting: BTreeSet<Sid>,
    pub(crate) active: BTreeSet<Sid>,
    /// By the input at which they became so, the oldest first.
    pub(crate) idle: BTreeSet<(u64, Sid)>,
    pub(crate) ended: BTreeSet<(u64, Sid)>,
    pub(crate) by_process: BTreeMap<ProcessRef, BTreeSet<Sid>>,
    /// Ids announced as subagents: the session whose work they are.
    pub(crate) subagents: BTreeMap<(AgentKind, String), Sid>,
    /// Deliveries applied lately, each hashed with what it said.
    pub(crate) deliveries: BTreeSet<u64>,
}

impl Index {
    pub(crate) fn rearm(&mut self, sid: Sid, from: &Dues, to: &Dues) {
        if from.inactivity != to.inactivity {
            if let Some(at) = from.inactivity {
                self.inactivity.remove(&(at, sid));
            }
            if let Some(at) = to.inactivity {
                self.inactivity.insert((at, sid));
            }
        }
        for (slot, old, new) in [
            (Slot::WakeGrace, from.wake_grace, to.wake_grace),
            (Slot::WorkMax, from.work_max, to.work_max),
            (Slot::Quiet, from.quiet, to.quiet),
            (Slot::Compaction, from.compaction, to.compaction),
        ] {
            if old == new {
                continue;
            }
            if let Some(at) = old {
                self.deadlines.remove(&(at, sid, slot));
            }
            if let Some(at) = new {
                self.deadlines.insert((at, sid, slot));
            }
        }
    }

    pub(crate) fn acquire(&mut self, process: ProcessRef, sid: Sid) {
        self.by_process.entry(process).or_default().insert(sid);
    }

    /// Whether nobody has it any more.
    pub(crate) fn release(&mut self, process: ProcessRef, sid: Sid) -> bool {
        let Some(users) = self.by_process.get_mut(&process) else { return false };
        users.remove(&sid);
        let unused = users.is_empty();
        if unused {
            self.by_process.remove(&process);
        }
        unused
    }

    pub(crate) fn list(&mut self, sid: Sid, session: &Session) {
        set(&mut self.protecting, sid, session.protects());
        set(&mut self.active, sid, session.is_active());
    }

    pub(crate) fn forget(&mut self, sid: Sid, session: &Session) {
        self.rearm(sid, &session.armed, &Dues::default());
        self.protecting.remove(&sid);
        self.active.remove(&sid);
        self.idle.remove(&(session.listed, sid));
        self.ended.remove(&(session.listed, sid));
        for process in session.all_processes() {
            self.release(process, sid);
        }
        for id in &session.subagents {
            let key = (session.key.agent, id.clone());
            if self.subagents.get(&key) == Some(&sid) {
                self.subagents.remove(&key);
            }
        }
    }
}

fn set(into: &mut BTreeSet<Sid>, sid: Sid, member: bool) {
    // Membership rarely changes: look before writing.
    if into.contains(&sid) != member {
        if member {
            into.insert(sid);
        } else {
            into.remove(&sid);
        }
    }
}
