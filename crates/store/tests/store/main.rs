//! The journal as its users see it, on real files and with real processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

mod common;
mod crash;
mod damage;
mod failures;
mod journal;
mod retention;
