//! Leases: somebody else's reason to keep the machine awake, each with an owner, a reason and an end.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::{
    core::Core,
    marks::Mark,
    session::cut,
    step::Step,
    time::{Mono, Wall},
    view::LeaseView,
};

/// Leases at once. A further one is refused.
pub const LEASES_MAX: usize = 256;
/// Longest owner or reason kept, in bytes; the rest is cut.
pub const LEASE_TEXT_MAX_BYTES: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) owner: String,
    pub(crate) reason: String,
    pub(crate) since: Wall,
    pub(crate) until: Mono,
}

impl Core {
    /// Begins or renews one; longer than `lease_max` is not given.
    pub(crate) fn lease_taken(
        &mut self,
        id: &str,
        owner: &str,
        reason: &str,
        length: Duration,
        step: &mut Step,
    ) {
        let machine = &mut self.state.machine;
        let known = machine.leases.get(id);
        if (known.is_none() && machine.leases.len() >= LEASES_MAX) || id.len() > LEASE_TEXT_MAX_BYTES {
            return Self::refuse(step);
        }
        step.mark(Mark::LeaseTaken);
        step.disturbed = true;
        let since = known.map_or(step.now.wall, |l| l.since);
        let until = step.now.mono.after(length.min(self.state.settings.lease_max));
        if let Some(known) = known {
            self.index.leases.remove(&(known.until, id.to_owned()));
        }
        self.index.leases.insert((until, id.to_owned()));
        let lease = Lease {
            owner: cut(owner, LEASE_TEXT_MAX_BYTES),
            reason: cut(reason, LEASE_TEXT_MAX_BYTES),
            since,
            until,
        };
        machine.leases.insert(id.to_owned(), lease);
    }

    /// All live leases, by id.
    #[must_use]
    pub fn leases(&self) -> Vec<LeaseView> {
        let view = |(id, lease): (&String, &Lease)| LeaseView {
            id: id.clone(),
            owner: lease.owner.clone(),
            reason: lease.reason.clone(),
            since: lease.since,
            until: lease.until,
        };
        self.state.machine.leases.iter().map(view).collect()
    }

    pub(crate) fn lease_ended(&mut self, id: &str, step: &mut Step) {
        match self.state.machine.leases.remove(id) {
            Some(lease) => {
                step.mark(Mark::LeaseEnded);
                self.index.leases.remove(&(lease.until, id.to_owned()));
            }
            None => step.recorded(Mark::NotDue),
        }
    }
}
