//! What is observed, in the core's words.

use std::time::Duration;

use watchkeeper_core::input::Known;

/// The machine at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Whether the lid is shut; a machine without a lid has an open one.
    pub lid_closed: Known<bool>,
    /// Displays that are connected and on, the built-in one excluded.
    pub external_displays: Known<u32>,
    /// Whether the machine lives off its battery; one without a battery does not.
    pub on_battery: Known<bool>,
    /// Charge of all batteries together; unknown without one.
    pub battery_percent: Known<u8>,
}

/// One thing that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Lid {
        closed: Known<bool>,
    },
    Displays {
        external_on: Known<u32>,
    },
    Power {
        on_battery: Known<bool>,
        percent: Known<u8>,
    },
    /// The machine is about to sleep and waits, for a few seconds at most, until
    /// [`Observer::ready_to_sleep`](super::Observer::ready_to_sleep).
    SleepBegan,
    /// The machine is up again, or the sleep failed.
    SleepEnded {
        /// How long it slept. Where the clocks do not show it (s2idle), the time since `SleepBegan`.
        slept: Duration,
    },
}

impl Seen {
    /// What must be told to someone who knows `self` so that they know `then`.
    #[must_use]
    pub fn changes_to(&self, then: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.lid_closed != then.lid_closed {
            changes.push(Change::Lid { closed: then.lid_closed });
        }
        if self.external_displays != then.external_displays {
            changes.push(Change::Displays { external_on: then.external_displays });
        }
        if (self.on_battery, self.battery_percent) != (then.on_battery, then.battery_percent) {
            changes.push(Change::Power { on_battery: then.on_battery, percent: then.battery_percent });
        }
        changes
    }
}

/// A percentage as a charge; nonsense is unknown.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere it comes as a whole number"))]
pub(super) fn percent(value: f64) -> Known<u8> {
    if !(0.0..=100.0).contains(&value) {
        return Known::Unknown;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 100 by the check above"
    )]
    Known::Is(value.round() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let unknown = Seen::default();
        let shut = Seen { lid_closed: Known::Is(true), ..unknown };
        let charged = Seen { battery_percent: Known::Is(80), ..shut };
        assert_eq!(unknown.changes_to(&unknown), []);
        assert_eq!(unknown.changes_to(&shut), [Change::Lid { closed: Known::Is(true) }]);
        assert_eq!(
            shut.changes_to(&charged),
            [Change::Power { on_battery: Known::Unknown, percent: Known::Is(80) }]
        );
        assert_eq!(
            charged.changes_to(&Seen { external_displays: Known::Is(0), ..charged }),
            [Change::Displays { external_on: Known::Is(0) }]
        );
        assert_eq!(charged.changes_to(&unknown).len(), 2);
    }

    #[test]
    fn nonsense_is_no_charge() {
        for (value, expected) in [(0.0, Known::Is(0)), (12.5, Known::Is(13)), (100.0, Known::Is(100))] {
            assert_eq!(percent(value), expected);
        }
        for value in [-1.0, 100.1, f64::NAN, f64::INFINITY] {
            assert_eq!(percent(value), Known::Unknown);
        }
    }
}
