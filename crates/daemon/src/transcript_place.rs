//! Where a session's transcript is when its agent's hooks do not say so (Copilot CLI before the first stop): at the place below
//! the agent's home folder that the session's id gives, once the folder of that file is there. The file itself may come after
//! the last hook for long.
//!
//! The agent's home may have been moved by a variable of its environment, which need not be ours.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use watchkeeper_agents::Adapter;
use watchkeeper_core::ProcessRef;
use watchkeeper_os::process::{Sameness, environment, identity};

/// Says where a person's home folder is, to programs of a Unix.
const HOME: &str = "HOME";

/// The path of the session's transcript; `None` when the agent has no such place or its folder is not there. `process`: the
/// agent; where its environment cannot be read, its home counts as not moved. Blocks for a few reads of kernel tables and a look
/// at one folder's name.
#[must_use]
pub(crate) fn of(adapter: &dyn Adapter, session: &str, process: Option<ProcessRef>) -> Option<String> {
    let below = adapter.transcript_below_home(session)?;
    let home = adapter.installer()?.home;
    let [user_home, moved] = [HOME, home.variable].map(|name| variable(process?, name));
    let user_home = match user_home {
        Some(named) => PathBuf::from(named),
        None => watchkeeper_frame::place::user_home().ok()?,
    };
    let path = home.resolve(&user_home, moved.as_deref()).join(below);
    // The folder is the session's own: a guess of another home finds none.
    let is_there = path.is_absolute() && path.parent().is_some_and(Path::is_dir);
    path.into_os_string().into_string().ok().filter(|_| is_there)
}

fn variable(process: ProcessRef, name: &str) -> Option<OsString> {
    let value = environment::variable(process.pid, name).filter(|value| !value.is_empty())?;
    // Asked after the read: a process that is still there had this pid, and so this environment, all the while.
    (identity::same(&process) == Sameness::Same).then_some(value)
}
