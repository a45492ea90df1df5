//! Named pipes, through the standard library's files. Reads happen on a helper thread, since a file has no timeout.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::windows::fs::OpenOptionsExt,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// `ERROR_PIPE_BUSY` of winerror.h: every instance of the pipe is taken.
const PIPE_BUSY: i32 = 231;
/// The server may learn who we are but not act as us (`SECURITY_IDENTIFICATION` of winnt.h).
const SECURITY_IDENTIFICATION: u32 = 1 << 16;
/// A busy pipe is tried again this often; the standard library has no way to be told.
const BUSY_RETRY: Duration = Duration::from_millis(10);
/// Chunks on their way from the helper thread: it reads only when asked, so one is enough.
const CHUNKS: usize = 1;

#[derive(Debug)]
pub(super) enum DialError {
    Io(io::Error),
    /// The path names no pipe of this machine.
    Untrusted(String),
}

#[derive(Debug)]
pub(super) struct Stream {
    file: File,
    ask: SyncSender<usize>,
    chunks: Receiver<io::Result<Vec<u8>>>,
    /// A read that was asked for and has not been answered yet.
    reading: bool,
}

/// Opens the pipe, waiting for a free instance within the limit.
pub(super) fn dial(path: &Path, within: Duration) -> Result<Stream, DialError> {
    if !path.as_os_str().to_string_lossy().starts_with(r"\\.\pipe\") {
        return Err(DialError::Untrusted("it is not a local pipe".into()));
    }
    let deadline = Instant::now() + within;
    let file = loop {
        let opened =
            OpenOptions::new().read(true).write(true).security_qos_flags(SECURITY_IDENTIFICATION).open(path);
        match opened {
            Ok(file) => break file,
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) && Instant::now() < deadline => {
                thread::park_timeout(BUSY_RETRY);
            }
            Err(error) => return Err(DialError::Io(error)),
        }
    };
    let mut reader = file.try_clone().map_err(DialError::Io)?;
    let (ask, asked) = sync_channel::<usize>(CHUNKS);
    let (answer, chunks) = sync_channel(CHUNKS);
    let reading = move || {
        while let Ok(bytes_max) = asked.recv() {
            let mut buffer = vec![0; bytes_max];
            let outcome = reader.read(&mut buffer).map(|count| {
                buffer.truncate(count);
                buffer
            });
            if answer.send(outcome).is_err() {
                break;
            }
        }
    };
    thread::Builder::new().name("api-read".into()).spawn(reading).map_err(DialError::Io)?;
    Ok(Stream { file, ask, chunks, reading: false })
}

impl Stream {
    /// Must not be called while a read is pending: Windows serialises both on one handle.
    pub(super) fn send(&mut self, bytes: &[u8], _deadline: Option<Instant>) -> io::Result<()> {
        if self.reading {
            return Err(io::Error::other("a read is pending on this connection"));
        }
        // Requests fit the pipe's buffer, which the server made; a stuck server shows as a missing answer.
        self.file.write_all(bytes)
    }

    pub(super) fn receive(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        if !self.reading {
            self.ask.send(buffer.len()).map_err(|_| gone())?;
            self.reading = true;
        }
        let outcome = match deadline {
            None => self.chunks.recv().map_err(|_| gone())?,
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.chunks.recv_timeout(left).map_err(|error| match error {
                    RecvTimeoutError::Timeout => io::ErrorKind::TimedOut.into(),
                    RecvTimeoutError::Disconnected => gone(),
                })?
            }
        };
        self.reading = false;
        let chunk = outcome?;
        let count = chunk.len().min(buffer.len());
        buffer[..count].copy_from_slice(&chunk[..count]);
        Ok(count)
    }
}

fn gone() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}
