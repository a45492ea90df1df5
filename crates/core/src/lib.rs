//! The session model: a pure state machine.
//!
//! One [`Input`] goes in with the time it happened at, all of its [`Effect`]s come out. Nothing here reads a clock,
//! a file, the environment or a random number; nothing blocks; nothing an input contains can make it panic.
//! Replaying the same inputs over an empty [`Core`] gives the same state, which is what the journal relies on.
//!
//! Not known here: payloads, transcripts, sockets, how a process is watched, how a machine is kept awake.

pub mod deadline;
pub mod effect;
pub mod identity;
pub mod input;
pub mod settings;
pub mod signal;
pub mod time;
pub mod view;

pub use deadline::DeadlineKind;
pub use effect::Effect;
pub use identity::{AgentKind, DeliveryId, Incarnation, ProcessRef, SessionKey, TurnId};
pub use input::{Input, InputBody};
pub use settings::Settings;
pub use signal::{Signal, SignalBody};
pub use time::{Boot, BootId, Mono, Now, Wall};
