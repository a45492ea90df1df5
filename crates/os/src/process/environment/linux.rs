//! `/proc/PID/environ`.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use crate::process::proc_files;

/// Variables beyond this are not seen, nor the one that it cuts.
const MAX_ENVIRONMENT_BYTES: u64 = 256 * 1024;

pub(super) fn variable(pid: u32, name: &str) -> Option<OsString> {
    find(&proc_files::read_bounded(pid, "environ", MAX_ENVIRONMENT_BYTES).ok()?, name)
}

/// The first of the name counts, as for `getenv`.
fn find(environment: &[u8], name: &str) -> Option<OsString> {
    let whole = &environment[..=environment.iter().rposition(|b| *b == 0)?];
    let value =
        whole.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsString::from_vec(value.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[track_caller]
    fn check(environment: &[u8], value: Option<&str>) {
        assert_eq!(find(environment, "HOME"), value.map(OsString::from));
    }

    #[test]
    fn only_a_whole_entry_of_that_name_counts() {
        check(b"A=1\0HOME=/a\0HOME=/b\0", Some("/a"));
        check(b"HOME=\0", Some(""));
        check(b"XHOME=/x\0HOMER=/y\0=HOME=/z\0HOME\0", None);
        check(b"A=HOME=/a\0", None);
        check(b"A=1\0HOME=/cut", None);
        check(b"", None);
        check(b"\0\0", None);
    }

    #[test]
    fn a_process_has_what_it_was_started_with() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "HOME=/changed; echo; read -r never"]).env("HOME", "/given");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Its line is said after the exec, when its environment is its own.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let found = ["HOME", "NOT_SET_ANYWHERE"].map(|name| variable(child.id(), name));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(found, [Some("/given".into()), None]);
        assert_eq!(variable(child.id(), "HOME"), None, "it is gone");
    }
}
