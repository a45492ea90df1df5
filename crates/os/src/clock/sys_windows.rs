//! Interrupt time, the tick count and the boot's number, as raw calls.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::{mem::size_of, ptr};

use windows_sys::{
    Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemTimeOfDayInformation},
    Win32::System::{SystemInformation::GetTickCount64, WindowsProgramming::QueryUnbiasedInterruptTime},
};

/// `USER_SHARED_DATA` and the offset of `KUSER_SHARED_DATA.BootId` (`<ntddk.h>`, Windows 10 1607 and later; zero
/// before, and in Wine). Mapped readable into every process.
const BOOT_ID: *const u32 = ptr::without_provenance(0x7FFE_0000 + 0x2C4);

/// Units of 100 ns; stops while the machine sleeps.
pub(super) fn unbiased_interrupt_time() -> u64 {
    let mut time = 0;
    // SAFETY: `time` is writable. It fails only for a null pointer.
    unsafe { QueryUnbiasedInterruptTime(&raw mut time) };
    time
}

/// Milliseconds; runs through sleep. As fine as `QueryInterruptTime` (both count timer ticks), which Wine 8 lacks.
pub(super) fn tick_count_ms() -> u64 {
    // SAFETY: takes nothing.
    unsafe { GetTickCount64() }
}

/// The number of this boot of this installation; zero when unknown.
pub(super) fn boot_number() -> u32 {
    // SAFETY: the page is mapped into every process at this address, readable, for the life of the process; the field
    // lies in it and is aligned. Volatile, since the compiler knows of no such object.
    unsafe { BOOT_ID.read_volatile() }
}

/// The wall time of the boot in units of 100 ns; zero when unknown. Windows moves it when the clock is set.
pub(super) fn boot_time() -> u64 {
    let mut information = [0_u64; 6];
    let Ok(size) = u32::try_from(size_of::<[u64; 6]>()) else { return 0 };
    // SAFETY: `information` is writable for `size` bytes, the size of SYSTEM_TIMEOFDAY_INFORMATION.
    let status = unsafe {
        NtQuerySystemInformation(
            SystemTimeOfDayInformation,
            information.as_mut_ptr().cast(),
            size,
            ptr::null_mut(),
        )
    };
    if status >= 0 { information[0] } else { 0 }
}
