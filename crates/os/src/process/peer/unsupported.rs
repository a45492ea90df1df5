//! Unix systems whose peers cannot be named.

use std::{io, os::fd::BorrowedFd};

use super::{Peer, PeerError};

/// Always an error.
///
/// # Errors
/// Always: this system does not name the peer of a socket.
pub fn of_socket(_socket: BorrowedFd<'_>) -> Result<Peer, PeerError> {
    Err(PeerError(io::ErrorKind::Unsupported.into()))
}
