//! Linux: the daemon becomes its successor, in the same process, and so keeps what it holds of the machine.

use std::{
    env, fs, io,
    os::unix::net::UnixDatagram,
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use watchkeeper_api::{
    Client, ClientError,
    method::{DaemonRestart, GetDaemonStatus, Nothing, RestartParams},
};

use super::{READY_WITHIN, Replaced};
use crate::instance::Instance;

/// Why the daemon could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplaceError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot wait for the successor at {}", path.display())]
    Wait { path: PathBuf, source: io::Error },
}

/// Has the daemon that `client` talks to replaced by this program, and waits until that listens.
pub(crate) fn replace(mut client: Client, instance: &Instance) -> Result<Replaced, ReplaceError> {
    if !client.hello().capabilities.contains_key("restart") {
        return Ok(Replaced::Impossible);
    }
    let pid = client.call::<GetDaemonStatus>(&Nothing {})?.pid;
    // Its number stays, so its end can be waited for. Without that it is stopped and started.
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(Ok(process)) = process.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
        return Ok(Replaced::Impossible);
    };
    let path = instance.place.run.join(format!("re{}", std::process::id()));
    let failed = |source| ReplaceError::Wait { path: path.clone(), source };
    // A socket of a killed run with the same pid.
    _ = fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).map_err(failed)?;
    let params = RestartParams {
        program: env::current_exe().ok().and_then(|program| program.to_str().map(str::to_owned)),
        notify: path.to_str().map(str::to_owned),
    };
    let outcome = match client.call::<DaemonRestart>(&params) {
        Ok(_) => wait(&process, &socket).map_err(failed),
        Err(error) => Err(error.into()),
    };
    // Nobody sends there any more; a socket that stays is removed by the next run of the same pid.
    _ = fs::remove_file(&path);
    outcome
}

fn wait(process: &impl std::os::fd::AsFd, socket: &UnixDatagram) -> io::Result<Replaced> {
    let deadline = Instant::now() + READY_WITHIN;
    let mut word = [0; 64];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Ok(Replaced::NotReady);
        }
        let mut fds = [PollFd::new(socket, PollFlags::IN), PollFd::new(process, PollFlags::IN)];
        let limit = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [told, ended] = fds.map(|fd| !fd.revents().is_empty());
        if told && socket.recv(&mut word).is_ok_and(|length| word.get(..length) == Some(b"READY=1")) {
            return Ok(Replaced::Ready);
        }
        if ended && !told {
            return Ok(Replaced::Ended);
        }
    }
}
