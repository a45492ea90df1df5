//! Who our ancestors are, from `/proc` where there is one. macOS and Windows name the parent of another process, and its
//! start, only by calls that the standard library does not have: there a spooled event does not tell where it is from.

#[cfg(target_os = "linux")]
pub(crate) use from_proc::ancestry;

/// Nothing.
#[cfg(not(target_os = "linux"))]
pub(crate) fn ancestry<'a>(_room: &'a mut [u8], _scratch: &mut [u8], _deadline_ns: u64) -> &'a [u8] {
    &[]
}

#[cfg(target_os = "linux")]
mod from_proc {
    use std::{
        fs::{self, File},
        io::Read as _,
        os::unix::{ffi::OsStrExt as _, process::parent_id},
    };

    use watchkeeper_frame::ancestry::{
        ANCESTORS_MAX, ARGUMENTS_MAX_BYTES, Ancestor, Namespaces, Writer, descent,
    };

    use super::super::boot_now_ns;
    use crate::flow::ANCESTORS_NEAR;

    /// Of a line of `/proc/PID/stat`: 52 numbers and a name. A line that does not fit ends the walk.
    const LINE_MAX_BYTES: usize = 1280;

    /// Writes down who our ancestors are, nearest first, until the deadline. A block for the spool, empty when `/proc` says
    /// nothing.
    pub(crate) fn ancestry<'a>(room: &'a mut [u8], _scratch: &mut [u8], deadline_ns: u64) -> &'a [u8] {
        try_ancestry(room, deadline_ns).unwrap_or_default()
    }

    fn try_ancestry(room: &mut [u8], deadline_ns: u64) -> Option<&[u8]> {
        let line = contents("/proc/self/stat", LINE_MAX_BYTES)?;
        let own = descent(&line)?;
        if own.parent != parent_id() {
            // This `/proc` is of another namespace and counts other numbers, or our parent has just gone.
            return None;
        }
        let mut writer = Writer::new(room, Namespaces::own(), own.start);
        let mut pid = own.parent;
        // The first process is an ancestor of all and an agent to none.
        for hop in 0..ANCESTORS_MAX {
            if pid <= 1 || (hop >= ANCESTORS_NEAR && boot_now_ns() >= deadline_ns) {
                break;
            }
            let executable = link(&format!("/proc/{pid}/exe"));
            // One byte more than is kept, so that what is cut is seen to be cut.
            let arguments =
                contents(&format!("/proc/{pid}/cmdline"), ARGUMENTS_MAX_BYTES + 1).unwrap_or_default();
            // Read last: a process that took the pid over meanwhile started after its child, which ends the walk.
            let Some(line) = contents(&format!("/proc/{pid}/stat"), LINE_MAX_BYTES) else { break };
            let Some(found) = descent(&line) else { break };
            let (executable, arguments) = (executable.as_slice(), arguments.as_slice());
            if !writer.push(&Ancestor { pid, start: found.start, executable, name: found.name, arguments }) {
                break;
            }
            pid = found.parent;
        }
        Some(writer.finish())
    }

    fn contents(path: &str, max_bytes: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(max_bytes as u64).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn link(path: &str) -> Vec<u8> {
        fs::read_link(path).map(|target| target.as_os_str().as_bytes().to_vec()).unwrap_or_default()
    }
}
