//! Three time types that are never mixed: [`Mono`] stops while the machine sleeps, [`Boot`] runs through sleep,
//! [`Wall`] is for people. Deadlines live in [`Mono`], the order of events in [`Boot`], display in [`Wall`].

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Nanoseconds since an arbitrary start; does not advance while the machine sleeps (`CLOCK_MONOTONIC`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Mono(pub u64);

/// Nanoseconds since boot, sleep included (`CLOCK_BOOTTIME`). Comparable only within one [`BootId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Boot(pub u64);

/// Milliseconds since 1970-01-01 UTC. May jump in both directions; never used to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Wall(pub i64);

/// Names one boot of one machine. Zero means "unknown" and equals nothing, not even itself, for ordering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(#[serde(with = "crate::identity::hex128")] pub u128);

/// All clocks read at one moment by the shell around the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Now {
    pub mono: Mono,
    pub boot: Boot,
    pub wall: Wall,
    pub boot_id: BootId,
}

/// When something happened, on the clock that can be compared with others of the same boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub boot: Boot,
    pub boot_id: BootId,
}

impl Mono {
    /// The moment `by` later; stays at the end of the clock instead of wrapping.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }

    /// Time from `earlier` to this moment; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Boot {
    /// The moment `by` later; stays at the end of the clock instead of wrapping.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }

    /// The moment `by` earlier; stays at the begin of the clock instead of wrapping.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(by)))
    }

    /// Time from `earlier` to this moment; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Now {
    /// This moment as a comparable stamp.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp { boot: self.boot, boot_id: self.boot_id }
    }

    /// Converts a wall time written by someone else (a transcript record) into a stamp of this boot, assuming that the
    /// wall clock was not stepped in between; the caller passes `None` on when it saw a step. Times in the future of
    /// `self` are clamped to `self`: nobody can have written them yet.
    #[must_use]
    pub fn stamp_of_wall(&self, wall: Wall) -> Stamp {
        let age_ms = u64::try_from(self.wall.0.saturating_sub(wall.0)).unwrap_or(0);
        Stamp {
            boot: Boot(self.boot.0.saturating_sub(age_ms.saturating_mul(1_000_000))),
            boot_id: self.boot_id,
        }
    }
}

impl Stamp {
    /// Whether this is known to be later than `other`; `None` when the two cannot be compared.
    #[must_use]
    pub fn later_than(&self, other: &Self) -> Option<bool> {
        (self.boot_id == other.boot_id && self.boot_id.0 != 0).then_some(self.boot > other.boot)
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
