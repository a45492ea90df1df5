//! Socket options of local sockets, as raw calls.
#![expect(unsafe_code, reason = "getsockopt with these options has no safe wrapper")]

use std::{
    ffi::c_int,
    mem::size_of,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::io::Errno;

/// `audit_token_t` of `<mach/message.h>`; the meaning of its words is that of `audit_token_to_*` in `<bsm/libbsm.h>`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) effective_uid: u32,
    pub(super) pid: u32,
    pub(super) pid_version: u32,
}

pub(super) fn token(socket: BorrowedFd<'_>) -> Result<Token, Errno> {
    let [_, effective_uid, _, _, _, pid, _, pid_version] = get(socket, libc::LOCAL_PEERTOKEN, [0_u32; 8])?;
    Ok(Token { effective_uid, pid, pid_version })
}

/// The pid of whoever connected, or of the last to use the socket.
pub(super) fn pid(socket: BorrowedFd<'_>) -> Result<u32, Errno> {
    let pid: c_int = get(socket, libc::LOCAL_PEERPID, 0)?;
    u32::try_from(pid).map_err(|_| Errno::SRCH)
}

fn get<T: Copy>(socket: BorrowedFd<'_>, name: c_int, mut value: T) -> Result<T, Errno> {
    let whole = u32::try_from(size_of::<T>()).map_err(|_| Errno::INVAL)?;
    let mut length = whole;
    // SAFETY: `value` is a live, writable object of `length` bytes, and the types used are plain integers.
    let status = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_LOCAL, name, (&raw mut value).cast(), &raw mut length)
    };
    if status != 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    if length == whole { Ok(value) } else { Err(Errno::PROTO) }
}
