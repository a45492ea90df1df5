//! Where a session's transcript is when its agent's hooks do not say so: at the place below the agent's home folder that the
//! session's id gives, once the folder of that file is there (Copilot CLI before the first stop; the file itself may come after
//! the last hook for long), or the only file there whose name tells that it is the session's (Codex).
//!
//! The agent's home may have been moved by a variable of its environment, which need not be ours.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use watchkeeper_agents::{Adapter, TranscriptSearch};
use watchkeeper_core::ProcessRef;
use watchkeeper_os::process::{Sameness, environment, identity};

/// Says where a person's home folder is, to programs of a Unix.
const HOME: &str = "HOME";

/// Entries of folders that a search looks at; a home with more tells nothing.
const SEARCHED_MAX: usize = 20_000;

/// The path of the session's transcript; `None` when the agent has no such place or its folder is not there. `process`: the
/// agent; where its environment cannot be read, its home counts as not moved. Blocks for a few reads of kernel tables and a look
/// at one folder's name.
#[must_use]
pub(crate) fn of(adapter: &dyn Adapter, session: &str, process: Option<ProcessRef>) -> Option<String> {
    let below = adapter.transcript_below_home(session)?;
    let path = home_of(adapter, process)?.join(below);
    // The folder is the session's own: a guess of another home finds none.
    let is_there = path.is_absolute() && path.parent().is_some_and(Path::is_dir);
    path.into_os_string().into_string().ok().filter(|_| is_there)
}

/// As [`of`], for an agent whose files must be looked through: the only one that is the session's. `None` when there is none, or
/// several, or more to look through than [`SEARCHED_MAX`] entries. Blocks for reading the names in a few folders.
#[must_use]
pub(crate) fn search(adapter: &dyn Adapter, session: &str, process: Option<ProcessRef>) -> Option<String> {
    let TranscriptSearch { folder, depth, name_end } = adapter.transcript_search(session)?;
    let (mut folders, mut left) = (vec![(home_of(adapter, process)?.join(folder), 0)], SEARCHED_MAX);
    let mut found = None;
    while let Some((folder, deep)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            left = left.checked_sub(1)?;
            // Links are not followed.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && deep < depth {
                folders.push((entry.path(), deep + 1));
            } else if kind.is_file()
                && entry.file_name().to_str().is_some_and(|name| name.ends_with(&name_end))
            {
                if found.is_some() {
                    return None;
                }
                found = Some(entry.path());
            }
        }
    }
    found.filter(|path| path.is_absolute())?.into_os_string().into_string().ok()
}

/// The agent's home folder, as its own environment has it.
fn home_of(adapter: &dyn Adapter, process: Option<ProcessRef>) -> Option<PathBuf> {
    let home = adapter.installer()?.home;
    let [user_home, moved] = [HOME, home.variable].map(|name| variable(process?, name));
    let user_home = match user_home {
        Some(named) => PathBuf::from(named),
        None => watchkeeper_frame::place::user_home().ok()?,
    };
    Some(home.resolve(&user_home, moved.as_deref()))
}

fn variable(process: ProcessRef, name: &str) -> Option<OsString> {
    let value = environment::variable(process.pid, name).filter(|value| !value.is_empty())?;
    // Asked after the read: a process that is still there had this pid, and so this environment, all the while.
    (identity::same(&process) == Sameness::Same).then_some(value)
}
