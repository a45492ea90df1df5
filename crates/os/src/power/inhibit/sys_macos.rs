//! IOKit's power assertions.
#![expect(unsafe_code, reason = "IOKit's functions take raw out-pointers")]

use std::ptr::{self, NonNull};

use objc2_core_foundation::{CFArray, CFDictionary, CFNumber, CFRetained, CFString, CFType};
use objc2_io_kit::{
    IOPMAssertionCreateWithDescription, IOPMAssertionID, IOPMAssertionRelease, IOPMAssertionSetProperty,
    IOPMCopyAssertionsByProcess, kIOReturnSuccess,
};

/// `kIOPMAssertionTypePreventUserIdleSystemSleep` and the keys of `<IOKit/pwr_mgt/IOPMLib.h>`.
const NO_IDLE_SLEEP: &str = "PreventUserIdleSystemSleep";
const RELEASE_AT_TIMEOUT: &str = "TimeoutActionRelease";
const TIMEOUT_KEY: &str = "TimeoutSeconds";
const TYPE_KEY: &str = "AssertType";
const NAME_KEY: &str = "AssertName";

/// An IOKit return code that is not success.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal(pub(super) i32);

/// An assertion of any process.
#[derive(Debug)]
pub(super) struct Assertion {
    pub(super) pid: u32,
    pub(super) kind: String,
    pub(super) name: String,
}

/// Prevents idle sleep until the release, our end, or the timeout.
pub(super) fn prevent_idle_sleep(who: &str, why: &str, timeout_s: f64) -> Result<IOPMAssertionID, Refusal> {
    let mut id: IOPMAssertionID = 0;
    // SAFETY: the strings live through the call; `id` is writable.
    let status = unsafe {
        IOPMAssertionCreateWithDescription(
            Some(&CFString::from_static_str(NO_IDLE_SLEEP)),
            Some(&CFString::from_str(who)),
            Some(&CFString::from_str(why)),
            Some(&CFString::from_str(why)),
            None,
            timeout_s,
            Some(&CFString::from_static_str(RELEASE_AT_TIMEOUT)),
            &raw mut id,
        )
    };
    checked(status).map(|()| id)
}

/// Starts an assertion's timeout anew.
pub(super) fn renew(id: IOPMAssertionID, timeout_s: f64) -> Result<(), Refusal> {
    let value = CFNumber::new_f64(timeout_s);
    // SAFETY: the timeout's value is a number, as it must be.
    let status = unsafe {
        IOPMAssertionSetProperty(id, Some(&CFString::from_static_str(TIMEOUT_KEY)), Some(value.as_ref()))
    };
    checked(status)
}

pub(super) fn release(id: IOPMAssertionID) -> Result<(), Refusal> {
    checked(IOPMAssertionRelease(id))
}

/// Every process's assertions, at most `limit`.
pub(super) fn all(limit: usize) -> Result<Vec<Assertion>, Refusal> {
    let mut raw: *const CFDictionary = ptr::null();
    // SAFETY: `raw` is writable.
    checked(unsafe { IOPMCopyAssertionsByProcess(&raw mut raw) })?;
    let Some(raw) = NonNull::new(raw.cast_mut()) else { return Ok(Vec::new()) };
    // SAFETY: a "Copy" function hands us one reference; the dictionary's keys and values are CF objects.
    let by_pid =
        unsafe { CFRetained::cast_unchecked::<CFDictionary<CFType, CFType>>(CFRetained::from_raw(raw)) };
    let (pids, lists) = by_pid.to_vecs();
    let mut found = Vec::new();
    for (pid, list) in pids.into_iter().zip(lists) {
        let pid = pid.downcast::<CFNumber>().ok().and_then(|pid| pid.as_i32());
        let (Some(pid), Ok(list)) = (pid.and_then(|pid| u32::try_from(pid).ok()), list.downcast::<CFArray>())
        else {
            continue;
        };
        // SAFETY: the elements of a CF array that came over IPC are CF objects.
        let list = unsafe { CFRetained::cast_unchecked::<CFArray<CFType>>(list) };
        for entry in list.to_vec() {
            if found.len() >= limit {
                return Ok(found);
            }
            if let Ok(entry) = entry.downcast::<CFDictionary>() {
                // SAFETY: as above; the keys asked for are strings.
                let entry = unsafe { CFRetained::cast_unchecked::<CFDictionary<CFString, CFType>>(entry) };
                found.push(Assertion { pid, kind: text(&entry, TYPE_KEY), name: text(&entry, NAME_KEY) });
            }
        }
    }
    Ok(found)
}

pub(super) fn is_no_idle_sleep(kind: &str) -> bool {
    kind == NO_IDLE_SLEEP
}

fn text(entry: &CFDictionary<CFString, CFType>, key: &'static str) -> String {
    let value =
        entry.get(&CFString::from_static_str(key)).and_then(|value| value.downcast::<CFString>().ok());
    value.map_or_else(String::new, |text| text.to_string())
}

fn checked(status: i32) -> Result<(), Refusal> {
    if status == kIOReturnSuccess { Ok(()) } else { Err(Refusal(status)) }
}
