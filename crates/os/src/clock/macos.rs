//! `CLOCK_UPTIME_RAW`, `CLOCK_MONOTONIC_RAW` (Darwin's runs through sleep, unlike Linux's of that name), and the
//! kernel's boot session UUID.

use watchkeeper_core::time::{Boot, BootId, Mono};

use super::sys_macos;

pub(super) fn mono_and_boot() -> (Mono, Boot) {
    (Mono(sys_macos::uptime_ns()), Boot(sys_macos::continuous_ns()))
}

pub(super) fn read_boot_id() -> BootId {
    sys_macos::sysctl_text(c"kern.bootsessionuuid")
        .and_then(|text| super::boot_id::parse_uuid(&text))
        .unwrap_or_default()
}
