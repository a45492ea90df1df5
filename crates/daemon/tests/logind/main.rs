//! The daemon against the real logind. Run by `tests/power/with-rig.sh`; without the rig every test fails.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod restart;
#[path = "../../../os/tests/logind/rig.rs"]
#[expect(dead_code, reason = "shared with the tests of the operating system layer")]
mod rig;
mod sleep;
mod under_test;
