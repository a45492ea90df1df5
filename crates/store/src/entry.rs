//! What goes into the store and what comes out of it.

use std::{
    fmt,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};
use watchkeeper_core::{AgentKind, DeliveryId, Incarnation, SessionKey, Wall};

use crate::error::FailureKind;

/// Position in the journal, from 1, given by the caller in ascending order; 0 stands before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    pub(crate) const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One input of the core, with what is needed to find it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Unique in the journal; a second entry with it is not stored. `None` for inputs that nobody delivers twice.
    pub delivery: Option<DeliveryId>,
    pub key: Option<SessionKey>,
    /// As resolved by the core.
    pub incarnation: Option<Incarnation>,
    /// Short name for people and filters.
    pub kind: String,
    pub wall: Wall,
    /// The input as the caller encodes it; not interpreted here.
    pub body: Vec<u8>,
}

/// How soon an entry must survive a loss of power. All survive the death of the process once reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Within a second of its commit, with others.
    Normal,
    /// Before it is reported (starts and ends).
    SyncFirst,
}

/// A report of the writer. Reports come in order; `through` never goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Every entry submitted up to here is durable as its urgency asks, or is a duplicate of one that is.
    pub through: Seq,
    /// Entries up to `through` that were not stored because their delivery was in the journal before.
    pub duplicates: Vec<Seq>,
    /// Entries that the database refused for their own sake and that are gone; only a broken caller sees one.
    pub rejected: Vec<Seq>,
    /// Positions since the newest snapshot; the caller decides when the next is due.
    pub since_snapshot: u64,
    /// Why entries behind `through` are not durable. They stay queued and are tried again with the next submit, and
    /// after a pause; a later report covers them.
    pub failed: Option<Failure>,
}

/// An attempt to store that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// The database's or the system's own words.
    pub message: String,
    /// The entries that are not durable; `None` when only cursors, facts or a snapshot waited.
    pub not_stored: Option<RangeInclusive<Seq>>,
    /// Failed attempts since the store was opened.
    pub failures: u64,
}

/// The core's state after the input at `through`, as the caller encodes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub through: Seq,
    pub bytes: Vec<u8>,
}

/// Which rows an `events` command wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// Only rows behind this position.
    pub after: Seq,
    /// Only rows of this session.
    pub key: Option<SessionKey>,
    /// Only rows written at this wall time or later.
    pub since: Option<Wall>,
    /// At most this many rows, and never more than [`crate::limits::EVENTS_ROWS_MAX`].
    pub limit: u32,
}

/// One row of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    pub seq: Seq,
    pub entry: Entry,
}

/// Which file a cursor belongs to, apart from its name: `stat`'s device and inode, or what stands for them elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
}

/// How far a transcript was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub key: SessionKey,
    /// Must be text: a path that is none is refused, and its transcript is read from the start after a restart.
    pub path: PathBuf,
    pub file: FileIdentity,
    /// Bytes consumed.
    pub offset: u64,
    /// The adapter's parser state; not interpreted here.
    pub state_json: String,
}

impl Entry {
    /// Bytes this entry keeps in memory while it is queued, roughly.
    pub(crate) fn weight(&self) -> usize {
        let key = self.key.as_ref().map_or(0, |k| k.id.len() + k.namespace.as_ref().map_or(0, String::len));
        size_of::<Self>() + self.body.len() + self.kind.len() + key
    }
}

/// A session key as the text that the database compares: unambiguous whatever the parts contain.
pub(crate) fn key_text(key: &SessionKey) -> String {
    let parts = (key.agent.name(), key.namespace.as_deref(), key.id.as_str());
    // Encoding three strings as JSON cannot fail; an empty key would only be found by nobody.
    serde_json::to_string(&parts).unwrap_or_default()
}

/// The reverse of [`key_text`]; `None` for text that is no key.
pub(crate) fn key_of_text(text: &str) -> Option<SessionKey> {
    let (agent, namespace, id): (String, Option<String>, String) = serde_json::from_str(text).ok()?;
    Some(SessionKey { agent: AgentKind::named(&agent).ok()?, namespace, id })
}

pub(crate) fn path_text(path: &Path) -> Option<&str> {
    path.to_str()
}
