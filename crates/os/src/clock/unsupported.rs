//! Systems without a clock of ours: monotonic time of the standard library, no boot id, so nothing of one run is
//! ever compared with another.

use std::{sync::OnceLock, time::Instant};

use watchkeeper_core::time::{Boot, BootId, Mono};

static START: OnceLock<Instant> = OnceLock::new();

pub(super) fn mono_and_boot() -> (Mono, Boot) {
    let since = START.get_or_init(Instant::now).elapsed();
    let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    (Mono(nanos), Boot(nanos))
}

pub(super) fn read_boot_id() -> BootId {
    BootId(0)
}
