//! Processes by handle, and the list of them, as raw calls.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::{
    ffi::c_void,
    io,
    mem::size_of,
    os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle},
    ptr,
};

use windows_sys::{
    Wdk::System::Threading::{
        NtQueryInformationProcess, ProcessBasicInformation, ProcessCommandLineInformation,
    },
    Win32::{
        Foundation::{FILETIME, HANDLE, INVALID_HANDLE_VALUE, WAIT_OBJECT_0, WAIT_TIMEOUT},
        System::{
            Diagnostics::ToolHelp::{
                CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW,
                TH32CS_SNAPPROCESS,
            },
            Threading::{
                GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
                QueryFullProcessImageNameW, WaitForSingleObject,
            },
        },
    },
};

/// Characters of a path; longer ones are unreadable.
const MAX_PATH_UNITS: usize = 32_768;

/// Processes listed at once; more are left out.
const MAX_PROCESSES: usize = 65_536;

/// A process of the list.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) pid: u32,
    pub(super) ppid: u32,
    /// File name of the executable.
    pub(super) name: String,
}

/// Times in units of 100 ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) created: u64,
    pub(super) cpu: u64,
}

/// To ask and to wait, nothing else.
pub(super) fn open(pid: u32) -> io::Result<OwnedHandle> {
    // SAFETY: takes numbers only.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, pid) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is new and ours.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

pub(super) fn has_exited(process: &OwnedHandle) -> io::Result<bool> {
    // SAFETY: the handle is open; does not wait.
    match unsafe { WaitForSingleObject(process.as_raw_handle(), 0) } {
        WAIT_OBJECT_0 => Ok(true),
        WAIT_TIMEOUT => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

pub(super) fn times(process: &OwnedHandle) -> io::Result<Times> {
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: the handle is open; all four are writable.
    let done = unsafe { GetProcessTimes(process.as_raw_handle(), created, exited, kernel, user) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    let units = |t: &FILETIME| u64::from(t.dwHighDateTime) << 32 | u64::from(t.dwLowDateTime);
    Ok(Times { created: units(&times[0]), cpu: units(&times[2]).saturating_add(units(&times[3])) })
}

/// The executable's path.
pub(super) fn image(process: &OwnedHandle) -> io::Result<String> {
    let mut path = vec![0_u16; MAX_PATH_UNITS];
    let mut length = u32::try_from(path.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the handle is open; `path` is writable for `length` units.
    let done =
        unsafe { QueryFullProcessImageNameW(process.as_raw_handle(), 0, path.as_mut_ptr(), &raw mut length) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(String::from_utf16_lossy(path.get(..length).unwrap_or_default()))
}

/// `PROCESS_BASIC_INFORMATION` of `<winternl.h>`.
#[repr(C)]
struct BasicInformation {
    exit_status: i32,
    environment_block: *mut c_void,
    affinity: usize,
    priority: i32,
    pid: usize,
    parent: usize,
}

/// Who started it; that pid may be another's by now.
pub(super) fn parent(process: &OwnedHandle) -> io::Result<u32> {
    let mut information = BasicInformation {
        exit_status: 0,
        environment_block: ptr::null_mut(),
        affinity: 0,
        priority: 0,
        pid: 0,
        parent: 0,
    };
    let size = u32::try_from(size_of::<BasicInformation>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the handle is open; `information` is writable for `size` bytes.
    let status = unsafe {
        NtQueryInformationProcess(
            process.as_raw_handle(),
            ProcessBasicInformation,
            (&raw mut information).cast(),
            size,
            ptr::null_mut(),
        )
    };
    if status < 0 {
        return Err(io::Error::other(format!("NtQueryInformationProcess: {status:#x}")));
    }
    u32::try_from(information.parent).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The command line as one string, cut at `limit` bytes; `None` when it is not ours to read or longer.
pub(super) fn command_line(process: &OwnedHandle, limit: usize) -> Option<String> {
    // A UNICODE_STRING (two lengths in bytes, padding, a pointer into the same buffer), then the text.
    let mut buffer = vec![0_u64; limit / size_of::<u64>()];
    let size = u32::try_from(buffer.len() * size_of::<u64>()).ok()?;
    // SAFETY: the handle is open; `buffer` is writable for `size` bytes and aligned for a pointer.
    let status = unsafe {
        NtQueryInformationProcess(
            process.as_raw_handle(),
            ProcessCommandLineInformation,
            buffer.as_mut_ptr().cast(),
            size,
            ptr::null_mut(),
        )
    };
    if status < 0 {
        return None;
    }
    let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let length = usize::from(u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]));
    // The text follows the header; its place is computed instead of following the pointer.
    let header = 2 * size_of::<usize>();
    let text = bytes.get(header..header.checked_add(length)?)?;
    let units: Vec<u16> = text.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect();
    Some(String::from_utf16_lossy(&units))
}

/// Every process of the machine, at most [`MAX_PROCESSES`].
pub(super) fn list() -> io::Result<Vec<Listed>> {
    // SAFETY: takes numbers only.
    let raw: HANDLE = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if raw == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is new and ours.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(raw) };
    let mut entry = PROCESSENTRY32W {
        dwSize: u32::try_from(size_of::<PROCESSENTRY32W>()).map_err(|_| io::ErrorKind::InvalidInput)?,
        ..PROCESSENTRY32W::default()
    };
    let mut found = Vec::new();
    // SAFETY: the snapshot is open; `entry` is writable and says its size.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 && found.len() < MAX_PROCESSES {
        let name = entry.szExeFile.split(|unit| *unit == 0).next().unwrap_or_default();
        found.push(Listed {
            pid: entry.th32ProcessID,
            ppid: entry.th32ParentProcessID,
            name: String::from_utf16_lossy(name),
        });
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Ok(found)
}
