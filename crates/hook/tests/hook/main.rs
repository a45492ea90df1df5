//! The hook as a program, against a small server and against none: every build of it in every situation, always with
//! exit code 0 and in bounded time.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "tests")]

mod ancestry;
mod away;
#[cfg(target_os = "linux")]
mod cost;
mod input;
mod reply;
mod rig;
mod start;
