//! What `status --json` prints, version 1. Fields are only ever added. Owns the conversion from the core's views;
//! adds nothing that the views do not say.

use serde::{Deserialize, Serialize};
use watchkeeper_core::{
    AgentKind,
    identity::SessionKey,
    input::Known,
    signal::{Lineage, WorkKind},
    view::{DemandView, MachineView, SessionView, ShownState, WorkView},
};

use crate::time::Time;

mod fit;

/// Raised only when a field is removed or changes its meaning.
pub const STATUS_VERSION: u32 = 1;

/// Everything that is known, in one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub version: u32,
    /// Counts the changes of what this answer says, from the daemon's start; `changed` notifications carry it.
    #[serde(default)]
    pub revision: u64,
    pub machine: Machine,
    /// Sorted by state (waiting, working, background, idle, ended), then by key. Of very many the last are left out, which
    /// `notices` says.
    pub sessions: Vec<Session>,
    /// Things that a person should mend, e.g. a broken configuration file.
    #[serde(default)]
    pub notices: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// At least one inhibitor is held, as read back from the system.
    pub awake: bool,
    /// `keep_awake` is not off and nothing latched it.
    pub armed: bool,
    /// Watchkeeper wants the machine awake; differs from `awake` while the system refuses or has not answered.
    #[serde(default)]
    pub wanted: bool,
    /// Kinds of the held inhibitors, e.g. `idle`, `handle-lid-switch`.
    pub held: Vec<String>,
    pub refused: Vec<RefusedHold>,
    pub reasons: Vec<Reason>,
    /// `open`, `closed` or `unknown`.
    pub lid: String,
    /// `mains`, `battery` or `unknown`.
    pub power: String,
    /// External displays that are on; `null`: unknown.
    pub displays: Option<u32>,
    #[serde(default)]
    pub battery_percent: Option<u8>,
    /// What a scheduled suspend waits for; `null`: none is scheduled.
    #[serde(default)]
    pub suspend: Option<String>,
    /// The line that `watchkeeper why` prints.
    #[serde(default)]
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedHold {
    pub kind: String,
    pub why: String,
}

/// One reason to keep the machine awake: exactly one of `session` (a key) and `hold` (an id) is there, or neither for
/// a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    pub why: String,
    pub since: Time,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// `agent:id` or `agent/namespace:id`; a selector that names exactly this session.
    pub key: String,
    pub agent: AgentKind,
    pub namespace: Option<String>,
    pub id: String,
    pub incarnation: u32,
    pub state: ShownState,
    pub since: Time,
    #[serde(default)]
    pub started_at: Option<Time>,
    pub turn_since: Option<Time>,
    pub last_activity: Time,
    /// Public reason code, e.g. `permission_prompt`.
    pub waiting_for: Option<String>,
    pub background: Vec<Work>,
    /// The first of `pids`.
    pub pid: Option<u32>,
    #[serde(default)]
    pub pids: Vec<u32>,
    pub watched: bool,
    /// Keeps the machine awake.
    #[serde(default)]
    pub protects: bool,
    pub cwd: Option<String>,
    /// The agent's own title, else the preview of the prompt.
    pub title: Option<String>,
    #[serde(default)]
    pub prompt_preview: Option<String>,
    #[serde(default)]
    pub transcript: Option<String>,
    #[serde(default)]
    pub agent_version: Option<String>,
    pub parent: Option<String>,
    pub flags: Vec<String>,
    pub lineage: Vec<Link>,
    /// Cause of the end.
    #[serde(default)]
    pub ended: Option<String>,
}

/// Background work that the agent tracks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub id: String,
    /// `shell`, `subagent`, `task`, `scheduled`, `monitor` or `terminal`.
    pub kind: String,
    #[serde(default)]
    pub label: Option<String>,
    pub since: Time,
}

/// A link to another session of the same agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// `forked_from`, `forked_to`, `continued_in`, `cleared_to`, `cleared_from` or `parent`.
    pub link: String,
    pub id: String,
}

impl Status {
    /// Puts an answer together; sorts the sessions.
    #[must_use]
    pub fn of_views(revision: u64, machine: &MachineView, why: String, sessions: &[SessionView]) -> Self {
        let mut sessions: Vec<Session> = sessions.iter().map(Session::of_view).collect();
        sessions.sort_by(|a, b| (urgency(a.state), &a.key).cmp(&(urgency(b.state), &b.key)));
        Self {
            version: STATUS_VERSION,
            revision,
            machine: Machine::of_view(machine, why),
            sessions,
            notices: Vec::new(),
        }
    }
}

