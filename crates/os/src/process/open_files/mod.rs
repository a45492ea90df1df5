//! How many descriptors this process may have open: one is needed for every watched process.
//!
//! Owns the soft limit of this process only.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::raise;

#[cfg(not(unix))]
mod unsupported;
#[cfg(not(unix))]
pub use unsupported::raise;

/// The limit before and after; equal when there was nothing to raise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// `None`: unlimited.
    pub before: Option<u64>,
    pub after: Option<u64>,
}
