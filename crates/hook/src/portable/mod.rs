//! How things are done with the standard library: on macOS, on Windows, on other Unix systems and processors.
//!
//! Whatever may block runs in a thread of its own and is waited for with a deadline; the program ends by `exit`, which
//! waits for no thread. Unlike on x86-64 Linux, a hook that holds does not notice that nobody reads its output any
//! more: the daemon, which watches the agent, ends the connection.

mod ancestry;
mod door;
mod launch;
#[cfg_attr(unix, path = "sys_unix.rs")]
#[cfg_attr(windows, path = "sys_windows.rs")]
mod sys;

pub(crate) use ancestry::ancestry;
pub(crate) use door::Door;
pub(crate) use launch::start_daemon;
pub(crate) use sys::{boot_id, boot_now_ns};

use std::{
    ffi::OsStr,
    hash::{BuildHasher as _, RandomState},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use watchkeeper_frame::{
    Place,
    spool::{Spool, Spooled},
};

use crate::{
    args::Instance,
    flow::{Input, InputEnd, Leaving},
};

/// Size of one read from standard input or the daemon.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks read ahead; at the limit the reading thread waits.
const CHUNKS_AHEAD: usize = 4;

pub(crate) fn wall_now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn pid() -> u32 {
    std::process::id()
}

/// Zeroed memory for the rest of the process's life.
#[expect(clippy::unnecessary_wraps, reason = "the twin on Linux can fail")]
pub(crate) fn memory(bytes: usize) -> Option<&'static mut [u8]> {
    Some(Box::leak(vec![0; bytes].into_boxed_slice()))
}

/// Random: the standard library keys its hasher from the system's randomness, anew in each process.
pub(crate) fn delivery_id() -> u128 {
    let hasher = RandomState::new();
    u128::from(hasher.hash_one(1u8)) << 64 | u128::from(hasher.hash_one(2u8))
}

/// Reads standard input to its end, its failure or the deadline; keeps what fits into `room`, counts the rest.
pub(crate) fn read_input(room: &mut [u8], _scratch: &mut [u8], deadline_ns: u64) -> Input {
    let (sender, chunks) = mpsc::sync_channel(CHUNKS_AHEAD);
    thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = input.read(&mut chunk).map(|len| chunk.get(..len).unwrap_or_default().to_vec());
            let last = !matches!(&read, Ok(bytes) if !bytes.is_empty());
            if sender.send(read).is_err() || last {
                break;
            }
        }
    });
    let mut input = Input { kept: 0, seen: 0, end: InputEnd::Closed };
    loop {
        match chunks.recv_timeout(left(deadline_ns)) {
            Ok(Ok(bytes)) if bytes.is_empty() => return input,
            Ok(Ok(bytes)) => {
                input.seen = input.seen.saturating_add(bytes.len() as u64);
                let free = room.get_mut(input.kept..).unwrap_or_default();
                let len = free.len().min(bytes.len());
                if let (Some(target), Some(source)) = (free.get_mut(..len), bytes.get(..len)) {
                    target.copy_from_slice(source);
                }
                input.kept += len;
            }
            Ok(Err(_)) => return Input { end: InputEnd::Failed, ..input },
            Err(RecvTimeoutError::Timeout) => return Input { end: InputEnd::Late, ..input },
            Err(RecvTimeoutError::Disconnected) => return Input { end: InputEnd::Failed, ..input },
        }
    }
}

/// Writes to standard output until the deadline; gives up in silence.
pub(crate) fn print(text: &[u8], deadline_ns: u64) {
    let text = text.to_vec();
    // Silence either way: the agent that does not read its hook's output cannot be told so.
    drop(within(deadline_ns, move || {
        let mut output = std::io::stdout().lock();
        output.write_all(&text).and_then(|()| output.flush())
    }));
}

/// Writes a few bytes to standard error, where somebody asked for them.
pub(crate) fn note(text: &[u8]) {
    // Nobody is left to be told.
    drop(std::io::stderr().write_all(text));
}

/// Leaves the event for a later daemon. Silent when it cannot: the daemon notices the gap.
pub(crate) fn spool(instance: &Instance<'_>, event: &Leaving<'_>, _scratch: &mut [u8], deadline_ns: u64) {
    sys::ignore_file_too_large();
    let Some(place) = place(instance) else { return };
    let spool = Spool::at(place.spool());
    let write = || match spool.write(event.frame, event.ancestry) {
        Ok(Spooled::Written { file, .. }) => Some(file),
        Ok(Spooled::Dropped) | Err(_) => None,
    };
    sys::keep(write, deadline_ns);
}

/// The directories of the instance; `None` when the system does not name this user's.
fn place(instance: &Instance<'_>) -> Option<Place> {
    if let Some(home) = instance.home {
        return Some(Place::of_home(&path(home)));
    }
    if let (Some(run), Some(state)) = (instance.run, instance.state) {
        let config = instance.config.map(path).unwrap_or_default();
        return Some(Place { config, state: path(state), run: path(run) });
    }
    let own = Place::default_instance().ok()?;
    Some(Place {
        run: instance.run.map_or(own.run, path),
        state: instance.state.map_or(own.state, path),
        config: instance.config.map_or(own.config, path),
    })
}

/// A path from the command line.
fn path(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    let text = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes);
    #[cfg(not(unix))]
    // The installer writes directories that are valid Unicode; another one is no directory of ours.
    let text = OsStr::new(std::str::from_utf8(bytes).unwrap_or_default());
    Path::new(text).to_owned()
}

/// Runs `work` in a thread; `None` when it is not done by the deadline.
fn within<T: Send + 'static>(deadline_ns: u64, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, done) = mpsc::sync_channel(1);
    thread::spawn(move || drop(sender.send(work())));
    done.recv_timeout(left(deadline_ns)).ok()
}

fn left(deadline_ns: u64) -> Duration {
    Duration::from_nanos(deadline_ns.saturating_sub(boot_now_ns()))
}
