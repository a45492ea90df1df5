//! What the tree below a process costs, and what it has started lately.
//!
//! Owns one pass over the process table for all roots asked about. Attribution is by ancestry with child start ≥
//! parent start, so it is evidence of work and never authorises a signal. Does not know what counts as activity.

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

mod tree;

pub use tree::{MAX_YOUNG, Root, TreeSample, Young};

use super::Probe;

/// Samples each root's subtree, in the order asked. Blocks for one pass over the process table: about 10 µs a
/// process of the machine. A root that has exited is `No`.
#[must_use]
pub fn sample(roots: &[Root]) -> Vec<Probe<TreeSample>> {
    platform::sample(roots)
}
