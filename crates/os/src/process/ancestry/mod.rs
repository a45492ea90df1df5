//! Who started a process: the chain of its ancestors, nearest first.
//!
//! Owns the walk and where it must stop. Does not know which ancestor is an agent: rules of the agents' adapters are
//! applied to the chain elsewhere.

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

#[cfg(target_os = "linux")]
pub(in crate::process) use linux::executable;
#[cfg(target_os = "macos")]
pub(in crate::process) use macos::{comm, executable, state};
#[cfg(windows)]
pub(in crate::process) use windows::executable;

#[cfg(any(target_os = "macos", test))]
mod argument_area;
#[cfg(any(windows, test))]
mod command_line;

mod walk;

pub use walk::{Chain, ChainEnd, MAX_ANCESTORS, ProcessRow};

/// Reads `pid` and its ancestors. Blocks only for reads of kernel tables (a few tens of microseconds a process).
///
/// Stops at the first process of the system, at [`MAX_ANCESTORS`], at a cycle, and at a parent that started after
/// its child, since that pid has been reused.
#[must_use]
pub fn chain_of(pid: u32) -> Chain {
    walk::walk(pid, platform::read)
}
