//! Processes as they are: real children, one behaviour a file.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod ancestors_are_read;
mod child;
mod exits_are_noticed;
mod identity_outlives_no_exit;
mod trees_are_summed;
