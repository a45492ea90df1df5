//! The clocks of this machine, read together.
//!
//! Owns the choice of OS clocks behind the core's three time types. Decides nothing.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as platform;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as platform;

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod unsupported;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
use unsupported as platform;

#[cfg(target_os = "macos")]
mod sys_macos;
#[cfg(windows)]
mod sys_windows;

mod boot_id;
mod wall;

pub use boot_id::boot_id;

use watchkeeper_core::time::Now;

/// Reads every clock once. Does not block; takes well under a microsecond after the first call.
#[must_use]
pub fn now() -> Now {
    let (mono, boot) = platform::mono_and_boot();
    Now { mono, boot, wall: wall::wall(), boot_id: boot_id() }
}
