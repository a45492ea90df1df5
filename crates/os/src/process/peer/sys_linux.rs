//! Two socket options as raw calls: rustix's `socket_peercred` has no room for pid 0 (a peer in a foreign pid
//! namespace) and none for `SO_PEERPIDFD`.
#![expect(unsafe_code, reason = "getsockopt with these options has no safe wrapper")]

use std::{
    ffi::{c_int, c_void},
    mem::size_of,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use rustix::io::Errno;

/// `struct ucred` of `<sys/socket.h>`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Credentials {
    pub(super) pid: i32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

// From <asm-generic/socket.h>; mips, parisc, powerpc and sparc number these differently and are not built for.
const SOL_SOCKET: c_int = 1;
const SO_PEERCRED: c_int = 17;
const SO_PEERPIDFD: c_int = 77;

unsafe extern "C" {
    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut u32) -> c_int;
}

pub(super) fn peer_credentials(socket: BorrowedFd<'_>) -> Result<Credentials, Errno> {
    get(socket, SO_PEERCRED, Credentials::default())
}

pub(super) fn peer_pidfd(socket: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let raw: c_int = get(socket, SO_PEERPIDFD, -1)?;
    if raw < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: the kernel just made this descriptor (close-on-exec) for us; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn get<T: Copy>(socket: BorrowedFd<'_>, name: c_int, mut value: T) -> Result<T, Errno> {
    let whole = u32::try_from(size_of::<T>()).map_err(|_| Errno::INVAL)?;
    let mut length = whole;
    // SAFETY: `value` is a live, writable object of `length` bytes, and both types used are plain integers.
    let status =
        unsafe { getsockopt(socket.as_raw_fd(), SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length) };
    if status != 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    if length == whole { Ok(value) } else { Err(Errno::PROTO) }
}
