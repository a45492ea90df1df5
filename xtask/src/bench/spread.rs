//! What many measured times come to.

use std::time::Duration;

/// Middle and tail, in microseconds.
#[derive(Debug)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) p99: f64,
}

impl Spread {
    /// Sorts them.
    pub(super) fn of(times: &mut [Duration]) -> Self {
        times.sort_unstable();
        let at = |index: usize| times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6);
        Self { median: at(times.len() / 2), p99: at(times.len() * 99 / 100) }
    }
}
