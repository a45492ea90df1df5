//! How things are done on x86-64 Linux: system calls, no allocator, no C library.

mod ancestry;
#[cfg(watchkeeper_bare)]
mod entry;
mod launch;
mod path;
mod spool;
mod sys;

pub(crate) use ancestry::ancestry;
pub(crate) use launch::start_daemon;
pub(crate) use spool::spool;

use watchkeeper_frame::place_rules;

use crate::{
    args::Instance,
    flow::{DoorFailure, Input, InputEnd, Received},
};
use path::Path;
use sys::{CPath, Clock, Errno, Fd, Poll};

const INPUT: i32 = 0;
const OUTPUT: i32 = 1;
const ERROR: i32 = 2;
/// A pipe with room at all has room for this many bytes (`PIPE_BUF`), so a write of no more does not block.
const PIPE_WRITE_BYTES: usize = 4096;

pub(crate) fn boot_now_ns() -> u64 {
    sys::clock_ns(Clock::Boot)
}

pub(crate) fn wall_now_ms() -> i64 {
    i64::try_from(sys::clock_ns(Clock::Wall) / 1_000_000).unwrap_or(i64::MAX)
}

pub(crate) fn pid() -> u32 {
    sys::process_id()
}

/// Zeroed memory; `None` when the system gives none.
pub(crate) fn memory(bytes: usize) -> Option<&'static mut [u8]> {
    sys::map_memory(bytes).ok()
}

/// Random; where the kernel has no randomness yet (early boot), time and process id, which are unique enough among the
/// hooks of one machine.
pub(crate) fn delivery_id() -> u128 {
    let mut id = [0; 16];
    if sys::random(&mut id) == Ok(id.len()) {
        return u128::from_le_bytes(id);
    }
    u128::from(sys::clock_ns(Clock::Wall)) << 64 ^ u128::from(boot_now_ns()) << 20 ^ u128::from(pid())
}

/// The kernel's name for this boot as a number; zero when it cannot be read.
pub(crate) fn boot_id() -> u128 {
    let mut text = [0; 64];
    let file = sys::open(None, &CPath::literal(c"/proc/sys/kernel/random/boot_id"), sys::Open::Read);
    let len = file.and_then(|file| sys::read(file.number(), &mut text)).unwrap_or(0);
    place_rules::boot_id(text.get(..len).unwrap_or_default())
}

/// Reads standard input to its end, its failure or the deadline; keeps what fits into `room`, counts the rest.
pub(crate) fn read_input(room: &mut [u8], scratch: &mut [u8], deadline_ns: u64) -> Input {
    let mut kept = 0;
    let mut seen: u64 = 0;
    // Once the other side has closed, no read blocks.
    let mut closed = false;
    let end = loop {
        if !closed {
            match wait(INPUT, sys::POLL_IN, deadline_ns) {
                Ok(Some(seen)) => closed = seen & sys::POLL_HANG_UP != 0,
                Ok(None) => break InputEnd::Late,
                Err(_) => break InputEnd::Failed,
            }
        }
        let free = room.get_mut(kept..).unwrap_or_default();
        let fits = !free.is_empty();
        match sys::read(INPUT, if fits { free } else { &mut *scratch }) {
            Ok(0) => break InputEnd::Closed,
            Ok(len) => {
                seen = seen.saturating_add(len as u64);
                kept += if fits { len } else { 0 };
            }
            Err(Errno::INTERRUPTED | Errno::AGAIN) => {}
            Err(_) => break InputEnd::Failed,
        }
    };
    Input { kept, seen, end }
}

/// The connection to the daemon.
#[derive(Debug)]
pub(crate) struct Door(Fd);

impl Door {
    pub(crate) fn open(
        instance: &Instance<'_>,
        scratch: &mut [u8],
        deadline_ns: u64,
    ) -> Result<Self, DoorFailure> {
        let mut path = Path::new();
        path::runtime(instance, scratch, &mut path).ok_or(DoorFailure::Away)?;
        path.push_name(place_rules::HOOK_SOCKET);
        let socket = sys::unix_socket().map_err(|_| DoorFailure::Away)?;
        match sys::connect(&socket, path.bytes()) {
            Ok(()) => return Ok(Self(socket)),
            // The listener's queue is full. The kernel tells of room only to a caller that blocks.
            Err(Errno::AGAIN) => {}
            Err(_) => return Err(DoorFailure::Away),
        }
        let left = deadline_ns.saturating_sub(boot_now_ns());
        if left == 0 || sys::block_for(&socket, left).is_err() {
            return Err(DoorFailure::Late);
        }
        match sys::connect(&socket, path.bytes()) {
            Ok(()) => Ok(Self(socket)),
            Err(Errno::AGAIN | Errno::INTERRUPTED) => Err(DoorFailure::Late),
            Err(_) => Err(DoorFailure::Away),
        }
    }

