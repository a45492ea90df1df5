//! The closed set of things that time alone brings about. One slot each (a slot per session where a key is named).

use serde::{Deserialize, Serialize};

use crate::identity::{DeliveryId, SessionKey};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "deadline")]
pub enum DeadlineKind {
    /// One for the machine: the earliest among protecting sessions.
    Inactivity,
    WakeGrace {
        key: SessionKey,
    },
    WorkMax {
        key: SessionKey,
    },
    BackgroundQuiet {
        key: SessionKey,
    },
    /// A compaction between turns counts as work for ten minutes at most.
    Compaction {
        key: SessionKey,
    },
    HeldHook {
        delivery: DeliveryId,
    },
    LeaseExpiry {
        id: String,
    },
    SuspendDelay,
    AskBeforeSleep,
    Webhook,
    Sound,
    SuspendRequest,
    HoldVerify,
    Cleanup,
}

impl DeadlineKind {
    /// The reason's name, for logs and `explain`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Inactivity => "inactivity",
            Self::WakeGrace { .. } => "wake_grace",
            Self::WorkMax { .. } => "work_max",
            Self::BackgroundQuiet { .. } => "background_quiet",
            Self::Compaction { .. } => "compaction",
            Self::HeldHook { .. } => "held_hook",
            Self::LeaseExpiry { .. } => "lease_expiry",
            Self::SuspendDelay => "suspend_delay",
            Self::AskBeforeSleep => "ask_before_sleep",
            Self::Webhook => "webhook",
            Self::Sound => "sound",
            Self::SuspendRequest => "suspend_request",
            Self::HoldVerify => "hold_verify",
            Self::Cleanup => "cleanup",
        }
    }
}
