//! Notices of process exits, from the kernel.
//!
//! Owns the descriptors or handles that pin watched processes, and the fallback for where the kernel cannot tell.
//! One event source serves all watches, so ten thousand of them cost nothing while nobody exits. Does not know whose
//! processes they are or what an exit means.

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
mod watch;

pub use watch::{ExitWatch, ExitWatchError, POLL_INTERVAL, Watch, WatchError};
