//! Windows and others: a process without a console, readiness seen by dialling.

use std::{
    fs, io,
    path::Path,
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use super::Started;
use crate::instance::Instance;

/// A pipe that appears tells nobody, so it is looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) enum StartError {
    Spawn(io::Error),
    Wait(io::Error),
    Ended(ExitStatus),
    NotReady,
}

/// Starts `command` and waits until its interface answers, or its end.
pub(super) fn start(
    mut command: Command,
    instance: &Instance,
    deadline: Instant,
) -> Result<Started, StartError> {
    without_console(&mut command);
    let mut child = command.spawn().map_err(StartError::Spawn)?;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().map_err(StartError::Wait)? {
            // Another daemon of this instance was quicker.
            return if status.success() { Ok(Started::OtherFirst) } else { Err(StartError::Ended(status)) };
        }
        if instance.answers() {
            return Ok(Started::Ready);
        }
        thread::park_timeout(LOOK_EVERY);
    }
    Err(StartError::NotReady)
}

#[cfg(windows)]
fn without_console(command: &mut Command) {
    use std::os::windows::process::CommandExt;
    /// `CREATE_NO_WINDOW` and `CREATE_NEW_PROCESS_GROUP` of winbase.h.
    const FLAGS: u32 = 0x0800_0000 | 0x0000_0200;
    command.creation_flags(FLAGS);
}

#[cfg(not(windows))]
fn without_console(_command: &mut Command) {}

/// Nothing to do: the start already cut it loose.
pub(crate) fn detach() -> io::Result<()> {
    Ok(())
}

/// Creates a folder; the user's own folders are closed to others by inheritance.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}
