//! Interrupt time without sleep, the tick count with it, and the boot's number.

use watchkeeper_core::time::{Boot, BootId, Mono};

use super::sys_windows;

/// Interrupt time counts in 100 ns.
const NS_PER_UNIT: u64 = 100;

pub(super) fn mono_and_boot() -> (Mono, Boot) {
    let mono = sys_windows::unbiased_interrupt_time().saturating_mul(NS_PER_UNIT);
    let boot = sys_windows::tick_count_ms().saturating_mul(1_000_000);
    (Mono(mono), Boot(boot))
}

/// The number of the boot; where there is none (Wine), the time of the boot, which moves when the clock is set. The
/// upper half keeps the two apart.
pub(super) fn read_boot_id() -> BootId {
    let number = sys_windows::boot_number();
    if number != 0 {
        return BootId(1 << 64 | u128::from(number));
    }
    match sys_windows::boot_time() {
        0 => BootId(0),
        time => BootId(2 << 64 | u128::from(time)),
    }
}
