//! The system calls of the hook, x86-64 Linux, each a function that cannot be misused from safe code. Numbers and
//! constants are those of the kernel's <asm/unistd_64.h> and <linux/*.h>.
#![expect(unsafe_code, reason = "the bare hook has no C library to call")]

use core::{arch::asm, marker::PhantomData};

/// An error number of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Errno(pub(super) isize);

impl Errno {
    pub(super) const NO_ENTRY: Self = Self(2);
    pub(super) const INTERRUPTED: Self = Self(4);
    pub(super) const AGAIN: Self = Self(11);
    pub(super) const EXISTS: Self = Self(17);
}

pub(super) type Result<T> = core::result::Result<T, Errno>;

/// A descriptor that closes on drop.
#[derive(Debug)]
pub(super) struct Fd(i32);

impl Fd {
    pub(super) const fn number(&self) -> i32 {
        self.0
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: `close` touches no memory; this descriptor is ours alone and not used again.
        // A failed close has nothing left to close.
        _ = unsafe { call(3, [as_arg(self.0), 0, 0, 0, 0, 0]) };
    }
}

/// `struct pollfd`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Poll {
    pub(super) fd: i32,
    pub(super) wanted: i16,
    pub(super) seen: i16,
}

pub(super) const POLL_IN: i16 = 0x001;
pub(super) const POLL_OUT: i16 = 0x004;
pub(super) const POLL_ERROR: i16 = 0x008;
pub(super) const POLL_HANG_UP: i16 = 0x010;
pub(super) const POLL_INVALID: i16 = 0x020;

/// `CLOCK_REALTIME`, `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(super) enum Clock {
    Wall = 0,
    Boot = 7,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Timespec {
    seconds: i64,
    nanos: i64,
}

/// `struct sockaddr_un`.
#[repr(C)]
struct UnixAddress {
    family: u16,
    path: [u8; 108],
}

/// What a directory entry or a file is, as far as anybody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileFacts {
    pub(super) is_directory: bool,
    pub(super) owner: u32,
    pub(super) bytes: u64,
}

const AT_FDCWD: i32 = -100;
const O_WRONLY: usize = 0o1;
const O_CREAT: usize = 0o100;
const O_EXCL: usize = 0o200;
const O_APPEND: usize = 0o2000;
const O_DIRECTORY: usize = 0o200_000;
const O_CLOEXEC: usize = 0o2_000_000;

/// How to open a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Open {
    Read,
    Directory,
    /// Must not exist; mode 0600.
    CreateNew,
    /// Created with mode 0600 if missing.
    Append,
}

pub(super) fn clock_ns(clock: Clock) -> u64 {
    let mut time = Timespec { seconds: 0, nanos: 0 };
    // SAFETY: `time` is a timespec that outlives the call.
    _ = unsafe { call(228, [clock as usize, pointer(&raw mut time), 0, 0, 0, 0]) };
    let seconds = u64::try_from(time.seconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.nanos).unwrap_or(0))
}

