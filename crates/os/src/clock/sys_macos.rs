//! Darwin's clocks by number, and one string of the kernel.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::ffi::CStr;

unsafe extern "C" {
    /// `<time.h>`, since macOS 10.12.
    fn clock_gettime_nsec_np(clock: libc::clockid_t) -> u64;
}

/// Stops while the machine sleeps (`mach_absolute_time`).
pub(super) fn uptime_ns() -> u64 {
    // SAFETY: takes a number, touches no memory of ours.
    unsafe { clock_gettime_nsec_np(libc::CLOCK_UPTIME_RAW) }
}

/// Runs through sleep (`mach_continuous_time`).
pub(super) fn continuous_ns() -> u64 {
    // SAFETY: as above.
    unsafe { clock_gettime_nsec_np(libc::CLOCK_MONOTONIC_RAW) }
}

/// A string of `sysctl`, at most 127 bytes.
pub(super) fn sysctl_text(name: &CStr) -> Option<String> {
    let mut buffer = [0_u8; 128];
    let mut length = buffer.len();
    // SAFETY: `name` ends with NUL; `buffer` is writable for `length` bytes; nothing is set.
    let status = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            buffer.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    if status != 0 {
        return None;
    }
    let text = CStr::from_bytes_until_nul(buffer.get(..length)?).ok()?;
    text.to_str().ok().map(str::to_owned)
}
