//! The connection to the daemon: a thread that opens it, writes the frame, and reads what comes, since neither a
//! Unix socket's `connect` nor anything about a Windows pipe can be given a deadline by the standard library.

use std::{
    io::{self, Read, Write},
    sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    thread,
};

use super::{CHUNK_BYTES, CHUNKS_AHEAD, left, place};
use crate::{
    args::Instance,
    flow::{DoorFailure, Received},
};

/// What the thread reports, in this order, the last any number of times.
#[derive(Debug)]
enum Report {
    Opened,
    Sent,
    Bytes(Vec<u8>),
}

/// The connection.
#[derive(Debug)]
pub(crate) struct Door {
    frames: SyncSender<Vec<u8>>,
    reports: Receiver<Report>,
    /// Received and not yet handed on.
    rest: Vec<u8>,
}

impl Door {
    pub(crate) fn open(
        instance: &Instance<'_>,
        _scratch: &mut [u8],
        deadline_ns: u64,
    ) -> Result<Self, DoorFailure> {
        let place = place(instance).ok_or(DoorFailure::Away)?;
        let (frames, frame) = mpsc::sync_channel(1);
        let (sender, reports) = mpsc::sync_channel(CHUNKS_AHEAD);
        thread::spawn(move || {
            // Its end is its report: the receiver sees the channel close.
            drop(super::sys::connect(&place, deadline_ns).and_then(|door| serve(door, &frame, &sender)));
        });
        let door = Self { frames, reports, rest: Vec::new() };
        door.expect(deadline_ns, |report| matches!(report, Report::Opened)).map(|()| door)
    }

    pub(crate) fn send(&mut self, frame: &[u8], deadline_ns: u64) -> Result<(), DoorFailure> {
        self.frames.send(frame.to_vec()).map_err(|_| DoorFailure::Away)?;
        self.expect(deadline_ns, |report| matches!(report, Report::Sent))
    }

    pub(crate) fn receive(&mut self, out: &mut [u8], deadline_ns: u64, _holding: bool) -> Received {
        if self.rest.is_empty() {
            match self.reports.recv_timeout(left(deadline_ns)) {
                Ok(Report::Bytes(bytes)) => self.rest = bytes,
                Ok(Report::Opened | Report::Sent) | Err(RecvTimeoutError::Disconnected) => {
                    return Received::Closed;
                }
                Err(RecvTimeoutError::Timeout) => return Received::Late,
            }
        }
        let len = out.len().min(self.rest.len());
        for (target, source) in out.iter_mut().zip(self.rest.drain(..len)) {
            *target = source;
        }
        Received::Bytes(len)
    }

    pub(crate) fn print(&self, text: &[u8], deadline_ns: u64) {
        super::print(text, deadline_ns);
    }

    fn expect(&self, deadline_ns: u64, wanted: impl Fn(&Report) -> bool) -> Result<(), DoorFailure> {
        match self.reports.recv_timeout(left(deadline_ns)) {
            Ok(report) if wanted(&report) => Ok(()),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Err(DoorFailure::Away),
            Err(RecvTimeoutError::Timeout) => Err(DoorFailure::Late),
        }
    }
}

fn serve(
    mut door: impl Read + Write,
    frame: &Receiver<Vec<u8>>,
    reports: &SyncSender<Report>,
) -> io::Result<()> {
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    reports.send(Report::Opened).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
    let frame = frame.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
    door.write_all(&frame)?;
    reports.send(Report::Sent).map_err(gone)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match door.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(len) => {
                let bytes = chunk.get(..len).unwrap_or_default().to_vec();
                reports.send(Report::Bytes(bytes)).map_err(gone)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
