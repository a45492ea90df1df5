//! When a thing happened that a hook tells of: agents that stamp their payloads say it themselves, and start the hook a
//! little later. Pure; by what clock a hook's own begin is known is the caller's.

use std::time::Duration;

use watchkeeper_core::Wall;

use crate::adapter::Observation;

/// An agent that names a time further back speaks by another clock, or of something else; the hook's own begin counts then.
/// In the recordings of Copilot, Gemini and Qwen hooks begin up to 1.4 s after the time in their payload.
pub const HOOK_LAG_MAX: Duration = Duration::from_secs(5);

/// How long before its hook began, by the wall clock at `began`, that happened what `observations` of one payload tell.
/// Zero when the payload names no time, one in the hook's future, or one too far back.
#[must_use]
pub fn lag(observations: &[Observation], began: Wall) -> Duration {
    let at = observations.iter().find_map(|observation| observation.at);
    let lag = at.and_then(|at| u64::try_from(began.0.checked_sub(at.0)?).ok());
    lag.map(Duration::from_millis).filter(|lag| *lag <= HOOK_LAG_MAX).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Context;
    use watchkeeper_core::signal::SignalBody;

    #[track_caller]
    fn check(at: Option<i64>, began: i64, expected_ms: u64) {
        let context = Context { at: at.map(Wall), ..Context::default() };
        let observations = [context.observe(SignalBody::IdleNoticed)];
        assert_eq!(lag(&observations, Wall(began)), Duration::from_millis(expected_ms), "{at:?} {began}");
    }

    #[test]
    fn a_payloads_own_time_counts_within_bounds() {
        check(Some(10_000), 10_500, 500);
        check(Some(10_000), 10_000, 0);
        check(Some(10_000), 15_000, 5_000);
        check(None, 10_500, 0);
        check(Some(10_501), 10_500, 0);
        check(Some(10_000), 15_001, 0);
        check(Some(i64::MIN), i64::MAX, 0);
        assert_eq!(lag(&[], Wall(1)), Duration::ZERO);
    }
}
