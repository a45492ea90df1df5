//! A wait of the thread pool on a process handle.
#![expect(unsafe_code, reason = "thread pool waits call back with a raw context")]

use std::{
    ffi::c_void,
    io,
    os::windows::io::{AsRawHandle, OwnedHandle},
    ptr,
};

use windows_sys::Win32::{
    Foundation::{HANDLE, INVALID_HANDLE_VALUE},
    System::Threading::{
        INFINITE, RegisterWaitForSingleObject, UnregisterWaitEx, WT_EXECUTEINWAITTHREAD, WT_EXECUTEONLYONCE,
    },
};

/// What runs on a thread of the pool when the process exits. Must be short and must not wait.
pub(super) type Told = Box<dyn Fn() + Send + Sync>;

/// A registered wait. Dropping it ends it, after a callback that runs right now.
pub(super) struct Wait {
    wait: HANDLE,
    context: *mut Told,
    /// Open as long as the wait.
    _process: OwnedHandle,
}

// SAFETY: the wait may be ended from any thread, and the context is `Send` and `Sync`.
unsafe impl Send for Wait {}

impl std::fmt::Debug for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wait").finish_non_exhaustive()
    }
}

unsafe extern "system" fn callback(context: *mut c_void, _timed_out: bool) {
    // SAFETY: the context is the box of the wait, which outlives every callback: it is freed after
    // `UnregisterWaitEx` has waited for them.
    let told = unsafe { &*context.cast::<Told>() };
    told();
}

pub(super) fn start(process: OwnedHandle, told: Told) -> io::Result<Wait> {
    let context = Box::into_raw(Box::new(told));
    let mut wait: HANDLE = ptr::null_mut();
    // SAFETY: `wait` is writable; the process handle and the context live as long as the wait.
    let done = unsafe {
        RegisterWaitForSingleObject(
            &raw mut wait,
            process.as_raw_handle(),
            Some(callback),
            context.cast(),
            INFINITE,
            WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD,
        )
    };
    if done == 0 {
        let error = io::Error::last_os_error();
        // SAFETY: the box was made above and nobody else has it.
        drop(unsafe { Box::from_raw(context) });
        return Err(error);
    }
    Ok(Wait { wait, context, _process: process })
}

impl Drop for Wait {
    fn drop(&mut self) {
        // SAFETY: the wait is registered; the call returns when no callback runs or will.
        unsafe { UnregisterWaitEx(self.wait, INVALID_HANDLE_VALUE) };
        // SAFETY: made by `start`, and no callback uses it any more.
        drop(unsafe { Box::from_raw(self.context) });
    }
}
