//! Read-only views of the core for people and programs: what `status`, `why` and `explain` show.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{Incarnation, ProcessRef, SessionKey},
    input::{Known, Refused},
    signal::{Lineage, Source, WorkKind},
    time::{Mono, Wall},
};

/// The five states that people see; the first that applies wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownState {
    Ended,
    Waiting,
    Working,
    Background,
    Idle,
}

impl ShownState {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Waiting => "waiting",
            Self::Working => "working",
            Self::Background => "background",
            Self::Idle => "idle",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    pub key: SessionKey,
    pub incarnation: Incarnation,
    pub state: ShownState,
    /// Since when the shown state holds.
    pub since: Wall,
    pub started_at: Wall,
    pub turn_since: Option<Wall>,
    pub last_activity: Wall,
    /// Reason code of the soft-lock.
    pub waiting_for: Option<String>,
    pub background: Vec<WorkView>,
    pub processes: Vec<ProcessRef>,
    pub watched: bool,
    pub protects: bool,
    pub cwd: Option<String>,
    pub transcript: Option<String>,
    pub title: Option<String>,
    pub prompt_preview: Option<String>,
    pub agent_version: Option<String>,
    pub parent: Option<String>,
    pub lineage: Vec<Lineage>,
    /// `unwatched:<why>`, `quiet`, `abandoned`, `stalled_after_wake`, `first_seen_mid_turn`.
    pub flags: Vec<String>,
    /// Cause of the end, for `ended`.
    pub ended: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkView {
    pub id: String,
    pub kind: WorkKind,
    pub label: Option<String>,
    pub since: Wall,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineView {
    /// Effective: at least one inhibitor is held.
    pub awake: bool,
    /// `keep_awake` is not off and nothing latched it.
    pub armed: bool,
    /// The core's wish; differs from `awake` while the system refuses or has not answered.
    pub wanted: bool,
    pub held: Vec<String>,
    pub refused: Vec<Refused>,
    pub reasons: Vec<DemandView>,
    pub lid_closed: Known<bool>,
    pub external_displays: Known<u32>,
    pub on_battery: Known<bool>,
    pub battery_percent: Known<u8>,
    pub suspend: Option<String>,
}

/// One reason to keep the machine awake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemandView {
    pub session: Option<SessionKey>,
    pub lease: Option<String>,
    pub why: String,
    pub since: Wall,
}

/// One live lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseView {
    pub id: String,
    pub owner: String,
    pub reason: String,
    pub since: Wall,
    pub until: Mono,
}

/// One step of the evidence behind a session's state, oldest first in lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub at: Wall,
    /// When it happened, if that differs from when it was received.
    pub happened: Option<Wall>,
    pub source: Source,
    /// What was said, e.g. `stop`, `tool_started Bash`.
    pub what: String,
    /// The rule that made something of it, e.g. `stop deferred: 1 shell is live`.
    pub rule: String,
    /// The state after it, when it changed.
    pub to: Option<ShownState>,
}
