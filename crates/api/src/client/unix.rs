//! Unix sockets.

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt},
    process::geteuid,
};
use std::{
    fs,
    io::{self, Read, Write},
    os::unix::{
        fs::{FileTypeExt, MetadataExt},
        net::UnixStream,
    },
    path::Path,
    time::{Duration, Instant},
};

/// Group and others may not put sockets into the directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;

#[derive(Debug)]
pub(super) enum DialError {
    Io(io::Error),
    Untrusted(String),
}

#[derive(Debug)]
pub(super) struct Stream(UnixStream);

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Connects within the limit. Who listens is told by who could have put the socket there: its directory and itself
/// must be ours and closed to others. (The kernel's answer about the listener's uid is no better, and rustix cannot
/// carry it for a peer of another pid namespace.)
pub(super) fn dial(path: &Path, within: Duration) -> Result<Stream, DialError> {
    let ours = geteuid().as_raw();
    let directory = path.parent().unwrap_or(Path::new("/"));
    for (place, is_socket) in [(directory, false), (path, true)] {
        let metadata = fs::symlink_metadata(place)?;
        if metadata.uid() != ours {
            return Err(DialError::Untrusted(format!(
                "{} belongs to uid {}",
                place.display(),
                metadata.uid()
            )));
        }
        if is_socket && !metadata.file_type().is_socket() {
            return Err(DialError::Untrusted("it is not a socket".into()));
        }
        if !is_socket && metadata.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(DialError::Untrusted(format!("others can write to {}", place.display())));
        }
    }
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, CLOSE_ON_EXEC, None).map_err(io::Error::from)?;
    #[cfg(target_os = "macos")]
    rustix::io::ioctl_fioclex(&socket).map_err(io::Error::from)?;
    // A connect waits for room in a full backlog; on Linux the send timeout bounds that, elsewhere it fails at once.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(at_least_a_bit(within)))
        .map_err(io::Error::from)?;
    let address = SocketAddrUnix::new(path).map_err(io::Error::from)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => return Ok(Stream(UnixStream::from(socket))),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
    }
}

#[cfg(target_os = "macos")]
const CLOSE_ON_EXEC: SocketFlags = SocketFlags::empty();
#[cfg(not(target_os = "macos"))]
const CLOSE_ON_EXEC: SocketFlags = SocketFlags::CLOEXEC;

impl Stream {
    pub(super) fn send(&mut self, bytes: &[u8], deadline: Option<Instant>) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            self.0.set_write_timeout(left(deadline)?)?;
            match self.0.write(rest) {
                Ok(0) => return Err(io::ErrorKind::BrokenPipe.into()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn receive(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        loop {
            self.0.set_read_timeout(left(deadline)?)?;
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

/// Time left; the operating system takes zero for "for ever".
fn left(deadline: Option<Instant>) -> io::Result<Option<Duration>> {
    let Some(deadline) = deadline else { return Ok(None) };
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => Ok(Some(at_least_a_bit(left))),
        _ => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Socket timeouts count in microseconds.
fn at_least_a_bit(length: Duration) -> Duration {
    length.max(Duration::from_micros(1))
}
