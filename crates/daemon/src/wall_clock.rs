//! Turns wall times that others wrote (transcript records, state files) into stamps, unless the wall clock was stepped:
//! across a step nothing is ordered.

use watchkeeper_core::{
    Now, Wall,
    time::{Boot, Stamp},
};

/// Wall against boot time drifts by NTP slewing; a jump past this is a step.
const STEP_MS: i64 = 2_000;
/// A record from further ahead than this was not written by the present clock.
const AHEAD_MS: i64 = 1_000;

#[derive(Debug, Default)]
pub(crate) struct WallClock {
    /// Wall minus boot time in milliseconds at the last look.
    offset_ms: Option<i64>,
    /// When the last step was seen.
    stepped_at: Option<Boot>,
}

impl WallClock {
    /// Looks at the clocks; to be called with every `Now` that is read. Returns the step in milliseconds if there was one.
    pub(crate) fn observe(&mut self, now: &Now) -> Option<i64> {
        let offset = now.wall.0.saturating_sub(i64::try_from(now.boot.0 / 1_000_000).unwrap_or(i64::MAX));
        let before = self.offset_ms.replace(offset)?;
        let step = offset.saturating_sub(before);
        if step.abs() <= STEP_MS {
            return None;
        }
        self.stepped_at = Some(now.boot);
        Some(step)
    }

    /// The stamp of a wall time, or `None` when it cannot be placed: written before a step, or by a clock ahead of ours.
    #[must_use]
    pub(crate) fn stamp(&self, now: &Now, wall: Wall) -> Option<Stamp> {
        if wall.0 > now.wall.0.saturating_add(AHEAD_MS) {
            return None;
        }
        let stamp = now.stamp_of_wall(wall);
        match self.stepped_at {
            Some(step) if stamp.boot < step => None,
            Some(_) | None => Some(stamp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_core::{BootId, Mono};

    fn now(boot_s: u64, wall_s: i64) -> Now {
        let ns = boot_s * 1_000_000_000;
        Now { mono: Mono(ns), boot: Boot(ns), wall: Wall(wall_s * 1000), boot_id: BootId(7) }
    }

    #[test]
    fn times_are_placed_until_the_clock_steps() {
        let mut clock = WallClock::default();
        assert_eq!(clock.observe(&now(100, 10_000)), None);
        assert_eq!(
            clock.stamp(&now(100, 10_000), Wall(9_990_000)).map(|s| s.boot.0 / 1_000_000_000),
            Some(90)
        );
        // an hour back
        assert_eq!(clock.observe(&now(110, 6_410)), Some(-3_600_000));
        assert_eq!(
            clock.stamp(&now(111, 6_411), Wall(9_990_000)),
            None,
            "from before the step: ahead of the clock"
        );
        assert_eq!(
            clock.stamp(&now(111, 6_411), Wall(6_405_000)),
            None,
            "could be from either side of the step"
        );
        assert_eq!(
            clock.stamp(&now(115, 6_415), Wall(6_414_000)).map(|s| s.boot.0 / 1_000_000_000),
            Some(114)
        );
    }
}