/// Sessions that want something of the person come first.
const fn urgency(state: ShownState) -> u8 {
    match state {
        ShownState::Waiting => 0,
        ShownState::Working => 1,
        ShownState::Background => 2,
        ShownState::Idle => 3,
        ShownState::Ended => 4,
    }
}

impl Machine {
    #[must_use]
    pub fn of_view(view: &MachineView, why: String) -> Self {
        let refused = view.refused.iter().map(|r| RefusedHold { kind: r.kind.clone(), why: r.why.clone() });
        Self {
            awake: view.awake,
            armed: view.armed,
            wanted: view.wanted,
            held: view.held.clone(),
            refused: refused.collect(),
            reasons: view.reasons.iter().map(Reason::of_view).collect(),
            lid: one_of(view.lid_closed, "closed", "open"),
            power: one_of(view.on_battery, "battery", "mains"),
            displays: known(view.external_displays),
            battery_percent: known(view.battery_percent),
            suspend: view.suspend.clone(),
            why,
        }
    }
}

fn one_of(answer: Known<bool>, yes: &str, no: &str) -> String {
    match answer {
        Known::Is(true) => yes,
        Known::Is(false) => no,
        Known::Unknown => "unknown",
    }
    .into()
}

fn known<T>(answer: Known<T>) -> Option<T> {
    match answer {
        Known::Is(value) => Some(value),
        Known::Unknown => None,
    }
}

impl Reason {
    #[must_use]
    pub fn of_view(view: &DemandView) -> Self {
        Self {
            session: view.session.as_ref().map(SessionKey::to_string),
            hold: view.lease.clone(),
            why: view.why.clone(),
            since: view.since.into(),
        }
    }
}

impl Session {
    #[must_use]
    pub fn of_view(view: &SessionView) -> Self {
        let pids: Vec<u32> = view.processes.iter().map(|p| p.pid).collect();
        Self {
            key: view.key.to_string(),
            agent: view.key.agent,
            namespace: view.key.namespace.clone(),
            id: view.key.id.clone(),
            incarnation: view.incarnation.0,
            state: view.state,
            since: view.since.into(),
            started_at: Some(view.started_at.into()),
            turn_since: view.turn_since.map(Time),
            last_activity: view.last_activity.into(),
            waiting_for: view.waiting_for.clone(),
            background: view.background.iter().map(Work::of_view).collect(),
            pid: pids.first().copied(),
            pids,
            watched: view.watched,
            protects: view.protects,
            cwd: view.cwd.clone(),
            title: view.title.clone().or_else(|| view.prompt_preview.clone()),
            prompt_preview: view.prompt_preview.clone(),
            transcript: view.transcript.clone(),
            agent_version: view.agent_version.clone(),
            parent: view.parent.clone(),
            flags: view.flags.clone(),
            lineage: view.lineage.iter().map(Link::of).collect(),
            ended: view.ended.clone(),
        }
    }

    /// The core's key of this session.
    #[must_use]
    pub fn session_key(&self) -> SessionKey {
        SessionKey { agent: self.agent, namespace: self.namespace.clone(), id: self.id.clone() }
    }
}

impl Work {
    #[must_use]
    pub fn of_view(view: &WorkView) -> Self {
        Self {
            id: view.id.clone(),
            kind: work_kind(view.kind).into(),
            label: view.label.clone(),
            since: view.since.into(),
        }
    }
}

const fn work_kind(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::Shell => "shell",
        WorkKind::Subagent => "subagent",
        WorkKind::Task => "task",
        WorkKind::Scheduled => "scheduled",
        WorkKind::Monitor => "monitor",
        WorkKind::Terminal => "terminal",
    }
}

impl Link {
    #[must_use]
    pub fn of(lineage: &Lineage) -> Self {
        let (link, id) = match lineage {
            Lineage::ForkedFrom(id) => ("forked_from", id),
            Lineage::ForkedTo(id) => ("forked_to", id),
            Lineage::ContinuedIn(id) => ("continued_in", id),
            Lineage::ClearedTo(id) => ("cleared_to", id),
            Lineage::ClearedFrom(id) => ("cleared_from", id),
            Lineage::Parent(id) => ("parent", id),
        };
        Self { link: link.into(), id: id.clone() }
    }
}

#[cfg(test)]
mod tests;
