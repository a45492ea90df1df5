//! What happened earlier never undoes what happened later: one comparable moment a signal, and the one comparison.
//!
//! Two moments of the same boot compare by the clock that runs through sleep; equal or incomparable ones by the order
//! of receipt. The shell passes no time at all for what lies across a step of the wall clock.

use serde::{Deserialize, Serialize};

use crate::time::{Boot, BootId, Now, Stamp};

/// When something happened, as well as that is known. Small, since every session carries several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct When {
    boot: Boot,
    /// Of the boot that `boot` belongs to; 0: its time cannot be compared.
    boot_mark: u64,
    /// Number of the input that brought it.
    pub(crate) received: u64,
}

/// A boot's random id in half its length: two boots of one machine still differ, but for one chance in 2^64.
#[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
fn mark_of(id: BootId) -> u64 {
    let [low, high] = [id.0 as u64, (id.0 >> 64) as u64];
    match low ^ high.rotate_left(1) {
        0 if id.0 != 0 => 1,
        mark => mark,
    }
}

impl When {
    /// A time in the future of `now` is a lie or a broken clock, and would block everything that comes before it is
    /// reached: it counts as `now`.
    pub(crate) fn of(happened: Option<Stamp>, now: &Now, received: u64) -> Self {
        match happened {
            Some(s) if s.boot_id == now.boot_id && s.boot > now.boot => Self::now(now, received),
            Some(s) => Self { boot: s.boot, boot_mark: mark_of(s.boot_id), received },
            None => Self { boot: Boot(0), boot_mark: 0, received },
        }
    }

    /// This very moment: for what the core itself brings about.
    pub(crate) fn now(now: &Now, received: u64) -> Self {
        Self { boot: now.boot, boot_mark: mark_of(now.boot_id), received }
    }

    /// The moment on the clock of the boot that runs now, if it happened in this one.
    pub(crate) fn boot_at(&self, now: &Now) -> Option<Boot> {
        (self.boot_mark != 0 && self.boot_mark == mark_of(now.boot_id)).then_some(self.boot)
    }

    pub(crate) fn later_than(&self, other: &Self) -> bool {
        if self.boot_mark != 0 && self.boot_mark == other.boot_mark && self.boot != other.boot {
            return self.boot > other.boot;
        }
        self.received > other.received
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
