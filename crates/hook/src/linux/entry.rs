//! Where the bare hook begins: what a C library's start-up code would do, as far as this program needs it.
#![expect(unsafe_code, reason = "there is no C library to start us, nor to move bytes")]

use core::{
    arch::{asm, naked_asm},
    ffi::CStr,
};

use super::sys;

/// Entry point by the x86-64 System V ABI: the stack pointer is at the argument count.
///
/// # Safety
/// Called by the kernel only.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn _start() -> ! {
    naked_asm!(
        "xor ebp, ebp",
        "mov rdi, rsp",
        "and rsp, -16",
        "call {begin}",
        "ud2",
        begin = sym begin,
    )
}

extern "C" fn begin(stack: *const usize) -> ! {
    // SAFETY: at entry the stack holds the argument count, then so many pointers to zero-closed strings, then a null
    // pointer; all of it lives as long as the process.
    let arguments = Arguments { next: unsafe { stack.add(1).cast() } };
    crate::flow::run(arguments.skip(1));
    sys::exit()
}

#[derive(Debug, Clone)]
struct Arguments {
    next: *const *const core::ffi::c_char,
}

impl Iterator for Arguments {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<&'static [u8]> {
        // SAFETY: `next` stands at an element of the argument list or at its closing null pointer, never beyond.
        let argument = unsafe { *self.next };
        if argument.is_null() {
            return None;
        }
        // SAFETY: not yet at the closing null pointer, so one more element follows; the string is closed by a zero.
        unsafe {
            self.next = self.next.add(1);
            Some(CStr::from_ptr(argument).to_bytes())
        }
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit()
}

/// The compiler calls these for copies and fills that it does not write out.
///
/// # Safety
/// As in C: both ranges valid and apart.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(target: *mut u8, source: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller promises `len` valid bytes at both ends; the direction flag is clear by the ABI.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") target => _, inout("rsi") source => _,
            options(nostack, preserves_flags));
    }
    target
}

/// # Safety
/// As in C: both ranges valid; they may overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(target: *mut u8, source: *const u8, len: usize) -> *mut u8 {
    if target.addr().wrapping_sub(source.addr()) >= len {
        // SAFETY: the target does not begin inside the source, so copying upwards reads each byte before it is written.
        return unsafe { memcpy(target, source, len) };
    }
    // SAFETY: the caller promises `len` valid bytes at both ends; `len` is not zero here. Copies downwards and clears
    // the direction flag again.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") len => _,
            inout("rdi") target.add(len - 1) => _, inout("rsi") source.add(len - 1) => _, options(nostack));
    }
    target
}

/// # Safety
/// As in C: the range valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(target: *mut u8, value: i32, len: usize) -> *mut u8 {
    let [value, ..] = value.to_le_bytes();
    // SAFETY: the caller promises `len` valid bytes; the direction flag is clear by the ABI.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") target => _, in("al") value,
            options(nostack, preserves_flags));
    }
    target
}

/// # Safety
/// As in C: both ranges valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(one: *const u8, two: *const u8, len: usize) -> i32 {
    for at in 0..len {
        // SAFETY: `at` is below the length that the caller promises for both. Volatile, lest the compiler sees a
        // comparison of memory here and calls this very function.
        let (a, b) = unsafe { (one.add(at).read_volatile(), two.add(at).read_volatile()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}

/// # Safety
/// As in C: both ranges valid.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(one: *const u8, two: *const u8, len: usize) -> i32 {
    // SAFETY: the same promise.
    unsafe { memcmp(one, two, len) }
}

/// # Safety
/// As in C: closed by a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut len = 0;
    // SAFETY: the caller promises a closing zero, and nothing beyond it is read. Volatile as in `memcmp`.
    while unsafe { text.add(len).read_volatile() } != 0 {
        len += 1;
    }
    len
}
