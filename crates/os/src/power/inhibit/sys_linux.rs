//! What an exec asks for: a descriptor known by number only, as an inherited one is, and a signal's disposition.
#![expect(unsafe_code, reason = "an inherited descriptor is a number; dispositions are set by a bare call")]

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

/// Takes ownership of an open descriptor and makes it close-on-exec. The caller promises that `raw` was left open
/// for us by whoever started this program and that nothing here owns it.
pub(super) fn take_inherited(raw: RawFd) -> Result<OwnedFd, Errno> {
    if raw < 3 {
        return Err(Errno::BADF);
    }
    // SAFETY: the number is not -1, and is only used for one fcntl, which fails for a closed descriptor.
    let borrowed = unsafe { BorrowedFd::borrow_raw(raw) };
    let flags = fcntl_getfd(borrowed)?;
    fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and by the caller's promise it is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// What happens to this process at a signal, as it was.
pub(super) struct Disposition {
    signal: libc::c_int,
    action: libc::sigaction,
}

impl std::fmt::Debug for Disposition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disposition").field("signal", &self.signal).finish_non_exhaustive()
    }
}

impl Disposition {
    /// Of SIGPIPE, unchanged; `None` when the system does not tell, which it always does.
    pub(super) fn of_pipe() -> Option<Self> {
        Self::exchange(libc::SIGPIPE, std::ptr::null())
    }

    /// Of the signals that ask for an end, which end the process at once from here on.
    pub(super) fn of_ends_replaced() -> Vec<Self> {
        // SAFETY: zeros are a valid action: the default one, with no flags and an empty mask.
        let default: libc::sigaction = unsafe { std::mem::zeroed() };
        [libc::SIGTERM, libc::SIGINT]
            .into_iter()
            .filter_map(|signal| Self::exchange(signal, &raw const default))
            .collect()
    }

    /// Of SIGHUP, which is ignored from here on; also by the program of an exec, until that says otherwise.
    pub(super) fn of_hangup_ignored() -> Option<Self> {
        // SAFETY: zeros are a valid action, see above.
        let mut ignored: libc::sigaction = unsafe { std::mem::zeroed() };
        ignored.sa_sigaction = libc::SIG_IGN;
        Self::exchange(libc::SIGHUP, &raw const ignored)
    }

    /// `new` is null or a valid action.
    fn exchange(signal: libc::c_int, new: *const libc::sigaction) -> Option<Self> {
        let mut action = std::mem::MaybeUninit::uninit();
        // SAFETY: the new action is none or one without a handler; the old one is written to a place of its size.
        let got = unsafe { libc::sigaction(signal, new, action.as_mut_ptr()) };
        // SAFETY: the call succeeded, so it was written.
        (got == 0).then(|| Self { signal, action: unsafe { action.assume_init() } })
    }

    /// Makes it so again.
    pub(super) fn restore(&self) {
        // SAFETY: the action is one that this process had, so that its handler, if any, is a function of this program. It
        // can only fail for a number that is no signal.
        _ = unsafe { libc::sigaction(self.signal, &raw const self.action, std::ptr::null_mut()) };
    }
}
