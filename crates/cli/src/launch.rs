//! Starts the daemon of an instance in the background and waits until it listens. Knows nothing of what it does then.

#[cfg_attr(target_os = "linux", path = "launch/replace.rs")]
#[cfg_attr(not(target_os = "linux"), path = "launch/no_replace.rs")]
mod replace;
#[cfg_attr(unix, path = "launch/unix.rs")]
#[cfg_attr(not(unix), path = "launch/portable.rs")]
mod system;

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use watchkeeper_daemon::config::Environment;
use watchkeeper_frame::place::user_home;

use crate::{complaint::Complaint, instance::Instance};

pub(crate) use replace::replace;
pub(crate) use system::{create_private, detach};

/// How long a daemon may take until it listens: it replays its journal first.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(30);
/// How often a start is repeated while another daemon has the instance and does not answer.
const RETRY_EVERY: Duration = Duration::from_millis(50);
/// What a daemon says before it has a log, and when it cannot come up. Begun anew at each start.
const START_LOG: &str = "daemon-start.log";
/// How much of it a complaint repeats.
const START_LOG_TAIL_BYTES: u64 = 2000;
/// The daemon must be the same whoever starts it, so of the environment it gets only what reaches the system's buses,
/// and the settings that the person named.
const INHERITED: &[&str] = &[
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "LANG",
    "TMPDIR",
    // Windows programs do not start without these.
    "SystemRoot",
    "SystemDrive",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "TEMP",
    "TMP",
    "PATHEXT",
    "COMSPEC",
];
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How a daemon was replaced.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux replaces a daemon"))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// Its successor listens.
    Ready,
    /// It cannot do that; it runs as before.
    Impossible,
    /// Its successor ended before it listened.
    Ended,
    /// Its successor does not listen yet.
    NotReady,
}

/// Why a daemon did not come up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error("cannot create the folder {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot open {}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("cannot find this program")]
    Program(#[source] io::Error),
    #[error("cannot start {}", path.display())]
    Spawn { path: PathBuf, source: io::Error },
    #[error("cannot wait for it")]
    Wait(#[source] io::Error),
    #[error("it ended at once ({how})")]
    Ended { how: String, said: String },
    #[error("it is not ready after {} s", READY_WITHIN.as_secs())]
    NotReady { said: String },
}

/// Starts the daemon; it listens when this returns. Another one that was quicker is as good. One that is on its way out
/// still bars the door, so a start that finds it so is repeated within the time.
pub(crate) fn launch(instance: &Instance) -> Result<(), LaunchError> {
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        match start(instance, deadline)? {
            Started::Ready => return Ok(()),
            Started::OtherFirst if instance.answers() => return Ok(()),
            Started::OtherFirst if Instant::now() >= deadline => {
                return Err(LaunchError::NotReady { said: tail(&instance.place.state.join(START_LOG)) });
            }
            // It is on its way up or down; nothing tells when.
            Started::OtherFirst => std::thread::sleep(RETRY_EVERY),
        }
    }
}

/// How a start went well.
enum Started {
    Ready,
    /// It ended, content: another daemon has the instance.
    OtherFirst,
}

fn start(instance: &Instance, deadline: Instant) -> Result<Started, LaunchError> {
    let program = env::current_exe().map_err(LaunchError::Program)?;
    for folder in [&instance.place.state, &instance.place.run] {
        create_private(folder).map_err(|source| LaunchError::Folder { path: folder.clone(), source })?;
    }
    let log_path = instance.place.state.join(START_LOG);
    let log =
        fs::File::create(&log_path).map_err(|source| LaunchError::Log { path: log_path.clone(), source })?;
    let mut command = Command::new(&program);
    command
        .args(arguments(instance, true))
        .current_dir(if cfg!(windows) { "C:\\" } else { "/" })
        .env_clear()
        .envs(inherited())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    system::start(command, instance, deadline).map_err(|error| match error {
        system::StartError::Spawn(source) => LaunchError::Spawn { path: program, source },
        system::StartError::Wait(source) => LaunchError::Wait(source),
        system::StartError::Ended(status) => {
            LaunchError::Ended { how: status.to_string(), said: tail(&log_path) }
        }
        system::StartError::NotReady => LaunchError::NotReady { said: tail(&log_path) },
    })
}

/// What makes this program the daemon of `instance`.
pub(crate) fn arguments(instance: &Instance, detached: bool) -> Vec<OsString> {
    let words = ["daemon", "run", "--detached"];
    let words = if detached { &words[..] } else { &words[..2] };
    words.iter().map(Into::into).chain(instance.arguments()).collect()
}

impl LaunchError {
    pub(crate) fn complaint(&self, instance: &Instance) -> Complaint {
        let complaint = Complaint::new("cannot start the daemon").caused_by(self);
        let said = match self {
            Self::Ended { said, .. } | Self::NotReady { said } => said.as_str(),
            Self::Folder { .. }
            | Self::Log { .. }
            | Self::Program(_)
            | Self::Spawn { .. }
            | Self::Wait(_) => "",
        };
        let complaint = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .fold(complaint, |complaint, line| complaint.because(crate::output::plain(line)));
        let mut words = vec!["watchkeeper daemon run".to_owned()];
        words.extend(instance.arguments().iter().map(|word| word.to_string_lossy().into_owned()));
        complaint.todo(format!("Run `{}` to see it fail.", words.join(" ")))
    }
}

fn inherited() -> Vec<(String, OsString)> {
    let named = INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), env::var_os(name)?)));
    let settings = Environment::of_process().0.into_iter().map(|(name, value)| (name, value.into()));
    let mut variables: Vec<_> = named.chain(settings).collect();
    if cfg!(windows) {
        variables.extend(env::var_os("PATH").map(|path| ("PATH".to_owned(), path)));
    } else {
        variables.push(("PATH".to_owned(), SEARCH_PATH.into()));
        variables.extend(user_home().ok().map(|home| ("HOME".to_owned(), home.into_os_string())));
    }
    variables
}

/// The end of a log, for a complaint; nothing when it cannot be read.
fn tail(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(START_LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(START_LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