pub(super) fn process_id() -> u32 {
    // SAFETY: touches no memory and cannot fail.
    unsafe { call(39, [0; 6]) }.ok().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

pub(super) fn parent_id() -> u32 {
    // SAFETY: touches no memory and cannot fail.
    unsafe { call(110, [0; 6]) }.ok().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

pub(super) fn effective_user() -> u32 {
    // SAFETY: touches no memory and cannot fail.
    unsafe { call(107, [0; 6]) }.ok().and_then(|uid| u32::try_from(uid).ok()).unwrap_or(u32::MAX)
}

pub(super) fn random(out: &mut [u8]) -> Result<usize> {
    const GRND_NONBLOCK: usize = 1;
    // SAFETY: the kernel writes at most `out.len()` bytes to `out`.
    unsafe { call(318, [pointer(out.as_mut_ptr()), out.len(), GRND_NONBLOCK, 0, 0, 0]) }
}

/// Fresh zeroed memory for the rest of the process's life; pages cost nothing until they are touched.
pub(super) fn map_memory(bytes: usize) -> Result<&'static mut [u8]> {
    const PROT_READ_WRITE: usize = 3;
    const MAP_PRIVATE_ANONYMOUS_NORESERVE: usize = 0x2 | 0x20 | 0x4000;
    // SAFETY: no address is asked for, so nothing existing is replaced.
    let start =
        unsafe { call(9, [0, bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS_NORESERVE, usize::MAX, 0]) }?;
    // SAFETY: the kernel gave `bytes` readable, writable, zeroed bytes that nobody else knows and nobody unmaps.
    Ok(unsafe { core::slice::from_raw_parts_mut(core::ptr::with_exposed_provenance_mut(start), bytes) })
}

pub(super) fn read(fd: i32, out: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most `out.len()` bytes to `out`.
    unsafe { call(0, [as_arg(fd), pointer(out.as_mut_ptr()), out.len(), 0, 0, 0]) }
}

pub(super) fn write(fd: i32, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the kernel reads at most `bytes.len()` bytes of `bytes`.
    unsafe { call(1, [as_arg(fd), const_pointer(bytes.as_ptr()), bytes.len(), 0, 0, 0]) }
}

/// Waits until one is ready or `timeout_ns` have passed; says how many are ready.
pub(super) fn poll(polls: &mut [Poll], timeout_ns: u64) -> Result<usize> {
    let seconds = i64::try_from(timeout_ns / 1_000_000_000).unwrap_or(i64::MAX);
    let nanos = i64::try_from(timeout_ns % 1_000_000_000).unwrap_or(0);
    let mut timeout = Timespec { seconds, nanos };
    // SAFETY: the kernel reads and writes `polls.len()` entries and the timeout, which outlive the call; no signal mask.
    unsafe { call(271, [pointer(polls.as_mut_ptr()), polls.len(), pointer(&raw mut timeout), 0, 0, 0]) }
}

/// A stream socket of the Unix family that does not block.
pub(super) fn unix_socket() -> Result<Fd> {
    const AF_UNIX: usize = 1;
    const STREAM_NONBLOCK_CLOEXEC: usize = 1 | 0o4000 | 0o2_000_000;
    // SAFETY: touches no memory.
    unsafe { call(41, [AF_UNIX, STREAM_NONBLOCK_CLOEXEC, 0, 0, 0, 0]) }.map(new_fd)
}

/// Makes the socket block, for at most `timeout_ns` in one call.
pub(super) fn block_for(socket: &Fd, timeout_ns: u64) -> Result<()> {
    const F_SETFL: usize = 4;
    const SOL_SOCKET: usize = 1;
    const SO_SNDTIMEO: usize = 21;
    // A zero timeout would mean for ever.
    let micros = i64::try_from(timeout_ns / 1_000).unwrap_or(i64::MAX).max(1);
    let timeout = [micros / 1_000_000, micros % 1_000_000];
    // SAFETY: the kernel reads one timeval (two 64-bit numbers), which outlives the call.
    unsafe {
        call(
            54,
            [
                as_arg(socket.0),
                SOL_SOCKET,
                SO_SNDTIMEO,
                const_pointer(timeout.as_ptr()),
                size_of_val(&timeout),
                0,
            ],
        )
    }?;
    // SAFETY: touches no memory.
    unsafe { call(72, [as_arg(socket.0), F_SETFL, 0, 0, 0, 0]) }.map(drop)
}

/// Connects to a socket by its path; a path that does not fit is `NO_ENTRY`: nobody can listen there.
pub(super) fn connect(socket: &Fd, path: &[u8]) -> Result<()> {
    let mut address = UnixAddress { family: 1, path: [0; 108] };
    let Some(room) = address.path.get_mut(..path.len()).filter(|_| path.len() < 108) else {
        return Err(Errno::NO_ENTRY);
    };
    room.copy_from_slice(path);
    let len = size_of::<u16>() + path.len() + 1;
    // SAFETY: the kernel reads `len` bytes of `address`, which is longer and outlives the call.
    unsafe { call(42, [as_arg(socket.0), const_pointer(&raw const address), len, 0, 0, 0]) }.map(drop)
}

/// Sends what fits now, without a signal when the peer is gone.
pub(super) fn send(socket: &Fd, bytes: &[u8]) -> Result<usize> {
    const DONTWAIT_NOSIGNAL: usize = 0x40 | 0x4000;
    // SAFETY: the kernel reads at most `bytes.len()` bytes of `bytes`; no address.
    unsafe {
        call(44, [as_arg(socket.0), const_pointer(bytes.as_ptr()), bytes.len(), DONTWAIT_NOSIGNAL, 0, 0])
    }
}

/// Receives what is there now.
pub(super) fn receive(socket: &Fd, out: &mut [u8]) -> Result<usize> {
    const DONTWAIT: usize = 0x40;
    // SAFETY: the kernel writes at most `out.len()` bytes to `out`; no address.
    unsafe { call(45, [as_arg(socket.0), pointer(out.as_mut_ptr()), out.len(), DONTWAIT, 0, 0]) }
}

/// Opens a file; `path` is relative to `directory` where one is given.
pub(super) fn open(directory: Option<&Fd>, path: &CPath<'_>, how: Open) -> Result<Fd> {
    let flags = match how {
        Open::Read => 0,
        Open::Directory => O_DIRECTORY,
        Open::CreateNew => O_WRONLY | O_CREAT | O_EXCL,
        Open::Append => O_WRONLY | O_CREAT | O_APPEND,
    };
    // SAFETY: `path` ends with a zero and outlives the call.
    unsafe { call(257, [at(directory), path.argument(), flags | O_CLOEXEC, 0o600, 0, 0]) }.map(new_fd)
}

/// Writes three slices in one call; says how many bytes of them were written, from the first on.
pub(super) fn write_all_of(fd: &Fd, parts: &[&[u8]; 3]) -> Result<usize> {
    let vectors = parts.map(|part| [const_pointer(part.as_ptr()), part.len()]);
    // SAFETY: the kernel reads three iovecs (pointer, length), which name live slices with their true lengths.
    unsafe { call(20, [as_arg(fd.0), const_pointer(vectors.as_ptr()), vectors.len(), 0, 0, 0]) }
}

/// Waits until the file's content is on the disk.
pub(super) fn sync_data(fd: &Fd) -> Result<()> {
    // SAFETY: touches no memory.
    unsafe { call(75, [as_arg(fd.0), 0, 0, 0, 0, 0]) }.map(drop)
}

pub(super) fn rename(directory: &Fd, from: &CPath<'_>, to: &CPath<'_>) -> Result<()> {
    let at = as_arg(directory.0);
    // SAFETY: both paths end with a zero and outlive the call.
    unsafe { call(264, [at, from.argument(), at, to.argument(), 0, 0]) }.map(drop)
}

pub(super) fn unlink(directory: &Fd, path: &CPath<'_>) -> Result<()> {
    // SAFETY: the path ends with a zero and outlives the call.
    unsafe { call(263, [as_arg(directory.0), path.argument(), 0, 0, 0, 0]) }.map(drop)
}

/// Makes one directory for the owner only.
pub(super) fn make_directory(path: &CPath<'_>) -> Result<()> {
    // SAFETY: the path ends with a zero and outlives the call.
    unsafe { call(83, [path.argument(), 0o700, 0, 0, 0, 0]) }.map(drop)
}

/// Fills `out` with raw entries (`struct linux_dirent64`); zero at the end of the directory.
pub(super) fn directory_entries(directory: &Fd, out: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most `out.len()` bytes to `out`; entries are read as bytes, so alignment is no matter.
    unsafe { call(217, [as_arg(directory.0), pointer(out.as_mut_ptr()), out.len(), 0, 0, 0]) }
}

/// Facts about what `path` names, symbolic links not followed.
pub(super) fn facts(path: &CPath<'_>) -> Result<FileFacts> {
    let mut stat = [0u64; 18];
    // SAFETY: the kernel writes one `struct stat` (144 bytes) to `stat`, which has that size; the path ends with a zero.
    unsafe { call(6, [path.argument(), pointer(stat.as_mut_ptr()), 0, 0, 0, 0]) }?;
    Ok(read_facts(&stat))
}

/// Facts about an open file.
pub(super) fn facts_of(fd: &Fd) -> Result<FileFacts> {
    let mut stat = [0u64; 18];
    // SAFETY: the kernel writes one `struct stat` (144 bytes) to `stat`, which has that size.
    unsafe { call(5, [as_arg(fd.0), pointer(stat.as_mut_ptr()), 0, 0, 0, 0]) }?;
    Ok(read_facts(&stat))
}

/// `struct stat`: 24 st_mode u32, 28 st_uid u32, 48 st_size.
fn read_facts(stat: &[u64; 18]) -> FileFacts {
    let [.., mode_and_owner, _, _, bytes] = *stat.first_chunk::<7>().unwrap_or(&[0; 7]);
    let [m0, m1, m2, m3, o0, o1, o2, o3] = mode_and_owner.to_le_bytes();
    FileFacts {
        is_directory: u32::from_le_bytes([m0, m1, m2, m3]) & 0o170_000 == 0o040_000,
        owner: u32::from_le_bytes([o0, o1, o2, o3]),
        bytes,
    }
}

pub(super) fn read_link(path: &CPath<'_>, out: &mut [u8]) -> Result<usize> {
    // SAFETY: the path ends with a zero; the kernel writes at most `out.len()` bytes to `out`.
    unsafe { call(89, [path.argument(), pointer(out.as_mut_ptr()), out.len(), 0, 0, 0]) }
}

/// Signals that stand for a failed write and end the process unless they are ignored.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(super) enum WriteSignal {
    BrokenPipe = 13,
    FileTooLarge = 25,
}

