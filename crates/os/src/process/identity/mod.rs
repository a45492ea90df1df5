//! Who a process is: pid, start and boot together.
//!
//! Owns how each system names the start of a process and how a pid is pinned while it is read. Does not know what
//! anyone wants to do with the answer; "unknown" authorises nothing.

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

use watchkeeper_core::identity::ProcessRef;

use super::{Probe, Sameness};
use crate::clock::boot_id;

/// Takes the identity of the living process `pid`. Does not block. An exited process, a zombie and the id of a mere
/// thread are `No`; a process that is hidden from us, or a boot without a name, is `Unknown`.
#[must_use]
pub fn identify(pid: u32) -> Probe<ProcessRef> {
    let boot = boot_id();
    if boot.0 == 0 {
        return Probe::unknown("this boot has no name");
    }
    match platform::start_of(pid) {
        Probe::Yes(start) => Probe::Yes(ProcessRef { pid, start, boot }),
        Probe::No => Probe::No,
        Probe::Unknown { why } => Probe::Unknown { why },
    }
}

/// The identity of this process.
#[must_use]
pub fn own() -> Probe<ProcessRef> {
    identify(std::process::id())
}

/// Whether `process` still lives. A zombie does not. Does not block.
#[must_use]
pub fn same(process: &ProcessRef) -> Sameness {
    let boot = boot_id();
    if process.boot.0 == 0 || boot.0 == 0 || process.start == 0 {
        return Sameness::Unknown;
    }
    if process.boot != boot {
        return Sameness::Different;
    }
    match platform::start_of(process.pid) {
        Probe::Yes(start) if start == process.start => Sameness::Same,
        Probe::Yes(_) | Probe::No => Sameness::Different,
        Probe::Unknown { .. } => Sameness::Unknown,
    }
}
