//! Lengths of time for people: `12 s`, `5 min`, `1 h 20 min`, `3 d 4 h`.

use std::{fmt, time::SystemTime};

use watchkeeper_api::Time;
use watchkeeper_core::Wall;

/// A length of time in milliseconds; negative ones (a clock that was set back) count as zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age(i64);

/// How long ago `then` was at `now`.
pub(crate) fn age(now: Time, then: Time) -> Age {
    Age(now.0.0.saturating_sub(then.0.0).max(0))
}

impl Age {
    /// The moment the wall clock shows.
    pub(crate) fn now() -> Time {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Time(Wall(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)))
    }

    /// It is shown in seconds, so it changes every second.
    pub(crate) const fn in_seconds(self) -> bool {
        self.0 < 60_000
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
        match (days, hours, minutes) {
            (0, 0, 0) => write!(f, "{seconds} s"),
            (0, 0, _) => write!(f, "{minutes} min"),
            (0, _, _) if minutes % 60 == 0 => write!(f, "{hours} h"),
            (0, _, _) => write!(f, "{hours} h {} min", minutes % 60),
            _ if hours % 24 == 0 => write!(f, "{days} d"),
            _ => write!(f, "{days} d {} h", hours % 24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seconds: i64, expected: &str) {
        assert_eq!(age(Time(Wall(seconds * 1000)), Time(Wall(0))).to_string(), expected);
    }

    #[test]
    fn reads_like_a_person_speaks() {
        check(-5, "0 s");
        check(0, "0 s");
        check(59, "59 s");
        check(60, "1 min");
        check(3599, "59 min");
        check(3600, "1 h");
        check(4800, "1 h 20 min");
        check(86_400, "1 d");
        check(100_000, "1 d 3 h");
    }
}
