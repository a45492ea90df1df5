//! The capability of the MCP control server: a secret in a file that only its owner reads. The daemon compares what a
//! server shows with the file; the agents' entries name the file and never hold the secret.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use watchkeeper_api::mcp::{CAPABILITY_BYTES_MAX, CAPABILITY_FILE, Capability};
use watchkeeper_os::private_file::read_private;

use super::{
    error::InstallError,
    target::Snapshot,
    write::{self, Staged},
};

/// What becomes of the file. Nothing has been done yet.
#[derive(Debug)]
pub(crate) struct CapabilityPlan {
    path: PathBuf,
    change: Change,
}

#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// The command has nothing to do with it.
    NotAsked,
    Nothing,
    Write {
        text: String,
        write: bool,
    },
    Remove,
}

impl CapabilityPlan {
    /// Of a command that leaves it alone.
    pub(crate) fn not_asked(state: &Path) -> Self {
        Self { path: state.join(CAPABILITY_FILE), change: Change::NotAsked }
    }

    /// One that allows exactly this. A secret that nobody else could read is kept, so that running servers go on.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn install(state: &Path, write: bool) -> Result<Self, InstallError> {
        let path = state.join(CAPABILITY_FILE);
        let change = match usable(&path) {
            Some(found) if found.write == write => Change::Nothing,
            Some(found) => Change::Write { text: found.allowing(write).to_text(), write },
            None => {
                let secret =
                    random().map_err(|error| InstallError::io("make a secret for", &path)(error.into()))?;
                Change::Write { text: Capability::new(secret, write).to_text(), write }
            }
        };
        Ok(Self { path, change })
    }

    pub(crate) fn uninstall(state: &Path) -> Self {
        let path = state.join(CAPABILITY_FILE);
        let there = fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir());
        Self { path, change: if there { Change::Remove } else { Change::Nothing } }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn changes(&self) -> bool {
        matches!(self.change, Change::Write { .. } | Change::Remove)
    }

    /// The word for it that a script reads; `None` for a command that leaves it alone.
    pub(crate) const fn change(&self) -> Option<&'static str> {
        match &self.change {
            Change::NotAsked => None,
            Change::Nothing => Some("none"),
            Change::Write { .. } => Some("write"),
            Change::Remove => Some("delete"),
        }
    }

    /// What the person agrees to.
    pub(crate) fn shown(&self) -> Option<String> {
        let path = self.path.display();
        match &self.change {
            Change::NotAsked | Change::Nothing => None,
            Change::Write { write: false, .. } => Some(format!(
                "{path}: a secret, for you only, with which the MCP server may read everything and change nothing"
            )),
            Change::Write { write: true, .. } => Some(format!(
                "{path}: a secret, for you only, with which the MCP server may read everything, change sessions and \
                 some settings"
            )),
            Change::Remove => {
                Some(format!("{path}: removed; MCP servers that still run can do nothing more"))
            }
        }
    }

    pub(crate) fn carry_out(&self) -> Result<(), InstallError> {
        let path = &self.path;
        match &self.change {
            Change::NotAsked | Change::Nothing => Ok(()),
            Change::Write { text, .. } => {
                write::create_folders(path)?;
                // Never into a file that others made or may read: the old one goes first.
                remove(path)?;
                let nothing =
                    Snapshot { path: path.clone(), target: path.clone(), bytes: None, attributes: None };
                Staged::new(&nothing, text.as_bytes())?.commit()
            }
            Change::Remove => {
                remove(path)?;
                // The folder goes with it unless something else is there.
                path.parent().map(fs::remove_dir);
                Ok(())
            }
        }
    }
}

fn remove(path: &Path) -> Result<(), InstallError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(InstallError::io("remove", path)(source)),
    }
}

/// The capability that stands there, if nobody else could have read or put it.
fn usable(path: &Path) -> Option<Capability> {
    Capability::parse(&read_private(path, CAPABILITY_BYTES_MAX).ok()?).ok()
}

/// From the system's own source.
fn random() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_for_its_owner_only_and_goes_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let planned = CapabilityPlan::install(&state, false).unwrap();
        assert!(planned.changes() && planned.shown().is_some_and(|text| text.contains("change nothing")));
        planned.carry_out().unwrap();
        let first = usable(planned.path()).unwrap();
        assert!(!first.write);
        assert!(!CapabilityPlan::install(&state, false).unwrap().changes(), "again: nothing to do");
        // More is allowed under the same secret.
        CapabilityPlan::install(&state, true).unwrap().carry_out().unwrap();
        let wider = usable(planned.path()).unwrap();
        assert_eq!((wider.write, &wider.secret), (true, &first.secret));
        CapabilityPlan::uninstall(&state).carry_out().unwrap();
        assert!(!state.join("mcp").exists());
        assert!(!CapabilityPlan::uninstall(&state).changes());
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_that_others_could_read_is_replaced() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        CapabilityPlan::install(folder.path(), true).unwrap().carry_out().unwrap();
        let path = folder.path().join(CAPABILITY_FILE);
        let first = usable(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        CapabilityPlan::install(folder.path(), true).unwrap().carry_out().unwrap();
        let second = usable(&path).unwrap();
        assert_ne!(first.secret, second.secret);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        CapabilityPlan::install(folder.path(), true).unwrap().carry_out().unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }
}
