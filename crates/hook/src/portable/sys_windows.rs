//! What the standard library lacks on Windows: the clock that runs through sleep, waiting for a free pipe, the check
//! that the pipe's server is the same user, and handles that are not passed on.
#![expect(unsafe_code, reason = "calls of the system's own libraries")]

use std::{
    ffi::c_void,
    fs::{File, OpenOptions},
    io,
    os::windows::{
        ffi::OsStrExt as _,
        fs::OpenOptionsExt as _,
        io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
        process::CommandExt as _,
    },
    process::Command,
    ptr,
};

use watchkeeper_frame::Place;

#[link(name = "kernel32")]
unsafe extern "system" {
    safe fn GetTickCount64() -> u64;
    safe fn GetCurrentProcess() -> *mut c_void;
    safe fn SetHandleInformation(handle: *mut c_void, mask: u32, flags: u32) -> i32;
    fn WaitNamedPipeW(name: *const u16, timeout_ms: u32) -> i32;
    fn GetNamedPipeServerProcessId(pipe: *mut c_void, process: *mut u32) -> i32;
    safe fn OpenProcess(access: u32, inherit: i32, process: u32) -> *mut c_void;
}

#[link(name = "advapi32")]
unsafe extern "system" {
    fn OpenProcessToken(process: *mut c_void, access: u32, token: *mut *mut c_void) -> i32;
    fn GetTokenInformation(token: *mut c_void, class: i32, out: *mut c_void, len: u32, used: *mut u32)
    -> i32;
    fn EqualSid(one: *const c_void, two: *const c_void) -> i32;
}

/// `ERROR_PIPE_BUSY`, `SECURITY_IDENTIFICATION`, `PROCESS_QUERY_LIMITED_INFORMATION`, `TOKEN_QUERY`, `TokenUser`,
/// `HANDLE_FLAG_INHERIT` of the Windows SDK.
const ERROR_PIPE_BUSY: i32 = 231;
const SECURITY_IDENTIFICATION: u32 = 0x0001_0000;
const PROCESS_QUERY_LIMITED_INFORMATION: u32 = 0x1000;
const TOKEN_QUERY: u32 = 0x0008;
const TOKEN_USER: i32 = 1;
const HANDLE_FLAG_INHERIT: u32 = 1;
/// `DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP`, and `CREATE_BREAKAWAY_FROM_JOB`.
const DETACHED: u32 = 0x0000_0008 | 0x0000_0200;
const BREAKAWAY: u32 = 0x0100_0000;

/// Nanoseconds since boot, sleep included, in steps of 10 to 16 milliseconds.
pub(crate) fn boot_now_ns() -> u64 {
    GetTickCount64().saturating_mul(1_000_000)
}

/// Windows has no name for a boot that a process could read without its registry: the daemon tells boots apart by the
/// wall clock.
pub(crate) fn boot_id() -> u128 {
    0
}

/// Windows sends no signals for failed writes.
pub(super) fn ignore_file_too_large() {}

/// Writes a file, and waits until the deadline for its being on the disk. The writing itself has no bound here: a process of
/// Windows cannot leave a copy of itself behind, and what it has not handed to the system would go with it.
pub(super) fn keep(write: impl FnOnce() -> Option<File>, deadline_ns: u64) {
    if let Some(file) = write() {
        drop(super::within(deadline_ns, move || file.sync_data()));
    }
}

/// Opens the daemon's pipe, waiting for a free instance until the deadline. A pipe of another user is refused: anybody
/// can make a pipe of any name first.
pub(super) fn connect(place: &Place, deadline_ns: u64) -> io::Result<File> {
    let name = place.hook_pipe();
    let wide: Vec<u16> = std::ffi::OsStr::new(&name).encode_wide().chain([0]).collect();
    loop {
        // The server may learn who we are, and not act as us.
        match OpenOptions::new()
            .read(true)
            .write(true)
            .security_qos_flags(SECURITY_IDENTIFICATION)
            .open(&name)
        {
            Ok(pipe) if is_served_by_us(&pipe) => return Ok(pipe),
            Ok(_) => return Err(io::ErrorKind::PermissionDenied.into()),
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) => {
                let left = u32::try_from(super::left(deadline_ns).as_millis()).unwrap_or(u32::MAX).max(1);
                // SAFETY: the name is closed by a zero and outlives the call.
                if unsafe { WaitNamedPipeW(wide.as_ptr(), left) } == 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Takes the command out of the agent's console and, where its job allows that, out of its job; and keeps the agent's
/// pipes to us from being passed on, or the agent would wait for their end as long as the daemon lives.
pub(super) fn detach(command: &mut Command, leave_job: bool) {
    for handle in [io::stdin().as_raw_handle(), io::stdout().as_raw_handle(), io::stderr().as_raw_handle()] {
        if !handle.is_null() {
            SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0);
        }
    }
    command.creation_flags(if leave_job { DETACHED | BREAKAWAY } else { DETACHED });
}

fn is_served_by_us(pipe: &File) -> bool {
    let mut process = 0;
    // SAFETY: the handle is open for as long as `pipe` lives, and `process` receives one number.
    if unsafe { GetNamedPipeServerProcessId(pipe.as_raw_handle(), &raw mut process) } == 0 {
        return false;
    }
    let server = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, process);
    if server.is_null() {
        return false;
    }
    // SAFETY: the call succeeded, so this is a handle that nobody else owns.
    let server = unsafe { OwnedHandle::from_raw_handle(server) };
    let (Some(theirs), Some(ours)) = (User::of(server.as_raw_handle()), User::of(GetCurrentProcess())) else {
        return false;
    };
    // SAFETY: both point to valid SIDs inside buffers that are alive.
    unsafe { EqualSid(theirs.sid(), ours.sid()) != 0 }
}

/// `TOKEN_USER` of a process: a pointer to the SID, which stands behind it in the same buffer. Room for the longest
/// SID (68 bytes).
struct User(Box<[u64; 16]>);

impl User {
    fn of(process: *mut c_void) -> Option<Self> {
        let mut token = ptr::null_mut();
        // SAFETY: `process` is an open handle; `token` receives one handle on success.
        if unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) } == 0 {
            return None;
        }
        // SAFETY: the call succeeded, so this is a handle that nobody else owns.
        let token = unsafe { OwnedHandle::from_raw_handle(token) };
        let mut user = Self(Box::new([0; 16]));
        let mut used = 0;
        // SAFETY: the buffer has 128 bytes, aligned for a pointer; it is boxed, so the pointer into it stays right.
        let done = unsafe {
            GetTokenInformation(
                token.as_raw_handle(),
                TOKEN_USER,
                user.0.as_mut_ptr().cast(),
                128,
                &raw mut used,
            )
        };
        (done != 0).then_some(user)
    }

    fn sid(&self) -> *const c_void {
        // SAFETY: the buffer begins with a `TOKEN_USER`, which begins with the pointer to the SID.
        unsafe { self.0.as_ptr().cast::<*const c_void>().read() }
    }
}
