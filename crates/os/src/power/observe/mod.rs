//! What happens to the machine: lid, external displays, mains and battery, sleep and resume.
//!
//! Owns where each system tells these things and how they are read. Notices, not polling; what nobody tells of is
//! unknown, not remembered. Does not know what follows from any of it.
//!
//! Every platform exports `Observer`.

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

mod change;

pub use change::{Change, Seen};
pub use platform::Observer;

#[cfg(target_os = "linux")]
mod linux_displays;
#[cfg(target_os = "linux")]
mod linux_supplies;
#[cfg(target_os = "linux")]
mod linux_uevents;
