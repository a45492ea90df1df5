//! What the core asks of the shell. Effects are carried out in order, after the input's journal row is written.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{DeliveryId, Incarnation, ProcessRef, SessionKey},
    time::Mono,
    view::ShownState,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "effect")]
pub enum Effect {
    /// Take or let go of the machine's keep-awake hold. Sent only when the wish changes; answered by
    /// [`crate::InputBody::HoldReported`].
    SetHold {
        wanted: bool,
        why: String,
    },
    /// Watch this process for exit; answered by `ProcessExited` or [`crate::InputBody::WatchReported`].
    WatchProcess {
        key: SessionKey,
        incarnation: Incarnation,
        process: ProcessRef,
    },
    UnwatchProcess {
        process: ProcessRef,
    },
    FollowTranscript {
        key: SessionKey,
        path: String,
    },
    UnfollowTranscript {
        key: SessionKey,
    },
    /// Look at tree CPU, tool children and work processes of a session now; answered by
    /// [`crate::InputBody::ProbeAnswered`].
    Probe {
        key: SessionKey,
        incarnation: Incarnation,
        probe: Probe,
    },
    /// The waiting hook of this delivery gets its answer.
    AnswerHook {
        delivery: DeliveryId,
        answer: HookAnswer,
    },
    /// The waiting hook of this delivery is to wait on, at the latest until then.
    HoldHook {
        delivery: DeliveryId,
        until: Mono,
    },
    Webhook {
        event: Webhook,
    },
    PlaySound {
        name: String,
    },
    /// Ask the person about this session before the machine sleeps.
    AskBeforeSleep {
        key: SessionKey,
        incarnation: Incarnation,
    },
    WithdrawQuestion {
        key: SessionKey,
        incarnation: Incarnation,
    },
    /// Answered by [`crate::InputBody::SuspendReported`].
    RequestSuspend {
        mode: SuspendMode,
        reason: SuspendReason,
    },
    /// One line for the suspend history.
    RecordSuspend {
        mode: SuspendMode,
        reason: SuspendReason,
        success: bool,
        message: String,
    },
    BackUpLidAction,
    ChangeLidAction,
    RestoreLidAction,
    /// A session's shown state changed; for subscribers, the journal and logs.
    Transitioned {
        key: SessionKey,
        incarnation: Incarnation,
        from: Option<ShownState>,
        to: ShownState,
        evidence: String,
    },
    /// Nothing keeps the daemon alive any more.
    ExitRuntime,
}

/// What the shell is to find out about a session's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// CPU time of the agent's subtree (milliseconds), whether it is stopped, and which work processes live.
    Inactivity,
    /// Is there a child of the agent younger than the lock (hooks and helpers excepted)?
    YoungerChild,
    /// CPU and output of background work since the last look.
    BackgroundQuiet,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum HookAnswer {
    /// Leave the agent alone.
    Nothing,
    /// Resume the turn with the person's words (Claude, Codex, Copilot: `decision: block`).
    Continue {
        message: String,
    },
    Allow,
    Deny {
        message: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Webhook {
    PreSuspend { reason: SuspendReason },
    PostSessionEnd { key: SessionKey, incarnation: Incarnation },
    Canceled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspendMode {
    Sleep,
    Hibernate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SuspendReason {
    Completed,
    SoftLocked,
    Silent,
    EmergencyHibernation,
    BatteryFloor,
}
