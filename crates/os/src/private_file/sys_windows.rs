//! What a handle is, and whose, as raw calls.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::{
    ffi::c_void,
    fs::File,
    io,
    os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    ptr,
};

use windows_sys::Win32::{
    Foundation::{ERROR_SUCCESS, LocalFree},
    Security::{
        Authorization::{GetSecurityInfo, SE_FILE_OBJECT},
        EqualSid, GetTokenInformation, OWNER_SECURITY_INFORMATION, PSID, TOKEN_INFORMATION_CLASS,
        TOKEN_QUERY, TokenOwner, TokenUser,
    },
    Storage::FileSystem::{FILE_TYPE_DISK, GetFileType},
    System::Threading::{GetCurrentProcess, OpenProcessToken},
};

/// Words of a buffer for a pointer and the longest SID (68 bytes) behind it.
const SID_WORDS: usize = 16;

pub(super) fn is_on_disk(file: &File) -> bool {
    // SAFETY: the handle is open for as long as `file` lives.
    unsafe { GetFileType(file.as_raw_handle()) == FILE_TYPE_DISK }
}

/// Whether the owner is this user, or whom this user's new files belong to (the administrators, for one of them).
pub(super) fn is_ours(file: &File) -> io::Result<bool> {
    let owner = Owner::of(file)?;
    for class in [TokenUser, TokenOwner] {
        let ours = Sid::of_this_process(class)?;
        // SAFETY: both point to valid SIDs inside buffers that are alive.
        if unsafe { EqualSid(owner.sid, ours.sid()) } != 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A file's owner, inside a descriptor that the system allocated.
struct Owner {
    sid: PSID,
    descriptor: *mut c_void,
}

impl Owner {
    fn of(file: &File) -> io::Result<Self> {
        let mut owner = Self { sid: ptr::null_mut(), descriptor: ptr::null_mut() };
        // SAFETY: the handle is open; both pointers receive one pointer each, and nothing else is asked for.
        let code = unsafe {
            GetSecurityInfo(
                file.as_raw_handle(),
                SE_FILE_OBJECT,
                OWNER_SECURITY_INFORMATION,
                &raw mut owner.sid,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                &raw mut owner.descriptor,
            )
        };
        if code != ERROR_SUCCESS {
            return Err(io::Error::from_raw_os_error(code.cast_signed()));
        }
        if owner.sid.is_null() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(owner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: allocated by the system for us, or null, which is let pass; nothing points into it afterwards.
        unsafe { LocalFree(self.descriptor) };
    }
}

/// `TOKEN_USER` or `TOKEN_OWNER`: a pointer to the SID, which stands behind it in the same buffer.
struct Sid(Box<[u64; SID_WORDS]>);

impl Sid {
    fn of_this_process(class: TOKEN_INFORMATION_CLASS) -> io::Result<Self> {
        let mut token = ptr::null_mut();
        // SAFETY: the process is this one; `token` receives one handle on success.
        if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so this is a handle that nobody else owns.
        let token = unsafe { OwnedHandle::from_raw_handle(token) };
        let mut sid = Self(Box::new([0; SID_WORDS]));
        let length = u32::try_from(size_of::<[u64; SID_WORDS]>()).unwrap_or(0);
        let mut used = 0;
        // SAFETY: the buffer has `length` bytes, aligned for a pointer; it is boxed, so the pointer into it stays right.
        let done = unsafe {
            GetTokenInformation(
                token.as_raw_handle(),
                class,
                sid.0.as_mut_ptr().cast(),
                length,
                &raw mut used,
            )
        };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(sid) }
    }

    fn sid(&self) -> PSID {
        // SAFETY: the buffer begins with the pointer to the SID, for both classes.
        unsafe { self.0.as_ptr().cast::<PSID>().read() }
    }
}
