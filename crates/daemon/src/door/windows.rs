//! Named pipes: the default security of a pipe made here lets its owner and administrators in, and remote clients are refused.

use std::{
    os::windows::io::AsHandle as _,
    path::{Path, PathBuf},
};
use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};

use super::{Caller, DoorError};

pub(crate) type Stream = NamedPipeServer;

#[derive(Debug)]
pub(crate) struct Listener {
    /// The instance that waits for the next client.
    waiting: std::cell::RefCell<Option<NamedPipeServer>>,
    path: PathBuf,
}

impl Listener {
    /// Creates the pipe. A pipe of this name that another process serves already is refused.
    ///
    /// # Errors
    /// `Listen` when the name is taken or not allowed.
    pub(crate) fn bind(path: &Path) -> Result<Self, DoorError> {
        let first = ServerOptions::new()
            .first_pipe_instance(true)
            .reject_remote_clients(true)
            .create(path)
            .map_err(|source| DoorError::Listen { path: path.to_owned(), source })?;
        Ok(Self { waiting: std::cell::RefCell::new(Some(first)), path: path.to_owned() })
    }

    /// The next client. Cancellation safe: an instance that was not connected waits on.
    ///
    /// # Errors
    /// `Accept` for trouble of the pipe.
    pub(crate) async fn accept(&self) -> Result<(Stream, Caller), DoorError> {
        let accept = |source| DoorError::Accept { path: self.path.clone(), source };
        let server = self.waiting.borrow_mut().take();
        let mut guard = Returned { server, slot: &self.waiting };
        if guard.server.is_none() {
            guard.server = Some(self.next_instance().map_err(accept)?);
        }
        if let Some(server) = &guard.server {
            server.connect().await.map_err(accept)?;
        }
        let connected = guard.server.take();
        *self.waiting.borrow_mut() = Some(self.next_instance().map_err(accept)?);
        drop(guard);
        let connected = connected.ok_or_else(|| accept(std::io::ErrorKind::NotConnected.into()))?;
        // A client that cannot be named is let in: the pipe's access list decided already.
        let pid =
            watchkeeper_os::process::peer::of_pipe(connected.as_handle()).ok().and_then(|peer| peer.pid);
        Ok((connected, Caller { pid }))
    }

    fn next_instance(&self) -> std::io::Result<NamedPipeServer> {
        ServerOptions::new().reject_remote_clients(true).create(&self.path)
    }

    #[must_use]
    pub(crate) fn is_ours(&self) -> bool {
        true // a pipe's name cannot be taken over while an instance of it lives
    }

    pub(crate) fn close(self) {}
}

/// Puts an unconnected instance back when the wait for a client is dropped.
struct Returned<'a> {
    server: Option<NamedPipeServer>,
    slot: &'a std::cell::RefCell<Option<NamedPipeServer>>,
}

impl Drop for Returned<'_> {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            *self.slot.borrow_mut() = Some(server);
        }
    }
}
