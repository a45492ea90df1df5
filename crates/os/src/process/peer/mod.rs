//! Who is at the other end of a local connection.
//!
//! Owns the kernel's answer for a connected socket or pipe, taken while the peer waits. Does not know what the peer
//! wants or may do.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::of_socket;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
mod sys_macos;
#[cfg(target_os = "macos")]
pub use macos::of_socket;

#[cfg(windows)]
mod sys_windows;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::of_pipe;

#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
mod unsupported;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
pub use unsupported::of_socket;

#[cfg(target_os = "linux")]
mod sys_linux;

use std::io;

use watchkeeper_core::identity::ProcessRef;

use super::Probe;

/// The other end, as it was when it connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its user id; `None` where the system names users otherwise (Windows, where the pipe's access list decides).
    pub uid: Option<u32>,
    /// Its pid; `None` when it is in a namespace that we cannot see.
    pub pid: Option<u32>,
    /// The process itself: `No` when it has exited since, `Unknown` when it cannot be named.
    pub process: Probe<ProcessRef>,
    /// Whether the kernel pinned the peer at connect (a pidfd or audit token), so that a reused pid is impossible.
    pub pinned: bool,
}

/// The kernel did not name the peer.
#[derive(Debug, thiserror::Error)]
#[error("asking the kernel for the peer of a connection")]
pub struct PeerError(#[from] pub io::Error);