/// Makes such a write an error instead of a signal.
pub(super) fn ignore(signal: WriteSignal) {
    const SIG_IGN: usize = 1;
    let action = [SIG_IGN, 0, 0, 0];
    // SAFETY: the kernel reads one `struct sigaction` (four words; no handler runs, so no restorer is needed).
    // It cannot fail with these arguments.
    _ = unsafe { call(13, [signal as usize, const_pointer(action.as_ptr()), 0, size_of::<u64>(), 0, 0]) };
}

/// A pipe: the side to read, and the side whose last closing the other one notices.
pub(super) fn pipe() -> Result<(Fd, Fd)> {
    let mut ends = [0i32; 2];
    // SAFETY: the kernel writes two descriptors to `ends`.
    unsafe { call(293, [pointer(ends.as_mut_ptr()), O_CLOEXEC, 0, 0, 0, 0]) }?;
    let [read, write] = ends;
    Ok((Fd(read), Fd(write)))
}

/// A number by which to wait for a child.
#[derive(Debug, Clone, Copy)]
pub(super) struct Child(usize);

/// Makes a copy of this process, with a copy of its memory; `None` in the copy.
pub(super) fn fork() -> Result<Option<Child>> {
    // SAFETY: this process has one thread, so the copy finds everything as it is, and nothing is shared but descriptors.
    unsafe { call(57, [0; 6]) }.map(|child| (child != 0).then_some(Child(child)))
}

