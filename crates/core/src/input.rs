//! Everything that can change the core, as one closed set. The journal stores inputs; replaying them rebuilds the state.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::{
    deadline::DeadlineKind,
    effect::Probe,
    identity::{DeliveryId, Incarnation, ProcessRef, SessionKey},
    settings::Settings,
    signal::Signal,
    time::Now,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub now: Now,
    pub body: InputBody,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "input")]
pub enum InputBody {
    /// Boxed: by far the most common and the largest.
    Signal {
        signal: Box<Signal>,
        /// The hook waits for an answer and may be held until then.
        #[serde(default)]
        held: Option<HeldHook>,
    },
    /// A deadline was reached; ignored unless it is armed and due.
    DeadlineReached {
        deadline: DeadlineKind,
    },
    SettingsChanged {
        settings: Box<Settings>,
    },
    /// A lease begins or is renewed (`hold`, MCP hold, `run`).
    LeaseTaken {
        id: String,
        owner: String,
        reason: String,
        length: Duration,
    },
    LeaseReleased {
        id: String,
    },
    Lid {
        state: Known<bool>,
    },
    /// Number of external displays that are on.
    Displays {
        external_on: Known<u32>,
    },
    Power {
        on_battery: Known<bool>,
        percent: Known<u8>,
    },
    /// The system is about to sleep (not necessarily by us).
    SleepBegan,
    SleepEnded {
        slept: Duration,
    },
    /// What the shell found out about the hold: held kinds and refusals, read back from the system.
    HoldReported {
        held: Vec<String>,
        refused: Vec<Refused>,
    },
    /// Whether an exit watch stands; `Err` carries why not.
    WatchReported {
        key: SessionKey,
        incarnation: Incarnation,
        process: ProcessRef,
        outcome: WatchOutcome,
    },
    ProbeAnswered {
        key: SessionKey,
        incarnation: Incarnation,
        probe: Probe,
        answer: ProbeAnswer,
    },
    SuspendReported {
        accepted: bool,
        message: String,
    },
    WebhookReported {
        accepted: bool,
    },
    SoundEnded,
    /// The person answered an ask-before-sleep question of this session.
    ReplyReceived {
        key: SessionKey,
        incarnation: Incarnation,
        message: Option<String>,
    },
    /// A held hook is gone: its agent killed it, or its connection broke.
    HookGone {
        delivery: DeliveryId,
    },
    /// The shell starts (again): monotonic time may have restarted, watches and holds are gone.
    RuntimeStarted {
        clean: bool,
    },
    /// Observers (TUI, dashboard, fleet) keep the runtime alive.
    Observers {
        count: u32,
    },
}

/// A hook connection that can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldHook {
    pub delivery: DeliveryId,
    pub question: HookQuestion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookQuestion {
    Permission,
    Stop,
}

/// A probe's answer with the third possibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known<T> {
    Is(T),
    #[default]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Inhibitor kind, e.g. `handle-lid-switch`.
    pub kind: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchOutcome {
    Watching,
    /// It was gone already: the orphan path.
    AlreadyGone,
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// CPU time of the agent's process subtree so far, milliseconds.
    pub tree_cpu_ms: Known<u64>,
    pub stopped: Known<bool>,
    pub agent_alive: Known<bool>,
    /// Any process of tracked background work is alive.
    pub background_alive: Known<bool>,
    /// A child of the agent younger than the lock exists.
    pub younger_child: Known<bool>,
    /// Background work used CPU or wrote output since the last look.
    pub background_moved: Known<bool>,
}
