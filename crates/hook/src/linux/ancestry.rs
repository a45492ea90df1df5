//! Who our ancestors are, from `/proc`, without an allocator. Which of them is the agent is for the daemon to say.

use watchkeeper_frame::ancestry::{
    ANCESTORS_MAX, ARGUMENTS_MAX_BYTES, Ancestor, EXECUTABLE_MAX_BYTES, Namespaces, Writer, descent,
    namespace,
};

use super::{
    boot_now_ns,
    path::Path,
    sys::{self, CPath, Open},
};
use crate::flow::ANCESTORS_NEAR;

/// Of a line of `/proc/PID/stat`: 52 numbers and a name. A line that does not fit ends the walk.
const LINE_MAX_BYTES: usize = 1280;

/// Writes down who our ancestors are, nearest first, until the deadline. A block for the spool, empty when `/proc` says
/// nothing. Each costs three files of `/proc`, a few microseconds.
pub(crate) fn ancestry<'a>(room: &'a mut [u8], scratch: &mut [u8], deadline_ns: u64) -> &'a [u8] {
    try_ancestry(room, scratch, deadline_ns).unwrap_or_default()
}

fn try_ancestry<'a>(room: &'a mut [u8], scratch: &mut [u8], deadline_ns: u64) -> Option<&'a [u8]> {
    let (line, scratch) = scratch.split_at_mut_checked(LINE_MAX_BYTES)?;
    // One byte more than is kept, so that what is cut is seen to be cut.
    let (executable, scratch) = scratch.split_at_mut_checked(EXECUTABLE_MAX_BYTES + 1)?;
    let (arguments, _) = scratch.split_at_mut_checked(ARGUMENTS_MAX_BYTES + 1)?;
    let own = descent(contents(&CPath::literal(c"/proc/self/stat"), line)?)?;
    if own.parent != sys::parent_id() {
        // This `/proc` is of another namespace and counts other numbers, or our parent has just gone.
        return None;
    }
    let (mut pid, mut path) = (own.parent, Path::new());
    let namespaces = Namespaces {
        pid: namespace_of(&CPath::literal(c"/proc/self/ns/pid"), executable),
        time: namespace_of(&CPath::literal(c"/proc/self/ns/time"), executable),
    };
    let mut writer = Writer::new(room, namespaces, own.start);
    // The first process is an ancestor of all and an agent to none.
    for hop in 0..ANCESTORS_MAX {
        if pid <= 1 || (hop >= ANCESTORS_NEAR && boot_now_ns() >= deadline_ns) {
            break;
        }
        path.truncate(0);
        path.push(b"/proc/");
        path.push_number(pid);
        let folder = path.bytes().len();
        let len = sys::read_link(&file_in(&mut path, folder, "exe"), executable).unwrap_or(0);
        let executable = executable.get(..len).unwrap_or_default();
        let arguments = contents(&file_in(&mut path, folder, "cmdline"), arguments).unwrap_or_default();
        // Read last: a process that took the pid over meanwhile started after its child, which ends the walk.
        let Some(found) = contents(&file_in(&mut path, folder, "stat"), line).and_then(descent) else {
            break;
        };
        let ancestor = Ancestor { pid, start: found.start, executable, name: found.name, arguments };
        if !writer.push(&ancestor) {
            break;
        }
        pid = found.parent;
    }
    Some(writer.finish())
}

/// A file in the folder of a process, whose path is the first `folder` bytes.
fn file_in<'p>(path: &'p mut Path, folder: usize, name: &str) -> CPath<'p> {
    path.truncate(folder);
    path.push_name(name);
    path.c()
}

/// `/proc` gives a file of a process in one read, as far as there is room.
fn contents<'a>(path: &CPath<'_>, room: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = sys::open(None, path, Open::Read).ok()?;
    let len = sys::read(file.number(), room).ok()?;
    room.get(..len)
}

fn namespace_of(link: &CPath<'_>, room: &mut [u8]) -> u64 {
    let len = sys::read_link(link, room).unwrap_or(0);
    namespace(room.get(..len).unwrap_or_default())
}
