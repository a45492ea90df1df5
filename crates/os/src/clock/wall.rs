//! The clock for people, the same on every system.

use std::time::{SystemTime, UNIX_EPOCH};

use watchkeeper_core::time::Wall;

/// Milliseconds since 1970; negative before, clamped at the ends of the type.
pub(super) fn wall() -> Wall {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => Wall(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)),
        Err(before) => Wall(i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms)),
    }
}
