//! Where an instance lives: its configuration, state and runtime directories and the files in them.
//!
//! The default instance is found without reading the environment, which leaks between agents: the hook and the daemon
//! of one user always mean the same one. Must not know what the files contain. Creates nothing.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::place_rules::{API_SOCKET, HOOK_SOCKET, SOCKET_PATH_MAX_BYTES, SPOOL, directory_hash};

#[cfg_attr(all(unix, not(target_os = "macos")), path = "place/linux.rs")]
#[cfg_attr(target_os = "macos", path = "place/macos.rs")]
#[cfg_attr(windows, path = "place/windows.rs")]
#[cfg_attr(not(any(unix, windows)), path = "place/unsupported.rs")]
mod system;

/// The three directories of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub config: PathBuf,
    pub state: PathBuf,
    /// Holds the sockets and the lock. Mode 0700; never a shared temporary directory.
    pub run: PathBuf,
}

/// Why an instance cannot be placed.
#[derive(Debug)]
pub enum PlaceError {
    /// The system names no home directory for this user.
    NoHome { why: &'static str },
    /// Asking the system failed.
    System { what: &'static str, source: io::Error },
    /// A socket's path is longer than the system allows.
    SocketPath { path: PathBuf, bytes: usize, max: usize },
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHome { why } => write!(f, "no home directory for this user: {why}"),
            Self::System { what, .. } => write!(f, "cannot ask the system for {what}"),
            Self::SocketPath { path, bytes, max } => write!(
                f,
                "the socket path {} is {bytes} bytes long, and this system allows {max}; choose a shorter directory",
                path.display()
            ),
        }
    }
}

impl std::error::Error for PlaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            Self::NoHome { .. } | Self::SocketPath { .. } => None,
        }
    }
}

/// The home directory of the user that this process runs as, by the system's word and not the environment's.
///
/// # Errors
/// When the system names none.
pub fn user_home() -> Result<PathBuf, PlaceError> {
    system::user_home()
}

impl Place {
    /// A private instance: everything below `dir`.
    #[must_use]
    pub fn of_home(dir: &Path) -> Self {
        Self { config: dir.join("config"), state: dir.join("state"), run: dir.join("run") }
    }

    /// The user's own instance, found without the environment.
    ///
    /// # Errors
    /// When the system names no home directory for this user; the directories must then be given on the command line.
    pub fn default_instance() -> Result<Self, PlaceError> {
        system::default_instance()
    }

    /// The socket that hooks connect to (Unix).
    #[must_use]
    pub fn hook_socket(&self) -> PathBuf {
        self.run.join(HOOK_SOCKET)
    }

    /// The socket of the local interface (Unix).
    #[must_use]
    pub fn api_socket(&self) -> PathBuf {
        self.run.join(API_SOCKET)
    }

    /// The pipe that hooks connect to (Windows).
    #[must_use]
    pub fn hook_pipe(&self) -> String {
        self.pipe("hook")
    }

    /// The pipe of the local interface (Windows).
    #[must_use]
    pub fn api_pipe(&self) -> String {
        self.pipe("api")
    }

    /// Events that hooks left while the daemon was away.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.state.join(SPOOL)
    }

    /// The journal's database.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.state.join("journal.db")
    }

    /// Locked by the one daemon of this instance; never unlinked.
    #[must_use]
    pub fn daemon_lock(&self) -> PathBuf {
        self.run.join("daemon.lock")
    }

    /// Checks that both sockets' paths fit the system's limit. Pipes' names always do.
    ///
    /// # Errors
    /// [`PlaceError::SocketPath`] with the path, its length and the limit.
    pub fn check(&self) -> Result<(), PlaceError> {
        if cfg!(windows) {
            return Ok(());
        }
        for path in [self.hook_socket(), self.api_socket()] {
            let bytes = path.as_os_str().len();
            if bytes > SOCKET_PATH_MAX_BYTES {
                return Err(PlaceError::SocketPath { path, bytes, max: SOCKET_PATH_MAX_BYTES });
            }
        }
        Ok(())
    }

    /// Pipes live in one namespace for the whole machine, so the name carries a hash of the runtime directory.
    fn pipe(&self, door: &str) -> String {
        let hash = directory_hash(self.run.as_os_str().as_encoded_bytes());
        format!(r"\\.\pipe\watchkeeper-{hash:016x}-{door}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_instance_is_below_its_directory() {
        let place = Place::of_home(Path::new("/h"));
        assert_eq!(place.hook_socket(), Path::new("/h/run/hook.sock"));
        assert_eq!(place.api_socket(), Path::new("/h/run/api.sock"));
        assert_eq!(place.spool(), Path::new("/h/state/spool"));
        assert_eq!(place.journal(), Path::new("/h/state/journal.db"));
        assert_eq!(place.daemon_lock(), Path::new("/h/run/daemon.lock"));
        assert!(place.hook_pipe().starts_with(r"\\.\pipe\watchkeeper-"));
        assert_ne!(place.hook_pipe(), place.api_pipe());
        assert_ne!(place.hook_pipe(), Place::of_home(Path::new("/i")).hook_pipe());
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_path_that_does_not_fit_is_named() {
        let check = |dir_bytes: usize, expected: bool| {
            let place = Place::of_home(Path::new(&format!("/{}", "d".repeat(dir_bytes - 1))));
            assert_eq!(place.check().is_ok(), expected, "{:?}", place.check().map_err(|e| e.to_string()));
        };
        let rest = "/run/hook.sock".len();
        check(SOCKET_PATH_MAX_BYTES - rest, true);
        check(SOCKET_PATH_MAX_BYTES - rest + 1, false);
        let error = Place::of_home(Path::new(&"/long".repeat(40))).check().unwrap_err().to_string();
        assert!(error.contains("hook.sock is 214 bytes long"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_default_instance_follows_the_user_database() {
        let place = Place::default_instance().unwrap();
        assert!(place.state.ends_with(".local/state/watchkeeper"));
        assert!(place.config.ends_with(".config/watchkeeper"));
        assert!(place.run.starts_with("/run/user") || place.run == place.state.join("run"));
    }
}
