//! Makes a failing schedule small: steps are left out as long as it still fails.

use super::{schedule::Step, shell::play};

/// Replays spent on shrinking one schedule; what is left then is printed as it is.
const TRIES_MAX: usize = 2_000;

/// The smallest schedule found that still fails.
pub(super) fn shrink(mut steps: Vec<Step>) -> Vec<Step> {
    let mut tries = 0;
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        let mut cut_any = false;
        while at < steps.len() && tries < TRIES_MAX {
            let end = (at + size).min(steps.len());
            let mut fewer: Vec<Step> = steps.clone();
            let gone: u32 = fewer.drain(at..end).map(|s| s.after_ms).fold(0, u32::saturating_add);
            tries += 1;
            if play(&fewer).0.is_err() {
                steps = fewer;
                cut_any = true;
                continue;
            }
            // Its time may matter where its deed does not.
            if let Some(next) = fewer.get_mut(at) {
                next.after_ms = next.after_ms.saturating_add(gone);
                tries += 1;
                if play(&fewer).0.is_err() {
                    steps = fewer;
                    cut_any = true;
                    continue;
                }
            }
            at = end;
        }
        if !cut_any || size > 1 {
            size /= 2;
        }
    }
    steps
}
