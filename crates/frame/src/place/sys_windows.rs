//! The profile directory of the process's user, without the environment.
#![expect(unsafe_code, reason = "the standard library asks the environment first")]

use std::{
    ffi::{OsString, c_void},
    io,
    os::windows::{
        ffi::OsStringExt as _,
        io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    },
    path::PathBuf,
    ptr,
};

#[link(name = "advapi32")]
unsafe extern "system" {
    fn OpenProcessToken(process: *mut c_void, access: u32, token: *mut *mut c_void) -> i32;
}

#[link(name = "kernel32")]
unsafe extern "system" {
    safe fn GetCurrentProcess() -> *mut c_void;
}

#[link(name = "userenv")]
unsafe extern "system" {
    fn GetUserProfileDirectoryW(token: *mut c_void, text: *mut u16, len: *mut u32) -> i32;
}

/// `TOKEN_QUERY` of <winnt.h>.
const TOKEN_QUERY: u32 = 0x0008;

pub(super) fn profile_directory() -> io::Result<PathBuf> {
    let mut token = ptr::null_mut();
    // SAFETY: the pseudo handle of the current process is always valid; `token` receives one handle on success.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so `token` is a handle that nobody else owns.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    let mut text = [0u16; 1024];
    let mut len: u32 = 1024;
    // SAFETY: `text` has `len` elements; the call writes at most that many and the used length to `len`.
    if unsafe { GetUserProfileDirectoryW(token.as_raw_handle(), text.as_mut_ptr(), &raw mut len) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let end = text.iter().position(|unit| *unit == 0).unwrap_or(text.len());
    Ok(PathBuf::from(OsString::from_wide(text.get(..end).unwrap_or_default())))
}
