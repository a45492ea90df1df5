//! One target for all doors: `WATCHKEEPER_DOOR` names the one to knock at, so that everything is built once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use watchkeeper_fuzz::{DOORS, Door};

static DOOR: LazyLock<Door> = LazyLock::new(|| {
    let wanted = std::env::var("WATCHKEEPER_DOOR").unwrap_or_default();
    match DOORS.into_iter().find(|door| door.name == wanted) {
        Some(door) => door,
        None => panic!("WATCHKEEPER_DOOR names no door: '{wanted}'"),
    }
});

fuzz_target!(|input: &[u8]| (DOOR.knock)(input));
