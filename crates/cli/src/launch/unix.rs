//! Unix: a session of its own, readiness told on a datagram socket (the `sd_notify` protocol).

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::{fs::DirBuilderExt, net::UnixDatagram},
    path::Path,
    process::{Command, ExitStatus},
    sync::mpsc::sync_channel,
    thread,
    time::Instant,
};

use super::Started;
use crate::instance::Instance;

/// Longest notice looked at.
const NOTICE_BYTES_MAX: usize = 256;
/// Our own notice that the daemon ended before it was ready.
const ENDED: &[u8] = b"ENDED";

pub(super) enum StartError {
    Spawn(io::Error),
    Wait(io::Error),
    Ended(ExitStatus),
    NotReady,
}

/// Starts `command` and waits for its `READY=1`, or its end.
pub(super) fn start(
    mut command: Command,
    instance: &Instance,
    deadline: Instant,
) -> Result<Started, StartError> {
    // Two starts at once do not take each other's notices.
    let path = instance.place.run.join(format!("up{}", std::process::id()));
    // A socket of a killed run with the same pid.
    _ = fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).map_err(StartError::Wait)?;
    let outcome = wait(&mut command, &socket, &path, deadline);
    // Nobody sends there any more; a socket that stays is removed by the next start of the same pid.
    _ = fs::remove_file(&path);
    outcome
}

fn wait(
    command: &mut Command,
    socket: &UnixDatagram,
    path: &Path,
    deadline: Instant,
) -> Result<Started, StartError> {
    let mut child = command.env("NOTIFY_SOCKET", path).spawn().map_err(StartError::Spawn)?;
    let (ended, end) = sync_channel(1);
    let notice = path.to_owned();
    // Outlives this function by as long as the daemon lives, then ends; it also reaps a child that ends early.
    thread::spawn(move || {
        let status = child.wait();
        // Whoever waited may have gone on already.
        _ = ended.send(status);
        _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(ENDED, notice));
    });
    let mut notice = [0; NOTICE_BYTES_MAX];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(StartError::NotReady);
        }
        socket.set_read_timeout(Some(left)).map_err(StartError::Wait)?;
        let length = match socket.recv(&mut notice) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(StartError::Wait(error)),
        };
        let said = &notice[..length];
        if said.split(|byte| *byte == b'\n').any(|line| line == b"READY=1") {
            return Ok(Started::Ready);
        }
        if said == ENDED {
            let status = end.recv().map_err(|_| StartError::NotReady)?.map_err(StartError::Wait)?;
            // Another daemon of this instance was quicker.
            return if status.success() { Ok(Started::OtherFirst) } else { Err(StartError::Ended(status)) };
        }
    }
}

/// The beginning of a detached daemon's life: a session of its own, without a terminal.
pub(crate) fn detach() -> io::Result<()> {
    // It fails for the leader of a group, which then already leads a session or stays in its own.
    match rustix::process::setsid() {
        Ok(_) | Err(rustix::io::Errno::PERM) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Creates a folder that only its owner may enter.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
