//! What the standard library lacks on Unix: the clock that runs through sleep, the boot's name, a session of one's own, a
//! copy of the process.
#![expect(unsafe_code, reason = "a few calls of the C library, which is linked anyway")]

use std::{
    fs::File,
    io::{self, Read as _},
    os::{
        fd::AsRawFd as _,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::Command,
};

use watchkeeper_frame::Place;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanos: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, out: *mut Timespec) -> i32;
    safe fn setsid() -> i32;
    safe fn setpgid(process: i32, group: i32) -> i32;
    fn signal(number: i32, action: usize) -> usize;
    fn fork() -> i32;
    fn close(descriptor: i32) -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    safe fn _exit(code: i32) -> !;
}

/// Descriptors below this are closed in the copy that goes on without us; what an agent has open beyond stays open until
/// the file is on the disk.
const DESCRIPTORS: i32 = 1024;

/// Runs on while the machine sleeps: `CLOCK_BOOTTIME` on Linux, `CLOCK_MONOTONIC` of <time.h> on macOS.
const BOOT_CLOCK: i32 = if cfg!(target_os = "macos") { 6 } else { 7 };

/// Nanoseconds since boot, sleep included.
pub(crate) fn boot_now_ns() -> u64 {
    let mut time = Timespec { seconds: 0, nanos: 0 };
    // SAFETY: `time` is a timespec of a 64-bit system and outlives the call. A failure leaves it zero.
    unsafe { clock_gettime(BOOT_CLOCK, &raw mut time) };
    let seconds = u64::try_from(time.seconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.nanos).unwrap_or(0))
}

/// The kernel's name for this boot as a number; zero when it cannot be read.
#[cfg(not(target_os = "macos"))]
pub(crate) fn boot_id() -> u128 {
    std::fs::read("/proc/sys/kernel/random/boot_id")
        .map_or(0, |text| watchkeeper_frame::place_rules::boot_id(&text))
}

/// The kernel's name for this boot as a number; zero when it cannot be read.
#[cfg(target_os = "macos")]
pub(crate) fn boot_id() -> u128 {
    unsafe extern "C" {
        fn sysctlbyname(
            name: *const std::ffi::c_char,
            out: *mut u8,
            len: *mut usize,
            new: *const u8,
            new_len: usize,
        ) -> i32;
    }
    let mut text = [0u8; 64];
    let mut len = text.len();
    // SAFETY: the name is closed by a zero; `text` has `len` bytes; nothing is set.
    let failed = unsafe {
        sysctlbyname(c"kern.bootsessionuuid".as_ptr(), text.as_mut_ptr(), &raw mut len, std::ptr::null(), 0)
    };
    if failed != 0 {
        return 0;
    }
    let text = text.get(..len).unwrap_or_default();
    watchkeeper_frame::place_rules::boot_id(text.split(|b| *b == 0).next().unwrap_or_default())
}

/// Makes a write beyond the limit on file sizes an error instead of a signal that ends the process.
pub(super) fn ignore_file_too_large() {
    /// `SIGXFSZ` and `SIG_IGN` of <signal.h>.
    const SIGXFSZ: i32 = 25;
    const SIG_IGN: usize = 1;
    // SAFETY: no handler is installed. It cannot fail with these arguments.
    unsafe { signal(SIGXFSZ, SIG_IGN) };
}

/// Writes a file and syncs it, in a copy of this process that goes on after the deadline: a busy disk makes each call wait,
/// and none can be interrupted. Where there is no copy to be had it is written here, and not synced.
pub(super) fn keep(write: impl FnOnce() -> Option<File>, deadline_ns: u64) {
    let Ok((mut ours, childs)) = UnixStream::pair() else {
        drop(write());
        return;
    };
    // SAFETY: the copy has this thread alone. It uses memory, which the C library keeps usable across a fork, and files; no
    // lock that a thread of ours could hold.
    match unsafe { fork() } {
        0 => {
            // Whole groups are killed.
            setpgid(0, 0);
            for descriptor in (0..DESCRIPTORS).filter(|number| *number != childs.as_raw_fd()) {
                // SAFETY: nothing that uses one of these runs in the copy.
                unsafe { close(descriptor) };
            }
            if let Some(file) = write() {
                // Told to nobody: what the kernel has is all that can be had then.
                drop(file.sync_data());
            }
            _exit(0)
        }
        -1 => drop(write()),
        child => {
            drop(childs);
            let left = super::left(deadline_ns);
            let ended = !left.is_zero()
                && ours.set_read_timeout(Some(left)).is_ok()
                && matches!(ours.read(&mut [0]), Ok(0));
            if ended {
                // Its end closed the other side; it must not stay a zombie where the first process is no good parent.
                // SAFETY: no status is asked for.
                unsafe { waitpid(child, std::ptr::null_mut(), 0) };
            }
        }
    }
}

/// Connects to the daemon's socket. May block for as long as the listener's queue is full.
pub(super) fn connect(place: &Place, _deadline_ns: u64) -> io::Result<UnixStream> {
    UnixStream::connect(place.hook_socket())
}

/// Takes the command out of the agent's session and process group.
pub(super) fn detach(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one system call and touches nothing else.
    unsafe {
        command.pre_exec(|| {
            setsid();
            Ok(())
        })
    };
}
