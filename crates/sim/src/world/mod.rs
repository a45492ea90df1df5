//! A deterministic world around the real core: clocks, agents, hooks that come late, twice or never, exits, crashes at any
//! effect, sleep. One seed makes one schedule; a schedule replays to the letter; a failing one is shrunk and printed.
//!
//! `schedule` says what can happen, `agents` what agents then say, `shell` is the daemon in small, `oracle` what must hold.

mod agents;
mod campaign;
mod coverage;
mod dice;
mod oracle;
mod schedule;
mod shell;
mod shrink;

pub use campaign::{Args, run};
pub(crate) use dice::Dice;

#[cfg(test)]
mod tests;
