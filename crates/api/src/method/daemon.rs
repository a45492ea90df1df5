//! The daemon itself: handshake, verdict, health.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::Scope;
use crate::time::Time;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitializeParams {
    /// [`crate::rpc::PROTOCOL`] of the caller.
    pub protocol: u32,
    /// The caller's name and version, for logs.
    pub client: String,
    /// The secret of the capability file that `install --mcp` wrote: all reads, and the four writes of the MCP control
    /// server if that file allows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// An MCP provider's name: this connection reaches the sessions and holds of that name, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Initialized {
    pub protocol: u32,
    /// The daemon's version.
    pub version: String,
    /// What it can do beyond the first version, by name, each with its own version.
    pub capabilities: BTreeMap<String, u32>,
    /// What this caller may do.
    pub scope: Scope,
}

/// The verdict in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// The machine is kept awake by an inhibitor that is really held; `null`: not known.
    pub awake: Option<bool>,
    pub why: String,
    /// For programs: `demand`, `no_demand`, `off`, `latched`, `refused`, `unknown`; more may come.
    pub code: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub version: String,
    pub protocol: u32,
    pub pid: u32,
    pub started_at: Time,
    pub uptime_s: u64,
    pub place: PlacePaths,
    pub watch: WatchCoverage,
    pub journal: JournalState,
    /// Everything that is counted, by dotted name.
    pub counters: BTreeMap<String, u64>,
    /// Events that no adapter knows, by agent.
    pub unknown_events: BTreeMap<String, u64>,
    /// Payloads and records that are not what their agent sends, by agent.
    pub malformed: BTreeMap<String, u64>,
    /// When the last hook of each agent came, since the daemon started.
    #[serde(default)]
    pub heard: BTreeMap<String, Time>,
    /// Why the configuration file is not in force; `null`: it is.
    #[serde(default)]
    pub config_error: Option<String>,
}

/// Where this instance lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacePaths {
    pub config: String,
    pub state: String,
    pub run: String,
    /// Named by `--home`: its own power defaults, machine scope for every process of the user.
    pub private: bool,
}

/// Exit watches over live sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WatchCoverage {
    pub live: u64,
    pub watched: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JournalState {
    pub seq: u64,
    pub size_bytes: u64,
}

/// What a graceful stop leaves behind, one sentence each: the sessions that still run. Holds are kept for the next daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    pub left: Vec<String>,
}

/// How a daemon is to be followed by another one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RestartParams {
    /// The successor's program, an absolute path; absent: the daemon's own, possibly replaced meanwhile.
    #[serde(default)]
    pub program: Option<String>,
    /// A datagram socket that is told `READY=1` when the successor listens.
    #[serde(default)]
    pub notify: Option<String>,
}

/// The daemon becomes its successor: the pid stays, this connection ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarting {
    pub pid: u32,
}

/// The checks that only the daemon can make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable, lower case with dashes, e.g. `inhibitor`.
    pub name: String,
    pub level: CheckLevel,
    pub detail: String,
    /// What to do about it.
    #[serde(default)]
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckLevel {
    Ok,
    Unknown,
    Warn,
    Fail,
}
