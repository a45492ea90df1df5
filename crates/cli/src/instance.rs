//! Which instance a command means, and how another program is told the same.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf, absolute},
};

use watchkeeper_api::{Client, ClientOptions};
use watchkeeper_frame::Place;

use crate::{args::Global, complaint::Complaint, exit};

const HOME_VARIABLE: &str = "WATCHKEEPER_HOME";
/// The folder of each kind below an `XDG_*` folder.
const FOLDER: &str = "watchkeeper";

/// One instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) place: Place,
    pub(crate) kind: InstanceKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InstanceKind {
    /// The user's own, where everybody finds it without being told.
    Default,
    /// The user's own, moved by `XDG_*` or by arguments: others must be told its folders.
    Moved,
    /// Everything below this folder.
    Private(PathBuf),
}

impl Instance {
    /// From the arguments, else the environment, else the user database.
    pub(crate) fn of(global: &Global) -> Result<Self, Complaint> {
        let home = global.home.clone().or_else(|| folder_variable(HOME_VARIABLE));
        let names_folders = global.run.is_some() || global.state.is_some();
        if let (Some(home), false) = (home, names_folders) {
            let home = absolute(&home).map_err(|error| {
                Complaint::new(format!("cannot use {} as an instance", home.display()))
                    .caused_by(&error)
                    .exit(exit::USAGE)
            })?;
            return Self::checked(Place::of_home(&home), InstanceKind::Private(home));
        }
        let usual = Place::default_instance();
        let moved = |given: &Option<PathBuf>, variable: &str, usual: Option<&PathBuf>| {
            given.clone().or_else(|| xdg(variable)).or_else(|| usual.cloned())
        };
        let known = usual.as_ref().ok();
        let place = match (
            moved(&global.config, "XDG_CONFIG_HOME", known.map(|place| &place.config)),
            moved(&global.state, "XDG_STATE_HOME", known.map(|place| &place.state)),
            moved(&global.run, "XDG_RUNTIME_DIR", known.map(|place| &place.run)),
        ) {
            (Some(config), Some(state), Some(run)) => Place { config, state, run },
            _ => {
                let complaint = Complaint::new("cannot tell where this user's instance is");
                return Err(match &usual {
                    Err(error) => complaint.caused_by(error),
                    Ok(_) => complaint,
                }
                .todo(format!("Name a folder with `--home DIR` or {HOME_VARIABLE}.")));
            }
        };
        let kind = if known == Some(&place) { InstanceKind::Default } else { InstanceKind::Moved };
        Self::checked(place, kind)
    }

    fn checked(place: Place, kind: InstanceKind) -> Result<Self, Complaint> {
        place.check().map_err(|error| {
            Complaint::new("cannot use this place for an instance")
                .caused_by(&error)
                .todo("Name a shorter folder with `--home DIR`.")
                .exit(exit::USAGE)
        })?;
        Ok(Self { place, kind })
    }

    /// The socket (or pipe) of the daemon's local interface.
    pub(crate) fn api(&self) -> PathBuf {
        if cfg!(windows) { self.place.api_pipe().into() } else { self.place.api_socket() }
    }

    /// Whether its daemon answers now.
    pub(crate) fn answers(&self) -> bool {
        Client::connect(&self.api(), &ClientOptions::new(concat!("watchkeeper ", env!("CARGO_PKG_VERSION"))))
            .is_ok()
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.place.config.join(watchkeeper_daemon::config::FILE_NAME)
    }

    pub(crate) const fn is_private(&self) -> bool {
        matches!(self.kind, InstanceKind::Private(_))
    }

    /// Arguments that name this instance to `watchkeeper` and `watchkeeper-hook`.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let pair = |option: &str, folder: &Path| [option.into(), folder.as_os_str().to_owned()];
        match &self.kind {
            InstanceKind::Default => Vec::new(),
            InstanceKind::Moved => [
                pair("--run", &self.place.run),
                pair("--state", &self.place.state),
                pair("--config", &self.place.config),
            ]
            .concat(),
            InstanceKind::Private(home) => pair("--home", home).to_vec(),
        }
    }
}

/// An `XDG_*` variable counts when it is an absolute path (as its specification says).
fn xdg(variable: &str) -> Option<PathBuf> {
    folder_variable(variable).filter(|folder| folder.is_absolute()).map(|folder| folder.join(FOLDER))
}

fn folder_variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
