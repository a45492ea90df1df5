//! Everything that can wake the daemon, as one enum. The dispatcher's `select!` is the only place where they meet.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use watchkeeper_api::{Call, Failure};
use watchkeeper_core::{DeliveryId, InputBody, SessionKey};
use watchkeeper_frame::{Refusal, Request};
use watchkeeper_store::Committed;

use crate::{
    door::{Caller, DoorError, Stream},
    grant::Grant,
    signals::StopSignal,
};

/// Events that wait for the dispatcher; senders wait when it is full, which slows callers down and loses nothing.
pub(crate) const EVENT_QUEUE: usize = 1024;

#[derive(Debug)]
pub(crate) enum Event {
    HookKnocked(Result<(Stream, Caller), DoorError>),
    ApiKnocked(Result<(Stream, Caller), DoorError>),
    Hook(Box<HookCall>),
    /// A hook that was told to wait has gone.
    HookGone {
        delivery: DeliveryId,
        /// Tells it from another one that sent the same.
        waiting: mpsc::WeakSender<HookReply>,
    },
    /// All hooks up to this number are heard: what they brought stood before this in the queue.
    HooksHeard {
        number: u64,
    },
    /// A connection of a hook ended without a usable frame.
    HookUnusable {
        why: &'static str,
    },
    Api(Box<ApiCall>),
    /// A client with a subscription has gone.
    ObserverLeft,
    Committed(Committed),
    /// The reader of another part has something for the core (power, displays, hold reports).
    Observed(InputBody),
    /// An actor panicked: what it said does not stand any more.
    ActorFailed {
        unsaid: Vec<InputBody>,
    },
    /// The machine is about to sleep and waits until its row is stored, or cannot be.
    SleepBegan {
        stored: oneshot::Sender<()>,
    },
    ProcessExited(watchkeeper_core::ProcessRef),
    FilesTouched(BTreeSet<std::path::PathBuf>),
    /// The core's next deadline was reached.
    DeadlineReached,
    /// Transcripts of sessions that work are looked at even if the kernel said nothing.
    ReconcileDue,
    Signal(StopSignal),
    TaskEnded {
        result: Result<(), tokio::task::JoinError>,
    },
}

/// One hook that waits for its acknowledgement.
#[derive(Debug)]
pub(crate) struct HookCall {
    pub request: Request,
    pub caller: Caller,
    pub reply: mpsc::Sender<HookReply>,
}

/// What a hook is told. `Wait` is followed by one of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookReply {
    Taken,
    Wait { ms: u32 },
    Print(String),
    Refused(Refusal),
}

/// One request of the local interface.
#[derive(Debug)]
pub(crate) struct ApiCall {
    pub caller: Caller,
    /// As granted to this connection; `None` before `initialize`.
    pub grant: Option<Grant>,
    pub call: Call,
    pub reply: oneshot::Sender<Result<Answer, Failure>>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub value: Value,
    /// By `initialize`.
    pub granted: Option<Grant>,
    /// The session that a subscription is restricted to.
    pub only_session: Option<SessionKey>,
}

/// Wakes subscribers: what they missed they read by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pulse {
    /// Grows with every change of what `status` shows.
    pub revision: u64,
    /// The newest durable row.
    pub seq: u64,
}
