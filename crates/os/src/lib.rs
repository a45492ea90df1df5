//! What the operating system knows and can do, and nothing of what Watchkeeper decides from it.
//!
//! One folder a capability; in it one file a system (`linux.rs`, `macos.rs`, `windows.rs`, `unsupported.rs`) that
//! exports the same names, and a `mod.rs` that picks. Callers hold no `cfg`. Raw calls sit in `sys.rs` files.
//! A capability that a machine lacks answers `Unsupported { why }` or `Unknown { why }`; it never fails the daemon.
//!
//! Not known here: agents, sessions, settings, the journal.

pub mod clock;
pub mod power;
pub mod private_file;
pub mod process;

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod readable;
