//! libproc and the argument area, as raw calls.
#![expect(unsafe_code, reason = "libproc has no safe wrapper")]

use std::{
    ffi::{c_int, c_void},
    mem::{MaybeUninit, size_of},
    ptr,
};

use rustix::io::Errno;

/// `PROC_PIDUNIQIDENTIFIERINFO` of `<sys/proc_info.h>`.
const UNIQUE_IDENTIFIER: c_int = 17;

/// Pids listed at once; more are left out.
const MAX_PIDS: usize = 65_536;

/// `struct proc_uniqidentifierinfo` of `<sys/proc_info.h>`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct UniqueIdentifier {
    uuid: [u8; 16],
    /// Never used twice in one boot; grows with every process.
    pub(super) unique_id: u64,
    pub(super) parent_unique_id: u64,
    /// The pid version that audit tokens carry.
    pub(super) id_version: i32,
    original_parent_id_version: i32,
    reserved: [u64; 2],
}

/// `mach_timebase_info_data_t` of `<mach/mach_time.h>`: nanoseconds a tick.
#[repr(C)]
struct Timebase {
    numer: u32,
    denom: u32,
}

unsafe extern "C" {
    fn mach_timebase_info(info: *mut Timebase) -> c_int;
}

fn pid_info<T: Copy>(pid: u32, flavor: c_int) -> Result<T, Errno> {
    let pid = c_int::try_from(pid).map_err(|_| Errno::SRCH)?;
    let size = c_int::try_from(size_of::<T>()).map_err(|_| Errno::INVAL)?;
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: `value` is writable for `size` bytes.
    let filled = unsafe { libc::proc_pidinfo(pid, flavor, 0, value.as_mut_ptr().cast(), size) };
    if filled < size {
        return Err(last_errno());
    }
    // SAFETY: all of it was filled, and the types used are plain integers, for which any bytes are valid.
    Ok(unsafe { value.assume_init() })
}

pub(super) fn unique_identifier(pid: u32) -> Result<UniqueIdentifier, Errno> {
    pid_info(pid, UNIQUE_IDENTIFIER)
}

/// What anyone may know of any process. A zombie is not found.
pub(super) fn short_info(pid: u32) -> Result<libc::proc_bsdshortinfo, Errno> {
    pid_info(pid, libc::PROC_PIDT_SHORTBSDINFO)
}

/// With the start time; only of our own user's processes.
pub(super) fn full_info(pid: u32) -> Result<libc::proc_bsdinfo, Errno> {
    pid_info(pid, libc::PROC_PIDTBSDINFO)
}

/// User and system CPU time in nanoseconds; only of our own user's processes.
pub(super) fn cpu_ns(pid: u32) -> Result<u64, Errno> {
    let info: libc::proc_taskinfo = pid_info(pid, libc::PROC_PIDTASKINFO)?;
    let ticks = u128::from(info.pti_total_user) + u128::from(info.pti_total_system);
    let mut base = Timebase { numer: 0, denom: 0 };
    // SAFETY: `base` is writable.
    let status = unsafe { mach_timebase_info(&raw mut base) };
    if status != 0 || base.denom == 0 {
        return Err(Errno::INVAL);
    }
    Ok(u64::try_from(ticks * u128::from(base.numer) / u128::from(base.denom)).unwrap_or(u64::MAX))
}

/// The executable's path as bytes.
pub(super) fn executable(pid: u32) -> Option<Vec<u8>> {
    let pid = c_int::try_from(pid).ok()?;
    let mut buffer = vec![0_u8; usize::try_from(libc::PROC_PIDPATHINFO_MAXSIZE).ok()?];
    let size = u32::try_from(buffer.len()).ok()?;
    // SAFETY: `buffer` is writable for `size` bytes.
    let length = unsafe { libc::proc_pidpath(pid, buffer.as_mut_ptr().cast(), size) };
    buffer.truncate(usize::try_from(length).ok()?);
    (!buffer.is_empty()).then_some(buffer)
}

/// The argument area (`KERN_PROCARGS2`), cut at `limit` bytes; only of our own user's processes.
pub(super) fn argument_area(pid: u32, limit: usize) -> Option<Vec<u8>> {
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, c_int::try_from(pid).ok()?];
    let mut buffer = vec![0_u8; limit];
    let mut length = limit;
    // SAFETY: `name` has the three numbers that are promised; `buffer` is writable for `length` bytes; nothing is set.
    let status = unsafe {
        let area: *mut c_void = buffer.as_mut_ptr().cast();
        libc::sysctl(name.as_mut_ptr(), 3, area, &raw mut length, ptr::null_mut(), 0)
    };
    if status != 0 {
        return None;
    }
    buffer.truncate(length);
    Some(buffer)
}

/// Every pid of the machine, at most [`MAX_PIDS`].
pub(super) fn all_pids() -> Result<Vec<u32>, Errno> {
    let mut buffer = vec![0 as c_int; MAX_PIDS];
    let size = c_int::try_from(MAX_PIDS * size_of::<c_int>()).map_err(|_| Errno::INVAL)?;
    // SAFETY: `buffer` is writable for `size` bytes.
    let count = unsafe { libc::proc_listallpids(buffer.as_mut_ptr().cast(), size) };
    let count = usize::try_from(count).map_err(|_| last_errno())?;
    buffer.truncate(count);
    Ok(buffer.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect())
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
