//! The hold: what the system itself lets us do to stay awake.
//!
//! Owns the locks, how they are read back, and how they are taken again when the system lost them. Does not know why
//! the machine is to stay awake, nor when to let go. Display sleep is never prevented.
//!
//! Every platform exports `Inhibitor` (asks the system) and `Held` (one lock, released on drop); [`Keeper`] is the
//! portable owner of both.

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

mod keeper;
mod kind;

pub use keeper::{Keeper, Report, Upkeep};
pub use kind::{ALL_KINDS, Kind, Notice, OtherLock, Refused, Standing, WHO, WHY};
pub use platform::{Held, Inhibitor};

#[cfg(target_os = "linux")]
mod handover;
#[cfg(target_os = "linux")]
mod linux_errors;
#[cfg(target_os = "linux")]
mod sys_linux;
#[cfg(target_os = "linux")]
pub use handover::{EndsAtOnce, HandOver, HandOverError, MAX_HANDED_OVER};

#[cfg(target_os = "macos")]
mod sys_macos;
#[cfg(windows)]
mod sys_windows;

#[cfg(not(target_os = "linux"))]
mod no_handover;
#[cfg(not(target_os = "linux"))]
pub use no_handover::{EndsAtOnce, HandOver, HandOverError};

/// Whether a program can hand its locks to a successor; elsewhere they end with their process.
pub const HANDS_OVER: bool = cfg!(target_os = "linux");
