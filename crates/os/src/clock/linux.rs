//! `CLOCK_MONOTONIC`, `CLOCK_BOOTTIME`, and the kernel's random boot id.

use std::fs;

use rustix::time::{ClockId, Timespec, clock_gettime};
use watchkeeper_core::time::{Boot, BootId, Mono};

pub(super) fn mono_and_boot() -> (Mono, Boot) {
    (Mono(nanos(clock_gettime(ClockId::Monotonic))), Boot(nanos(clock_gettime(ClockId::Boottime))))
}

pub(super) fn read_boot_id() -> BootId {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .ok()
        .and_then(|text| super::boot_id::parse_uuid(&text))
        .unwrap_or_default()
}

fn nanos(t: Timespec) -> u64 {
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(t.tv_nsec).unwrap_or(0))
}
