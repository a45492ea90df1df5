//! Whether a delivery was seen before, fast enough to ask for every hook.

use rusqlite::{Connection, OptionalExtension};
use std::{path::PathBuf, sync::Arc};
use watchkeeper_core::DeliveryId;

use crate::{
    error::{DatabaseError, ReadError},
    queue::Queue,
};

/// Where a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// Never seen, or trimmed long ago.
    New,
    /// Accepted by the writer, not durable: it may still be lost, so its sender must keep its copy.
    InFlight,
    /// In the journal.
    Stored,
}

/// Answers for one owner, on a connection of its own.
#[derive(Debug)]
pub struct Deliveries {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) queue: Arc<Queue>,
}

impl Deliveries {
    /// Whether the delivery must not be applied again. Blocks for a lookup in an index at most.
    ///
    /// # Errors
    /// The database could not be read; the answer is then unknown.
    pub fn known(&self, delivery: DeliveryId) -> Result<bool, ReadError> {
        Ok(self.state(delivery)? != DeliveryState::New)
    }

    /// As [`Self::known`], telling what may still be lost from what is stored.
    ///
    /// # Errors
    /// The database could not be read; the answer is then unknown.
    pub fn state(&self, delivery: DeliveryId) -> Result<DeliveryState, ReadError> {
        // In this order: a delivery leaves the flight only after its commit is visible.
        if self.queue.is_in_flight(delivery) {
            return Ok(DeliveryState::InFlight);
        }
        let found = self
            .connection
            .query_row(
                "SELECT 1 FROM journal WHERE delivery = ?1",
                [delivery.0.to_be_bytes().as_slice()],
                |_| Ok(()),
            )
            .optional()
            .map_err(|e| ReadError {
                doing: "look up a delivery",
                path: self.path.clone(),
                source: DatabaseError::from(e),
            })?;
        Ok(if found.is_some() { DeliveryState::Stored } else { DeliveryState::New })
    }
}
