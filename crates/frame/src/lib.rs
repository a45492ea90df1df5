//! The frame between `watchkeeper-hook` and the daemon, the spool's file format, and where both are found.
//!
//! Owns: the bytes on the hook socket ([`wire`], [`reply`]), the bytes and names in the spool ([`spool`], [`ancestry`]), the
//! rule which events start a daemon ([`event`]), and the paths of an instance (`place`). Must not know: agents'
//! payloads, sessions, the journal. Everything that decodes is total: any bytes give a value or an error, never a
//! panic, and never an allocation larger than what was announced *and* is allowed.
//!
//! Without the feature `std` only the parts that work on slices are built.

#![cfg_attr(not(feature = "std"), no_std)]

pub mod ancestry;
mod decimal;
pub mod event;
#[cfg(feature = "std")]
pub mod place;
pub mod place_rules;
pub mod reply;
#[cfg(feature = "std")]
pub mod request;
pub mod spool;
pub mod wire;

#[cfg(feature = "std")]
pub use place::{Place, PlaceError};
pub use reply::{Refusal, Reply, ReplyError};
#[cfg(feature = "std")]
pub use request::{Request, RequestDecoder};
pub use wire::{Flags, FrameError, Head, RequestRef};

#[cfg(test)]
mod generator;
