//! Whether a delivery was seen before.

use std::sync::Arc;
use watchkeeper_core::DeliveryId;

use crate::queue::Queue;

/// Where a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// Never seen, or trimmed with its row.
    New,
    /// Accepted by the writer, not durable: it may still be lost, so its sender must keep its copy.
    InFlight,
    /// In the journal.
    Stored,
}

/// Answers from memory; never blocks for the disk. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Deliveries {
    pub(crate) queue: Arc<Queue>,
}

impl Deliveries {
    /// Whether the delivery must not be applied again.
    #[must_use]
    pub fn known(&self, delivery: DeliveryId) -> bool {
        self.state(delivery) != DeliveryState::New
    }

    /// As [`Self::known`], telling what may still be lost from what is stored.
    #[must_use]
    pub fn state(&self, delivery: DeliveryId) -> DeliveryState {
        self.queue.state_of(delivery)
    }
}
