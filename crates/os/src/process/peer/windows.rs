//! `GetNamedPipeClientProcessId`.

use std::os::windows::io::BorrowedHandle;

use super::{Peer, PeerError, sys_windows};
use crate::process::identity;

/// The client of a connected named pipe, asked at its server end. Does not block. Who may connect is the business of
/// the pipe's access list, so the peer has no user id here.
///
/// # Errors
/// When the handle is no connected server end of a named pipe.
pub fn of_pipe(pipe: BorrowedHandle<'_>) -> Result<Peer, PeerError> {
    let pid = sys_windows::client_pid(pipe)?;
    Ok(Peer { uid: None, pid: Some(pid), process: identity::identify(pid), pinned: false })
}
