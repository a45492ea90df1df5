//! Turns wall times that others wrote (transcript records, state files) into stamps, unless the wall clock was stepped:
//! across a step nothing is ordered.

use watchkeeper_core::{
    Now, Wall,
    time::{Boot, Stamp},
};

/// Wall against boot time drifts by NTP slewing; a jump past this is a step.
const STEP_MS: i64 = 2_000;
/// Wall times come in whole milliseconds, so each look at the clocks places them up to one later or earlier than the last;
/// as much again for the moment between the two clocks being read. Only past this is it another place.
const ROUNDING_NS: u64 = 2_000_000;
/// A record from further ahead than this was not written by the present clock.
const AHEAD_MS: i64 = 1_000;

#[derive(Debug, Default)]
pub(crate) struct WallClock {
    /// Wall minus boot time in milliseconds at the last look.
    offset_ms: Option<i64>,
    /// A look at the clocks by which wall times are placed. Were it another for every record, one could be placed before the
    /// one that it follows.
    steady: Option<Now>,
    /// When the last step was seen.
    stepped_at: Option<Boot>,
}

impl WallClock {
    /// Looks at the clocks; to be called with every `Now` that is read. Returns the step in milliseconds if there was one.
    pub(crate) fn observe(&mut self, now: &Now) -> Option<i64> {
        if self.steady.is_none_or(|steady| drift_ns(&steady, now) > ROUNDING_NS) {
            self.steady = Some(*now);
        }
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
        let steady = self.steady.as_ref().unwrap_or(now);
        let since_ns = wall.0.saturating_sub(steady.wall.0).saturating_mul(1_000_000);
        // Nothing has happened after now.
        let boot = steady.boot.0.saturating_add_signed(since_ns).min(now.boot.0);
        let stamp = Stamp { boot: Boot(boot), boot_id: now.boot_id };
        match self.stepped_at {
            Some(step) if stamp.boot < step => None,
            Some(_) | None => Some(stamp),
        }
    }
}

/// By how much the wall clock has moved against boot time between two looks.
fn drift_ns(before: &Now, now: &Now) -> u64 {
    let wall_ns = now.wall.0.saturating_sub(before.wall.0).saturating_mul(1_000_000);
    let boot_ns = i64::try_from(now.boot.0).unwrap_or(i64::MAX);
    let then_ns = i64::try_from(before.boot.0).unwrap_or(i64::MAX);
    boot_ns.saturating_sub(then_ns).saturating_sub(wall_ns).unsigned_abs()
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

    /// Two records of one millisecond, read at different moments of others.
    #[test]
    fn what_follows_is_never_placed_before() {
        let at = |us: u64| {
            let boot = Boot(100_000_000_000 + us * 1000);
            let wall = Wall(10_000_000 + i64::try_from(us / 1000).unwrap());
            Now { mono: Mono(boot.0), boot, wall, boot_id: BootId(7) }
        };
        let mut clock = WallClock::default();
        let mut place = |now: Now, wall| {
            clock.observe(&now);
            clock.stamp(&now, Wall(wall)).unwrap().boot
        };
        let first = place(at(1_900), 10_000_001);
        assert_eq!(place(at(20_100), 10_000_001), first);
        assert!(place(at(20_200), 10_000_002) > first);
        // A clock that is slewed by more than the rounding is followed.
        let slewed = Now { wall: Wall(10_000_035), ..at(30_000) };
        assert!(place(slewed, 10_000_035) <= slewed.boot);
    }
}