/// Waits for a child that is about to end.
pub(super) fn reap(Child(child): Child) {
    // SAFETY: no status is asked for. It fails where the agent made us ignore the ends of children: then it is gone.
    _ = unsafe { call(61, [child, 0, 0, 0, 0, 0]) };
}

/// For a copy that outlives its original: a process group of its own, since whole groups are killed, and no descriptor for
/// which the agent could wait. Not a session: the kernel's scheduler would let a new one wait its turn among all others.
/// What is kept moves to the number of standard input.
pub(super) fn leave_everything_but(kept: &Fd) {
    // SAFETY: these calls touch no memory; descriptors that others still have in hand here are not used again. Failures
    // leave a descriptor open for a while longer. Kernels before 5.9 do not know the last call.
    unsafe {
        _ = call(109, [0; 6]);
        _ = call(33, [as_arg(kept.0), 0, 0, 0, 0, 0]);
        _ = call(3, [1, 0, 0, 0, 0, 0]);
        _ = call(3, [2, 0, 0, 0, 0, 0]);
        _ = call(436, [3, u32::MAX as usize, 0, 0, 0, 0]);
    }
}

/// Starts a copy of this process that becomes the program at `path`, in a session of its own, with nothing of ours but
/// `arguments` and `environment`.
pub(super) fn start_detached(path: &CPath<'_>, arguments: &CList<'_>, environment: &CList<'_>) -> Result<()> {
    // SAFETY: this process has one thread, and the child makes only system calls and ends in `execve` or `exit_group`.
    match unsafe { call(57, [0; 6]) } {
        Ok(0) => become_detached(path, arguments, environment),
        other => other.map(drop),
    }
}

