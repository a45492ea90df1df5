//! What happened earlier never undoes what happened later: one comparable moment a signal, and the one comparison.
//!
//! Two moments of the same boot compare by the clock that runs through sleep; equal or incomparable ones by the order
//! of receipt. The shell passes no time at all for what lies across a step of the wall clock.

use serde::{Deserialize, Serialize};

use crate::time::{Now, Stamp};

/// When something happened, as well as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct When {
    pub(crate) stamp: Option<Stamp>,
    /// Number of the input that brought it.
    pub(crate) received: u64,
}

impl When {
    /// A time in the future of `now` is a lie or a broken clock, and would block everything that comes before it is
    /// reached: it counts as `now`.
    pub(crate) fn of(happened: Option<Stamp>, now: &Now, received: u64) -> Self {
        let stamp = happened.map(|s| match s.boot_id == now.boot_id && s.boot > now.boot {
            true => now.stamp(),
            false => s,
        });
        Self { stamp, received }
    }

    /// This very moment: for what the core itself brings about.
    pub(crate) fn now(now: &Now, received: u64) -> Self {
        Self { stamp: Some(now.stamp()), received }
    }

    pub(crate) fn later_than(&self, other: &Self) -> bool {
        match (self.stamp, other.stamp) {
            (Some(a), Some(b)) if a.boot_id == b.boot_id && a.boot_id.0 != 0 && a.boot != b.boot => {
                a.boot > b.boot
            }
            _ => self.received > other.received,
        }
    }

    /// Later than something that may never have happened.
    pub(crate) fn after(&self, other: Option<&Self>) -> bool {
        other.is_none_or(|o| self.later_than(o))
    }
}

/// Keeps the later of the two.
pub(crate) fn advance(slot: &mut Option<When>, to: When) {
    if to.after(slot.as_ref()) {
        *slot = Some(to);
    }
}
