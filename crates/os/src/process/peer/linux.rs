//! `SO_PEERCRED`, and `SO_PEERPIDFD` where the kernel (6.5) has it.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::io::Errno;

use super::{Peer, PeerError, sys_linux};
use crate::process::{Probe, identity, proc_files};

/// The peer of a connected Unix socket. Does not block.
///
/// # Errors
/// When the descriptor is no connected Unix socket.
pub fn of_socket(socket: BorrowedFd<'_>) -> Result<Peer, PeerError> {
    let credentials = sys_linux::peer_credentials(socket).map_err(io::Error::from)?;
    let uid = Some(credentials.uid);
    // Zero is a peer in a pid namespace that is no child of ours.
    let Some(pid) = u32::try_from(credentials.pid).ok().filter(|pid| *pid != 0) else {
        return Ok(Peer {
            uid,
            pid: None,
            process: Probe::unknown("the peer is in another pid namespace"),
            pinned: false,
        });
    };
    let (process, pinned) = match sys_linux::peer_pidfd(socket) {
        Ok(pidfd) => {
            let found = identity::identify(pid);
            // Asked after the read, so that the identity is that of the pinned process.
            match proc_files::has_exited(&pidfd.as_fd()) {
                Ok(true) => (Probe::No, true),
                Ok(false) => (found, true),
                Err(errno) => (Probe::unknown(format!("poll of the peer's pidfd: {errno}")), true),
            }
        }
        // The process was reaped: ESRCH, or EINVAL in kernels before 6.16.
        Err(Errno::SRCH | Errno::INVAL) => (Probe::No, true),
        // ENOPROTOOPT before 6.5; anything else (descriptor limit) also leaves only the number.
        Err(_) => (identity::identify(pid), false),
    };
    Ok(Peer { uid, pid: Some(pid), process, pinned })
}
