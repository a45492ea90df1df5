//! One call that the standard library does not offer.
#![expect(unsafe_code, reason = "geteuid has no safe form in the standard library")]

unsafe extern "C" {
    safe fn geteuid() -> u32;
}

pub(super) fn effective_user() -> u32 {
    geteuid()
}
