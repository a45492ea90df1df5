//! The environment that a process was started with: agents may be told there where they keep their files.
//!
//! What the process changed in its own environment since is not seen.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
use unsupported as platform;

use std::ffi::OsString;

/// The value of a variable; `None` when it is not set or cannot be read (another user's process, a system that shows nobody's).
/// Blocks for one read of kernel tables. The pid may have changed hands meanwhile: whoever minds compares its identity
/// afterwards.
#[must_use]
pub fn variable(pid: u32, name: &str) -> Option<OsString> {
    platform::variable(pid, name)
}
