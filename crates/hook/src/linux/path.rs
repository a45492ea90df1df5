//! Paths of an instance in fixed memory: the rules of `watchkeeper_frame::place`, by which the daemon finds the same.

use core::ffi::CStr;

use watchkeeper_frame::place_rules::{
    LINUX_RUN_FALLBACK, LINUX_RUN_PARENT, LINUX_STATE, PASSWD_MAX_BYTES, RUN_NAME, passwd_home,
};

use super::sys::{self, CPath, Errno};
use crate::args::Instance;

/// Longest path, its closing zero included (`PATH_MAX`); a longer one becomes empty, which names nothing.
const PATH_MAX_BYTES: usize = 4096;

/// A path under construction, always closed by a zero.
#[derive(Debug)]
pub(super) struct Path {
    bytes: [u8; PATH_MAX_BYTES],
    len: usize,
}

impl Path {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; PATH_MAX_BYTES], len: 0 }
    }

    /// Appends bytes as they are.
    pub(super) fn push(&mut self, part: &[u8]) {
        let end = self.len + part.len();
        match self.bytes.get_mut(self.len..end) {
            Some(room) if end < PATH_MAX_BYTES => {
                room.copy_from_slice(part);
                self.len = end;
            }
            _ => self.truncate(0),
        }
    }

    /// Appends one name or several joined by slashes, parted from what is there by one slash.
    pub(super) fn push_name(&mut self, name: &str) {
        if self.bytes().last().is_some_and(|last| *last != b'/') {
            self.push(b"/");
        }
        self.push(name.as_bytes());
    }

    pub(super) fn push_number(&mut self, number: u32) {
        let mut divisor = 1_000_000_000;
        while divisor > 1 && number < divisor {
            divisor /= 10;
        }
        while divisor > 0 {
            let [digit, ..] = (number / divisor % 10).to_le_bytes();
            self.push(&[b'0' + digit]);
            divisor /= 10;
        }
    }

    /// Forgets what is behind the first `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        if let Some(rest) = self.bytes.get_mut(self.len..) {
            rest.fill(0);
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// For the kernel; empty when the path contains a zero.
    pub(super) fn c(&self) -> CPath<'_> {
        CPath::literal(
            self.bytes.get(..=self.len).and_then(|b| CStr::from_bytes_with_nul(b).ok()).unwrap_or(c""),
        )
    }
}

/// The user's own runtime directory, `/run/user/UID`, where the system made one.
pub(super) fn user_runtime(out: &mut Path) -> Option<()> {
    let user = sys::effective_user();
    out.truncate(0);
    out.push(LINUX_RUN_PARENT.as_bytes());
    out.push(b"/");
    out.push_number(user);
    sys::facts(&out.c()).ok().filter(|facts| facts.is_directory && facts.owner == user).map(drop)
}

/// The runtime directory of the instance.
pub(super) fn runtime(instance: &Instance<'_>, scratch: &mut [u8], out: &mut Path) -> Option<()> {
    if let Some(home) = instance.home {
        out.push(home);
        out.push_name("run");
    } else if let Some(run) = instance.run {
        out.push(run);
    } else if user_runtime(out).is_some() {
        out.push_name(RUN_NAME);
    } else {
        user_home(scratch, out)?;
        out.push_name(LINUX_RUN_FALLBACK);
    }
    Some(())
}

/// The state directory of the instance.
pub(super) fn state(instance: &Instance<'_>, scratch: &mut [u8], out: &mut Path) -> Option<()> {
    if let Some(home) = instance.home {
        out.push(home);
        out.push_name("state");
    } else if let Some(state) = instance.state {
        out.push(state);
    } else {
        user_home(scratch, out)?;
        out.push_name(LINUX_STATE);
    }
    Some(())
}

/// The home directory of this user by `/etc/passwd`.
pub(super) fn user_home(scratch: &mut [u8], out: &mut Path) -> Option<()> {
    let room = scratch.get_mut(..PASSWD_MAX_BYTES)?;
    let file = sys::open(None, &CPath::literal(c"/etc/passwd"), sys::Open::Read).ok()?;
    let len = read_file(&file, room)?;
    let home = passwd_home(room.get(..len)?, sys::effective_user())?;
    out.truncate(0);
    out.push(home);
    Some(())
}

/// Reads a file until its end or the end of `room`.
pub(super) fn read_file(file: &sys::Fd, room: &mut [u8]) -> Option<usize> {
    let mut len = 0;
    while let Some(free) = room.get_mut(len..).filter(|free| !free.is_empty()) {
        match sys::read(file.number(), free) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(Errno::INTERRUPTED) => {}
            Err(_) => return None,
        }
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_finds_the_same_places() {
        let mut scratch = vec![0; PASSWD_MAX_BYTES];
        let mut check = |instance: Instance<'_>, run: &std::path::Path, state: &std::path::Path| {
            let mut path = Path::new();
            runtime(&instance, &mut scratch, &mut path).unwrap();
            assert_eq!(path.bytes(), run.as_os_str().as_encoded_bytes());
            let mut path = Path::new();
            self::state(&instance, &mut scratch, &mut path).unwrap();
            assert_eq!(path.bytes(), state.as_os_str().as_encoded_bytes());
        };
        let own = watchkeeper_frame::Place::default_instance().unwrap();
        check(Instance::default(), &own.run, &own.state);
        let home = watchkeeper_frame::Place::of_home("/h/".as_ref());
        check(Instance { home: Some(b"/h/"), ..Instance::default() }, &home.run, &home.state);
        let explicit = Instance { run: Some(b"/r"), state: Some(b"/s"), ..Instance::default() };
        check(explicit, "/r".as_ref(), "/s".as_ref());
    }

    #[test]
    fn numbers_and_limits() {
        let check = |number: u32| {
            let mut path = Path::new();
            path.push_number(number);
            assert_eq!(path.bytes(), number.to_string().as_bytes());
        };
        [0, 7, 10, 1_000, 65_534, u32::MAX].into_iter().for_each(check);
        let mut path = Path::new();
        path.push(&[b'a'; PATH_MAX_BYTES - 1]);
        assert_eq!(path.bytes().len(), PATH_MAX_BYTES - 1);
        path.push(b"b");
        assert_eq!(path.bytes(), b"");
        path.push(b"a\0b");
        assert_eq!(path.c().to_bytes(), b"");
    }
}
