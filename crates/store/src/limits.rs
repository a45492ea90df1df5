//! Every bound of this crate, with what happens at it.

use std::time::Duration;

/// Commands accepted and not yet stored. At the limit a submit returns `Full` at once; nothing waits, nothing is
/// dropped: the caller keeps the entry and tells its sender that it is not durable.
pub const QUEUE_COMMANDS_MAX: usize = 4096;

/// Bytes of those commands. At the limit: as [`QUEUE_COMMANDS_MAX`].
pub const QUEUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Commands in one transaction. At the limit the rest goes into the next one.
pub(crate) const BATCH_COMMANDS_MAX: usize = 512;

/// Bytes in one transaction, unless its first command alone is larger. At the limit: as [`BATCH_COMMANDS_MAX`].
pub(crate) const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Bytes of one body. Above it a submit returns `TooLarge`.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of one snapshot. Above it a submit returns `TooLarge`.
pub const SNAPSHOT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a kind, a session key as text, a path, a cursor's state, a fact's value. Above it: `TooLarge`.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Longest time between a commit and the moment it survives a loss of power.
pub(crate) const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// First and longest pause between two attempts after a failure, doubled in between. A new submit tries at once.
pub(crate) const RETRY_FIRST: Duration = Duration::from_secs(1);
pub(crate) const RETRY_LONGEST: Duration = Duration::from_secs(60);

/// Frames (pages) in the log from which on the writer copies it into the database after reporting a batch.
pub(crate) const CHECKPOINT_FRAMES: u32 = 1000;

/// Frames from which on the writer waits for readers (at most [`BUSY_WAIT`]) so that the log can start over.
pub(crate) const CHECKPOINT_FRAMES_LATE: u32 = 16_000;

/// The log file is cut back to this once it was copied.
pub(crate) const LOG_BYTES_KEPT: u32 = 8 * 1024 * 1024;

/// Longest wait for a lock held by another connection of this process; then the attempt fails as `Busy` and is retried.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(2);

/// Snapshots kept; the older ones go when a newer one is stored. Two, so that a damaged one has a predecessor.
pub(crate) const SNAPSHOTS_KEPT: u32 = 2;

/// Rows deleted in one transaction of the trim; between two of them waiting entries go first.
pub(crate) const TRIM_ROWS: u64 = 1000;

/// Transcript cursors kept; with a snapshot those touched longest ago go. Losing one costs a rescan of its transcript.
pub(crate) const CURSORS_MAX: u32 = 10_000;

/// Page cache of the writer's and of a reader's connection, KiB. At the limit SQLite evicts (and spills to the log).
pub(crate) const WRITER_CACHE_KIB: i64 = 1024;
pub(crate) const READER_CACHE_KIB: i64 = 256;

/// Rows and bytes of one `events` answer. At either limit the answer ends; the caller asks on after its last row.
pub const EVENTS_ROWS_MAX: u32 = 1000;
pub const EVENTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Rows read in one read transaction of a replay, so that a long replay does not stop the log from starting over.
pub(crate) const REPLAY_ROWS: u32 = 1000;

/// Damaged databases kept beside the live one. With that many a further damaged one is not opened (`TooManyDamaged`):
/// a disk that did this so often needs a person.
pub(crate) const DAMAGED_KEPT_MAX: u32 = 32;

/// Probes for readable rows behind damage. At the limit the rest is counted as lost; the moved file still has it.
pub(crate) const SALVAGE_PROBES_MAX: u32 = 10_000;

/// The bounds that depend on the user's disk; the rest are constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Rows kept once two snapshots cover the older ones. Counted by sequence numbers, so gaps count as rows.
    pub rows_max: u64,
    /// Database size from which on all rows that both snapshots cover go, whatever `rows_max` says.
    pub trim_above_bytes: u64,
    /// Database size that is never exceeded: commits fail as `Full`, are kept queued, and are retried.
    pub bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows_max: 50_000, trim_above_bytes: 256 << 20, bytes_max: 1 << 30 }
    }
}