fn become_detached(path: &CPath<'_>, arguments: &CList<'_>, environment: &CList<'_>) -> ! {
    const O_RDWR: usize = 2;
    const SIG_SETMASK: usize = 2;
    let no_signals = 0u64;
    // SAFETY: these calls touch no memory but `no_signals`, two literals, and the caller's strings and lists, all of
    // which this process's copy of memory still has. Failures leave the daemon less tidy, not wrong. The last call does
    // not return when it succeeds.
    unsafe {
        // A session of its own, no signal blocked, no directory held.
        _ = call(112, [0; 6]);
        _ = call(14, [SIG_SETMASK, const_pointer(&raw const no_signals), 0, size_of::<u64>(), 0, 0]);
        _ = call(80, [const_pointer(c"/".as_ptr()), 0, 0, 0, 0, 0]);
        if let Ok(null) = call(257, [as_arg(AT_FDCWD), const_pointer(c"/dev/null".as_ptr()), O_RDWR, 0, 0, 0])
        {
            for standard in 0..3 {
                _ = call(33, [null, standard, 0, 0, 0, 0]);
            }
        }
        // Kernels before 5.9 do not know this call: what the agent left open without close-on-exec stays open there.
        _ = call(436, [3, u32::MAX as usize, 0, 0, 0, 0]);
        let lists =
            [const_pointer(arguments.pointers.as_ptr()), const_pointer(environment.pointers.as_ptr())];
        _ = call(59, [path.argument(), lists[0], lists[1], 0, 0, 0]);
    }
    exit()
}

/// Ends the process with code 0.
pub(super) fn exit() -> ! {
    loop {
        // SAFETY: touches no memory and does not return.
        _ = unsafe { call(231, [0; 6]) };
    }
}

/// Bytes that end with a zero, for the kernel to read as a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct CPath<'a>(&'a core::ffi::CStr);

impl<'a> CPath<'a> {
    pub(super) const fn literal(path: &'a core::ffi::CStr) -> Self {
        Self(path)
    }

    pub(super) const fn to_bytes(self) -> &'a [u8] {
        self.0.to_bytes()
    }

    fn argument(&self) -> usize {
        const_pointer(self.0.as_ptr())
    }
}

/// Most strings in a [`CList`].
const LIST_MAX: usize = 15;

/// Strings for `execve`, closed by a null pointer. More than fit are left out.
#[derive(Debug)]
pub(super) struct CList<'a> {
    pointers: [*const core::ffi::c_char; LIST_MAX + 1],
    len: usize,
    strings: PhantomData<&'a core::ffi::CStr>,
}

impl<'a> CList<'a> {
    pub(super) const fn new() -> Self {
        Self { pointers: [core::ptr::null(); LIST_MAX + 1], len: 0, strings: PhantomData }
    }

    pub(super) fn push(&mut self, text: CPath<'a>) {
        if let Some(slot) = self.pointers.get_mut(self.len).filter(|_| self.len < LIST_MAX) {
            *slot = text.0.as_ptr();
            self.len += 1;
        }
    }
}

/// One system call.
///
/// # Safety
/// The arguments must be right for the call: pointers live, lengths true.
unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> Result<usize> {
    let result: isize;
    // SAFETY: the x86-64 system call convention: number in rax, arguments in these registers; rcx and r11 are lost. The
    // kernel touches memory only as the caller promises.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number.cast_signed() => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    if (-4095..0).contains(&result) { Err(Errno(-result)) } else { Ok(result.cast_unsigned()) }
}

fn new_fd(number: usize) -> Fd {
    Fd(i32::try_from(number).unwrap_or(-1))
}

fn at(directory: Option<&Fd>) -> usize {
    as_arg(directory.map_or(AT_FDCWD, Fd::number))
}

fn as_arg(fd: i32) -> usize {
    (fd as isize).cast_unsigned()
}

fn pointer<T>(target: *mut T) -> usize {
    target.expose_provenance()
}

fn const_pointer<T>(target: *const T) -> usize {
    target.expose_provenance()
}
