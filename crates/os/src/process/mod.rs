//! Processes of this machine: who they are, who started them, when they end, who is at the other end of a socket,
//! what their trees cost. Never through a child program. Nothing here sends a signal.

pub mod ancestry;
pub mod environment;
pub mod exit_watch;
pub mod identity;
pub mod open_files;
pub mod peer;
pub mod tree_cpu;

mod answer;
#[cfg(target_os = "linux")]
mod proc_files;
#[cfg(target_os = "linux")]
mod proc_stat;

#[cfg(target_os = "macos")]
mod sys_macos;
#[cfg(windows)]
mod sys_windows;

pub use answer::{Probe, RunState, Sameness};
