//! The durable journal: every input of the core in order, snapshots of the core, transcript cursors and a few facts.
//!
//! Owns one directory's `journal.db` (SQLite in WAL mode) and everything about its durability, bounds and repair.
//! Must not know: what an input means, when a snapshot is due, sockets, async runtimes. Bodies are opaque bytes.
//!
//! One thread writes ([`JournalWriter`]); any number of [`Reader`]s and one [`Deliveries`] look, each on a connection
//! of its own. docs/journal.md describes the promises.

mod apply;
mod checksum;
mod connection;
mod deliveries;
mod entry;
mod error;
mod files;
mod limits;
mod queue;
mod read;
mod salvage;
mod schema;
mod store;
mod sync;
mod writer;

pub use deliveries::{Deliveries, DeliveryState};
pub use entry::{
    Committed, Cursor, Entry, EventQuery, EventRow, Failure, FileIdentity, Seq, Snapshot, Urgency,
};
pub use error::{CloseError, DatabaseError, FailureKind, FlushError, OpenError, ReadError, SubmitError};
pub use limits::{
    BODY_BYTES_MAX, EVENTS_BYTES_MAX, EVENTS_ROWS_MAX, Limits, QUEUE_BYTES_MAX, QUEUE_COMMANDS_MAX,
    SNAPSHOT_BYTES_MAX, TEXT_BYTES_MAX,
};
pub use read::{Cursors, Reader, Replayed};
pub use store::{Note, Opened, Recovery, Store};
pub use writer::JournalWriter;
