//! Cuts a byte stream into lines of bounded length. Knows no message.

use std::{io, time::Instant};

use super::transport::Stream;
use crate::rpc::FRAME_BYTES_MAX;

/// Bytes asked for at once.
const READ_BYTES: usize = 16 * 1024;

/// A stream with what was read of the next lines.
#[derive(Debug)]
pub(super) struct Frames {
    stream: Stream,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that hold no newline; never searched twice.
    searched: usize,
}

impl Frames {
    pub(super) const fn new(stream: Stream) -> Self {
        Self { stream, buffer: Vec::new(), searched: 0 }
    }

    /// Writes a whole line before `deadline`.
    pub(super) fn send(&mut self, line: &[u8], deadline: Option<Instant>) -> io::Result<()> {
        self.stream.send(line, deadline)
    }

    /// The next line without its newline; `None` at the end of the stream. A line of more than [`FRAME_BYTES_MAX`]
    /// bytes is an error, and nothing after it can be read.
    pub(super) fn receive(&mut self, deadline: Option<Instant>) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let end = self.searched + at;
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.truncate(end);
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() >= FRAME_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame over 1 MiB"));
            }
            let mut chunk = [0; READ_BYTES];
            match self.stream.receive(&mut chunk, deadline)? {
                0 => return Ok(None),
                count => self.buffer.extend_from_slice(&chunk[..count]),
            }
        }
    }
}
