//! Agents' hooks on this machine: find the agents, show what would change, back up, write, verify, undo, and say what
//! is there. What a file's new text is, is decided by `watchkeeper_agents::install`; here are only files.
//!
//! The order of use: [`plan`] or [`plan_uninstall`] → show [`Plan`] (its `diff`s and notes) → ask → [`apply`] → show
//! [`Report`]. Everything blocks on the disk and on nothing else.
//!
//! Not known here: arguments, terminals, the daemon.

mod capability;
mod context;
mod detect;
mod error;
mod plan;
mod receipt;
mod status;
mod system;
mod target;
mod write;

pub(crate) use capability::CapabilityPlan;
pub(crate) use context::Context;
#[cfg(test)]
pub(crate) use context::ContextError;
pub(crate) use detect::{FoundAgent, find_agents};
pub(crate) use error::InstallError;
#[cfg(test)]
pub(crate) use plan::FilePlan;
pub(crate) use plan::{Action, Change, Plan, Report, apply, plan, plan_uninstall};
pub(crate) use status::{AgentStatus, HooksState, status};

#[cfg(test)]
mod tests;
