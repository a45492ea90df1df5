//! Starts the daemon that stands beside this program, and does not wait for it.
//!
//! The daemon must be the same whichever agent happens to start it, so nothing of the agent's environment reaches it:
//! home and runtime directory come from the user database and the system, the search path is fixed. Only a private
//! instance (`--home`) inherits the addresses of the message buses, since whoever names its directory owns it: tests
//! point them at buses of their own. It gets a session of its own, `/` as working directory, and the null device as
//! input and output. Where there is a service manager the daemon moves itself under it; the hook cannot wait for that.

use super::{
    path::{self, Path},
    sys::{self, CList, CPath},
};
use crate::args::Instance;

/// The daemon's program, in the directory of this one.
const PROGRAM: &str = "watchkeeper";
/// How much of the agent's environment is looked at for the addresses of message buses.
const ENVIRONMENT_MAX_BYTES: usize = 128 * 1024;
/// Variables that a private instance inherits.
const INHERITED: [&[u8]; 2] = [b"DBUS_SYSTEM_BUS_ADDRESS=", b"DBUS_SESSION_BUS_ADDRESS="];

/// Starts `watchkeeper daemon run` for the instance. Silent when it cannot. An instance that is not named by absolute
/// paths is not started: its daemon, which works in `/`, would look elsewhere.
pub(crate) fn start_daemon(instance: &Instance<'_>, scratch: &mut [u8]) {
    // Nobody can be told: the agent must not be disturbed.
    _ = try_start(instance, scratch);
}

fn try_start(instance: &Instance<'_>, scratch: &mut [u8]) -> Option<()> {
    let given = [
        (c"--home", instance.home),
        (c"--run", instance.run.filter(|_| instance.home.is_none())),
        (c"--state", instance.state.filter(|_| instance.home.is_none())),
        (c"--config", instance.config.filter(|_| instance.home.is_none())),
    ];
    if given.iter().any(|(_, directory)| directory.is_some_and(|directory| !directory.starts_with(b"/"))) {
        return None;
    }
    let mut program = Path::new();
    beside_us(&mut program, scratch)?;
    let (mut home, mut runtime, mut bus) = (Path::new(), Path::new(), Path::new());
    home.push(b"HOME=");
    let mut directory = Path::new();
    path::user_home(scratch, &mut directory)?;
    home.push(directory.bytes());
    let has_runtime = path::user_runtime(&mut directory).is_some();
    runtime.push(b"XDG_RUNTIME_DIR=");
    runtime.push(directory.bytes());
    bus.push(b"DBUS_SESSION_BUS_ADDRESS=unix:path=");
    bus.push(directory.bytes());
    bus.push_name("bus");
    directory.push_name("bus");
    let has_bus = has_runtime && sys::facts(&directory.c()).is_ok();

    let mut variables = CList::new();
    variables.push(home.c());
    variables.push(CPath::literal(c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    variables.push(CPath::literal(c"LANG=C.UTF-8"));
    if has_runtime {
        variables.push(runtime.c());
    }
    let inherited = if instance.home.is_some() { inherited(scratch) } else { [None; 2] };
    if has_bus && inherited.iter().flatten().all(|variable| !variable.to_bytes().starts_with(b"DBUS_SESSION"))
    {
        variables.push(bus.c());
    }
    inherited.into_iter().flatten().for_each(|variable| variables.push(variable));

    let mut arguments = CList::new();
    for word in [c"watchkeeper", c"daemon", c"run"] {
        arguments.push(CPath::literal(word));
    }
    let mut values = [Path::new(), Path::new(), Path::new()];
    let options = given.into_iter().filter_map(|(option, directory)| Some((option, directory?)));
    for ((option, directory), value) in options.zip(&mut values) {
        value.push(directory);
        arguments.push(CPath::literal(option));
        arguments.push(value.c());
    }
    sys::start_detached(&program.c(), &arguments, &variables).ok()
}

/// The daemon's program in the directory of this one, by the kernel's word for where this one is.
fn beside_us(out: &mut Path, scratch: &mut [u8]) -> Option<()> {
    let len = sys::read_link(&CPath::literal(c"/proc/self/exe"), scratch).ok()?;
    let own = scratch.get(..len)?;
    let directory = own.iter().rposition(|b| *b == b'/')?;
    out.push(own.get(..directory)?);
    out.push(b"/");
    out.push_name(PROGRAM);
    Some(())
}

/// The variables of [`INHERITED`] that this process has.
fn inherited(scratch: &mut [u8]) -> [Option<CPath<'_>>; 2] {
    let file = sys::open(None, &CPath::literal(c"/proc/self/environ"), sys::Open::Read).ok();
    let room = scratch.get_mut(..ENVIRONMENT_MAX_BYTES).unwrap_or_default();
    let len = file.and_then(|file| path::read_file(&file, room)).unwrap_or(0);
    let text = scratch.get(..len).unwrap_or_default();
    INHERITED.map(|name| {
        let variable = text.split_inclusive(|b| *b == 0).find(|variable| variable.starts_with(name))?;
        core::ffi::CStr::from_bytes_with_nul(variable).ok().map(CPath::literal)
    })
}
