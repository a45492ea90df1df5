//! Power requests, and the older execution state where there are none (Wine), as raw calls.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::{
    io,
    os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle},
};

use windows_sys::Win32::{
    Foundation::INVALID_HANDLE_VALUE,
    System::{
        Power::{
            ES_CONTINUOUS, ES_SYSTEM_REQUIRED, PowerCreateRequest, PowerRequestExecutionRequired,
            PowerRequestSystemRequired, PowerSetRequest, SetThreadExecutionState,
        },
        SystemServices::POWER_REQUEST_CONTEXT_VERSION,
        Threading::{POWER_REQUEST_CONTEXT_SIMPLE_STRING, REASON_CONTEXT, REASON_CONTEXT_0},
    },
};

/// A request that the system stays up and lets us run; closing the handle ends it.
pub(super) fn require_system(why: &str) -> io::Result<OwnedHandle> {
    let mut text: Vec<u16> = why.encode_utf16().chain([0]).collect();
    let context = REASON_CONTEXT {
        Version: POWER_REQUEST_CONTEXT_VERSION,
        Flags: POWER_REQUEST_CONTEXT_SIMPLE_STRING,
        Reason: REASON_CONTEXT_0 { SimpleReasonString: text.as_mut_ptr() },
    };
    // SAFETY: `context` and its text live through the call, which copies them.
    let raw = unsafe { PowerCreateRequest(&raw const context) };
    if raw == INVALID_HANDLE_VALUE || raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is new and ours.
    let request = unsafe { OwnedHandle::from_raw_handle(raw) };
    // SAFETY: the request is open.
    if unsafe { PowerSetRequest(request.as_raw_handle(), PowerRequestSystemRequired) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // Without it Modern Standby may suspend this very process. Refused on some editions: the system request stands.
    // SAFETY: as above.
    if unsafe { PowerSetRequest(request.as_raw_handle(), PowerRequestExecutionRequired) } == 0 {
        tracing::info!(error = %io::Error::last_os_error(), "no execution request");
    }
    Ok(request)
}

/// Keeps the system up until the calling thread ends; whether the system took it.
pub(super) fn require_system_by_thread() -> bool {
    // SAFETY: takes a number.
    unsafe { SetThreadExecutionState(ES_CONTINUOUS | ES_SYSTEM_REQUIRED) != 0 }
}