    pub(crate) fn send(&mut self, frame: &[u8], deadline_ns: u64) -> Result<(), DoorFailure> {
        let mut rest = frame;
        while !rest.is_empty() {
            match sys::send(&self.0, rest) {
                Ok(len) => rest = rest.get(len..).unwrap_or_default(),
                Err(Errno::INTERRUPTED) => {}
                Err(Errno::AGAIN) => match wait(self.0.number(), sys::POLL_OUT, deadline_ns) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Err(DoorFailure::Late),
                    Err(_) => return Err(DoorFailure::Away),
                },
                Err(_) => return Err(DoorFailure::Away),
            }
        }
        Ok(())
    }

    /// Receives what comes first. While `holding`, also watches whether anybody still reads our standard output.
    pub(crate) fn receive(&mut self, out: &mut [u8], deadline_ns: u64, holding: bool) -> Received {
        let socket = self.0.number();
        let mut watch_output = holding && socket != OUTPUT;
        loop {
            let left = deadline_ns.saturating_sub(boot_now_ns());
            let mut polls = [
                Poll { fd: socket, wanted: sys::POLL_IN, seen: 0 },
                // Negative descriptors are passed over. Hang-up and error are told without being asked for.
                Poll { fd: if watch_output { OUTPUT } else { -1 }, wanted: 0, seen: 0 },
            ];
            let ready = sys::poll(&mut polls, left);
            let [incoming, output] = polls;
            match ready {
                Err(Errno::INTERRUPTED) => continue,
                Err(_) => return Received::Closed,
                Ok(0) if left == 0 => return Received::Late,
                Ok(0) => continue,
                Ok(_) => {}
            }
            if incoming.seen != 0 {
                match sys::receive(&self.0, out) {
                    Ok(0) => return Received::Closed,
                    Ok(len) => return Received::Bytes(len),
                    Err(Errno::INTERRUPTED | Errno::AGAIN) => {}
                    Err(_) => return Received::Closed,
                }
            } else if output.seen & sys::POLL_INVALID != 0 {
                watch_output = false;
            } else if output.seen & (sys::POLL_ERROR | sys::POLL_HANG_UP) != 0 {
                return Received::ReaderGone;
            }
        }
    }

    /// Says `text` to the agent, unless our standard output was closed and its number went to this connection.
    pub(crate) fn print(&self, text: &[u8], deadline_ns: u64) {
        if self.0.number() != OUTPUT {
            print(text, deadline_ns);
        }
    }
}

/// Writes to standard output until the deadline; gives up in silence.
pub(crate) fn print(text: &[u8], deadline_ns: u64) {
    sys::ignore(sys::WriteSignal::BrokenPipe);
    let mut rest = text;
    while let Some(part) = rest.get(..rest.len().min(PIPE_WRITE_BYTES)).filter(|part| !part.is_empty()) {
        match wait(OUTPUT, sys::POLL_OUT, deadline_ns) {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
        match sys::write(OUTPUT, part) {
            Ok(len) => rest = rest.get(len..).unwrap_or_default(),
            Err(Errno::INTERRUPTED | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

/// Writes a few bytes to standard error, where somebody asked for them.
pub(crate) fn note(text: &[u8]) {
    _ = sys::write(ERROR, text);
}

/// Waits until `fd` can do what is wanted (or has failed, which the next call tells) and says what it can; `None` at
/// the deadline.
fn wait(fd: i32, wanted: i16, deadline_ns: u64) -> sys::Result<Option<i16>> {
    loop {
        let left = deadline_ns.saturating_sub(boot_now_ns());
        let mut polls = [Poll { fd, wanted, seen: 0 }];
        let ready = sys::poll(&mut polls, left);
        let [Poll { seen, .. }] = polls;
        match ready {
            Ok(0) if left == 0 => return Ok(None),
            Ok(0) | Err(Errno::INTERRUPTED) => {}
            Ok(_) => return Ok(Some(seen)),
            Err(error) => return Err(error),
        }
    }
}
