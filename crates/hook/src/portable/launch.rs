//! Starts the daemon that stands beside this program, and does not wait for it. The environment is made as the twin
//! on x86-64 Linux makes it: from the system, not from the agent.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::args::Instance;

/// The daemon's program, in the directory of this one.
const PROGRAM: &str = if cfg!(windows) { "watchkeeper.exe" } else { "watchkeeper" };
/// Variables that a private instance inherits.
const INHERITED: [&str; 2] = ["DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS"];
/// Where Windows itself is: its libraries do not load without these, and they are the same for every process.
const SYSTEM: [&str; 4] = ["SystemRoot", "SystemDrive", "windir", "ComSpec"];

/// Starts `watchkeeper daemon run` for the instance. Silent when it cannot. An instance that is not named by absolute
/// paths is not started: its daemon, which works in the root directory, would look elsewhere.
pub(crate) fn start_daemon(instance: &Instance<'_>, _scratch: &mut [u8]) {
    // The child is not waited for, and lives on when its handle goes.
    drop(try_start(instance));
}

fn try_start(instance: &Instance<'_>) -> Option<Child> {
    let explicit = instance.home.is_none();
    let given = [
        ("--home", instance.home),
        ("--run", instance.run.filter(|_| explicit)),
        ("--state", instance.state.filter(|_| explicit)),
        ("--config", instance.config.filter(|_| explicit)),
    ];
    let mut arguments: Vec<PathBuf> = vec!["daemon".into(), "run".into()];
    for (option, directory) in given {
        let Some(directory) = directory.map(super::path) else { continue };
        if !directory.is_absolute() {
            return None;
        }
        arguments.extend([option.into(), directory]);
    }
    let program = std::env::current_exe().ok()?.parent()?.join(PROGRAM);
    let home = watchkeeper_frame::place::user_home().ok()?;
    spawn(&program, &arguments, &home, !explicit)
}

#[cfg(unix)]
fn spawn(program: &Path, arguments: &[PathBuf], home: &Path, private: bool) -> Option<Child> {
    let mut command = command(program, arguments, home, private);
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/");
    super::sys::detach(&mut command);
    command.spawn().ok()
}

#[cfg(windows)]
fn spawn(program: &Path, arguments: &[PathBuf], home: &Path, private: bool) -> Option<Child> {
    // A job that forbids leaving it refuses the start; then the daemon stays in the agent's job.
    [true, false].into_iter().find_map(|leave_job| {
        let mut command = command(program, arguments, home, private);
        command.current_dir(home);
        super::sys::detach(&mut command, leave_job);
        command.spawn().ok()
    })
}

fn command(program: &Path, arguments: &[PathBuf], home: &Path, private: bool) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if cfg!(windows) {
        command.env("USERPROFILE", home);
        command.env("LOCALAPPDATA", home.join("AppData").join("Local"));
        command.env("APPDATA", home.join("AppData").join("Roaming"));
    } else {
        command.env("HOME", home).env("LANG", "C.UTF-8");
    }
    let inherited = INHERITED.iter().filter(|_| private);
    for name in inherited.chain(SYSTEM.iter().filter(|_| cfg!(windows))) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}
