//! `watchkeeper-hook [--home DIR | --run DIR --state DIR [--config DIR]] [--receipt] AGENT [EVENT] [ARGUMENT...]`: the
//! program that agents run. It hands one event to the daemon, prints what the daemon says, and leaves with exit code 0,
//! whatever happened.
//!
//! It reads no environment (agents leak theirs into each other), no configuration, and parses nothing but its own
//! command line. Everything is bounded by its own deadlines, which stand in `flow.rs`. With the daemon away it leaves
//! the event in the spool, and starts the daemon when an agent begins work.
//!
//! # Builds
//! The shipped hook on x86-64 Linux is *bare*: the same code on system calls instead of a C library, since a C library
//! linked in is larger than the whole size budget (an empty C program: 660 KiB) and its start-up costs as much as the
//! work. Recipe, from the root (see also `xtask build-hook`):
//!
//! ```text
//! RUSTFLAGS="--cfg watchkeeper_bare" cargo build --package watchkeeper-hook --profile hook \
//!     --no-default-features --target-dir target/hook-build
//! ```
//!
//! Everywhere else, and in development, it is an ordinary program with the standard library. Development builds on
//! x86-64 Linux differ from the bare one by `entry.rs` alone; `--cfg watchkeeper_portable` gives them what other
//! systems get, for tests.

#![cfg_attr(watchkeeper_bare, no_std, no_main)]

mod args;
mod flow;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(watchkeeper_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(watchkeeper_portable))))]
mod portable;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(watchkeeper_portable)))]
use linux as os;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(watchkeeper_portable))))]
use portable as os;

#[cfg(not(watchkeeper_bare))]
fn main() {
    // An agent must never see a failed hook: not a message, not a code, not a signal.
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    let arguments: Vec<Vec<u8>> =
        std::env::args_os().skip(1).map(std::ffi::OsString::into_encoded_bytes).collect();
    flow::run(arguments.iter().map(Vec::as_slice));
    // Not by returning: threads that still wait for input must not hold the agent.
    std::process::exit(0);
}
