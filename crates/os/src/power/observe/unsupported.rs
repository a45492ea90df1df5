//! Systems that are not observed: everything stays unknown.

use super::change::{Change, Seen};

/// Watches nothing.
#[derive(Debug, Default)]
pub struct Observer;

impl Observer {
    /// Does nothing.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// All unknown.
    #[must_use]
    pub fn seen(&self) -> Seen {
        Seen::default()
    }

    /// Never returns.
    pub async fn next(&self) -> Change {
        std::future::pending().await
    }

    /// Does nothing.
    pub fn ready_to_sleep(&self) {}
}
