//! A descriptor known by number only, as an inherited one is.
#![expect(unsafe_code, reason = "an inherited descriptor is a number")]

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
