//! The client of a named pipe, as a raw call.
#![expect(unsafe_code, reason = "a system call without a safe wrapper")]

use std::{
    io,
    os::windows::io::{AsRawHandle, BorrowedHandle},
};

use windows_sys::Win32::System::Pipes::GetNamedPipeClientProcessId;

pub(super) fn client_pid(pipe: BorrowedHandle<'_>) -> io::Result<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open; `pid` is writable.
    let done = unsafe { GetNamedPipeClientProcessId(pipe.as_raw_handle(), &raw mut pid) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}
