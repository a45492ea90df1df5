//! Unix sockets: owner only by mode and by the peer's uid.

use std::{
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::{Caller, DoorError};

pub(crate) type Stream = tokio::net::UnixStream;

#[derive(Debug)]
pub(crate) struct Listener {
    socket: tokio::net::UnixListener,
    path: PathBuf,
    /// Device and inode of our socket, to know later whether the path is still ours.
    identity: (u64, u64),
    uid: u32,
}

impl Listener {
    /// Binds `path`, taking the place of a socket that nobody serves any more: the caller holds the instance lock.
    ///
    /// # Errors
    /// `Listen` when the folder is missing, not ours, or the path too long for a socket.
    pub(crate) fn bind(path: &Path) -> Result<Self, DoorError> {
        let listen = |source| DoorError::Listen { path: path.to_owned(), source };
        match std::fs::remove_file(path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(listen(e)),
        }
        let socket = tokio::net::UnixListener::bind(path).map_err(listen)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(listen)?;
        let metadata = std::fs::metadata(path).map_err(listen)?;
        Ok(Self {
            socket,
            path: path.to_owned(),
            identity: (metadata.dev(), metadata.ino()),
            uid: rustix::process::geteuid().as_raw(),
        })
    }

    /// The next caller of our own user. Cancellation safe.
    ///
    /// # Errors
    /// `Stranger` for another user's process (the connection is closed), `Accept` for trouble of the socket itself.
    pub(crate) async fn accept(&self) -> Result<(Stream, Caller), DoorError> {
        let accept = |source| DoorError::Accept { path: self.path.clone(), source };
        let (stream, _) = self.socket.accept().await.map_err(accept)?;
        let peer = stream.peer_cred().map_err(accept)?;
        // Root may look after its users' daemons; everyone else stays out.
        if peer.uid() != self.uid && peer.uid() != 0 {
            return Err(DoorError::Stranger { path: self.path.clone(), uid: peer.uid() });
        }
        Ok((stream, Caller { pid: peer.pid().and_then(|pid| u32::try_from(pid).ok()) }))
    }

    /// Whether the path still leads to this socket: somebody may have put another in its place.
    #[must_use]
    pub(crate) fn is_ours(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|m| (m.dev(), m.ino()) == self.identity)
    }

    /// Stops listening and removes the path if it is still ours.
    pub(crate) fn close(self) {
        if self.is_ours() {
            _ = std::fs::remove_file(&self.path); // a leftover is replaced by the next bind
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn only_the_owner_can_reach_it_and_a_stolen_path_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        std::fs::write(&path, "left over").unwrap();
        let listener = Listener::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let client = Stream::connect(&path).await.unwrap();
        let (_served, caller) = listener.accept().await.unwrap();
        assert_eq!(caller.pid, Some(std::process::id()));
        drop(client);
        assert!(listener.is_ours());
        let thief = Listener::bind(&path).unwrap();
        assert!(!listener.is_ours());
        listener.close();
        assert!(path.exists(), "another's socket is not removed");
        thief.close();
        assert!(!path.exists());
    }
}
