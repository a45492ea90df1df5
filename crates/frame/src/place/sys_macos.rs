//! The user database and `confstr`, without the environment.
#![expect(unsafe_code, reason = "neither has a safe form in the standard library")]

use std::{
    ffi::{CStr, OsStr, c_char, c_int},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    ptr,
};

/// `struct passwd` of <pwd.h>.
#[repr(C)]
struct Passwd {
    name: *mut c_char,
    password: *mut c_char,
    uid: u32,
    gid: u32,
    change: i64,
    class: *mut c_char,
    gecos: *mut c_char,
    dir: *mut c_char,
    shell: *mut c_char,
    expire: i64,
}

unsafe extern "C" {
    safe fn geteuid() -> u32;
    fn getpwuid_r(
        uid: u32,
        entry: *mut Passwd,
        text: *mut c_char,
        len: usize,
        found: *mut *mut Passwd,
    ) -> c_int;
    fn confstr(name: c_int, text: *mut c_char, len: usize) -> usize;
}

/// `_CS_DARWIN_USER_TEMP_DIR` of <unistd.h>.
const DARWIN_USER_TEMP_DIR: c_int = 65537;
/// Room for the strings of one entry; a longer entry counts as none.
const TEXT_BYTES: usize = 16 * 1024;

pub(super) fn home() -> Option<PathBuf> {
    let mut entry = Passwd {
        name: ptr::null_mut(),
        password: ptr::null_mut(),
        uid: 0,
        gid: 0,
        change: 0,
        class: ptr::null_mut(),
        gecos: ptr::null_mut(),
        dir: ptr::null_mut(),
        shell: ptr::null_mut(),
        expire: 0,
    };
    let mut text: [c_char; TEXT_BYTES] = [0; TEXT_BYTES];
    let mut found = ptr::null_mut();
    // SAFETY: `entry`, `text` (with its true length) and `found` live through the call, which writes only into them.
    let failed =
        unsafe { getpwuid_r(geteuid(), &raw mut entry, text.as_mut_ptr(), text.len(), &raw mut found) };
    if failed != 0 || found.is_null() || entry.dir.is_null() {
        return None;
    }
    // SAFETY: on success `dir` points to a zero-terminated string inside `text`, which is still alive.
    let dir = unsafe { CStr::from_ptr(entry.dir) };
    absolute(dir.to_bytes())
}

pub(super) fn user_temporary_directory() -> Option<PathBuf> {
    let mut text: [c_char; 1024] = [0; 1024];
    // SAFETY: `text` is as long as said, and `confstr` closes what it writes with a zero.
    let len = unsafe { confstr(DARWIN_USER_TEMP_DIR, text.as_mut_ptr(), text.len()) };
    if len == 0 || len > text.len() {
        return None;
    }
    // SAFETY: `len` bytes, the closing zero included, were written into `text`.
    let dir = unsafe { CStr::from_ptr(text.as_ptr()) };
    absolute(dir.to_bytes())
}

fn absolute(bytes: &[u8]) -> Option<PathBuf> {
    (bytes.first() == Some(&b'/')).then(|| PathBuf::from(OsStr::from_bytes(bytes)))
}
