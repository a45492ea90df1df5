//! Registering an owned descriptor with the runtime.
#![expect(unsafe_code, reason = "tokio asks for a promise that the descriptor stays open")]

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// Waits for readability of `fd` on the current runtime.
pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open until it is dropped, always gives the same number, and is owned by the `AsyncFd`
    // from here on.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
