//! The session model: a pure state machine.
//!
//! One [`Input`] goes in with the time it happened at, all of its [`Effect`]s come out. Nothing here reads a clock,
//! a file, the environment or a random number; nothing blocks; nothing an input contains can make it panic.
//! Replaying the same inputs over an empty [`Core`] gives the same state, which is what the journal relies on.
//!
//! Not known here: payloads, transcripts, sockets, how a process is watched, how a machine is kept awake.

mod apply;
mod background;
pub mod core;
pub mod deadline;
pub mod dispatch;
pub mod effect;
mod ends;
pub mod evidence;
pub mod identity;
mod inactivity;
mod index;
pub mod input;
pub mod invariant;
pub mod lease;
mod lifetime;
pub mod lock;
mod locking;
mod lookup;
pub mod machine;
pub mod marks;
mod ordering;
pub mod session;
pub mod settings;
pub mod signal;
mod stated;
mod step;
pub mod suspend;
mod table;
pub mod time;
mod turns;
pub mod view;
pub mod work;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::core::Core;
pub use deadline::DeadlineKind;
pub use effect::Effect;
pub use identity::{AgentKind, DeclaredName, DeliveryId, Incarnation, ProcessRef, SessionKey, TurnId};
pub use input::{Input, InputBody};
pub use invariant::Violation;
pub use marks::{ALL_MARKS, Mark, Marks};
pub use settings::Settings;
pub use signal::{Signal, SignalBody};
pub use step::{Outcome, Verdict};
pub use time::{Boot, BootId, Mono, Now, Wall};

/// What the core must know of each kind of agent; a kind that is not named has the least of everything.
pub type AgentTraits = BTreeMap<AgentKind, AgentTrait>;

/// How one kind of agent behaves, as its adapter declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentTrait {
    /// The end of background work starts a turn by itself, so that a deferred stop waits for `wake_grace`.
    pub wakes_model: bool,
}
