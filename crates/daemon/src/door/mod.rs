//! The two sockets of an instance: who may knock, how one listens, who is at the other end. Knows nothing of what is said.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as platform;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as platform;

pub(crate) use platform::{Listener, Stream};

use std::{io, path::PathBuf};

/// The process at the other end, as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    /// `None` when the system does not tell or it is gone already.
    pub pid: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    #[error("cannot listen on {path}")]
    Listen { path: PathBuf, source: io::Error },
    #[error("cannot accept a connection on {path}")]
    Accept { path: PathBuf, source: io::Error },
    /// Another user's process; it is told nothing.
    #[error("a process of another user (uid {uid}) knocked on {path}")]
    Stranger { path: PathBuf, uid: u32 },
}
