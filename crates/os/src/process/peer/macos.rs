//! `LOCAL_PEERTOKEN`, and `LOCAL_PEERPID` where there is no token.

use std::{io, os::fd::BorrowedFd};

use super::{Peer, PeerError, sys_macos};
use crate::process::{Probe, identity, sys_macos as libproc};

/// The peer of a connected Unix socket. Does not block.
///
/// # Errors
/// When the descriptor is no connected Unix socket.
pub fn of_socket(socket: BorrowedFd<'_>) -> Result<Peer, PeerError> {
    if let Ok(token) = sys_macos::token(socket) {
        let found = identity::identify(token.pid);
        // The pid's version tells whether it still is the process of the token. Asked after the read.
        let process = match libproc::unique_identifier(token.pid) {
            Ok(now) if now.id_version.cast_unsigned() == token.pid_version => found,
            Ok(_) => Probe::No,
            Err(_) => found,
        };
        return Ok(Peer { uid: Some(token.effective_uid), pid: Some(token.pid), process, pinned: true });
    }
    let pid = sys_macos::pid(socket).map_err(io::Error::from)?;
    Ok(Peer { uid: None, pid: Some(pid), process: identity::identify(pid), pinned: false })
}
