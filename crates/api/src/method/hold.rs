//! Manual leases: an owner, a reason, a maximum.

use serde::{Deserialize, Serialize};

use crate::time::Time;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldTakeParams {
    /// Renews the hold of this id; absent: a new one.
    #[serde(default)]
    pub id: Option<String>,
    /// Who wants it, for `status`; a person's name or a program's.
    pub owner: String,
    pub reason: String,
    /// Seconds; cut to the setting `lease_max`, which is also what counts when absent.
    #[serde(default)]
    pub length_s: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub id: String,
    pub owner: String,
    pub reason: String,
    pub since: Time,
    pub expires_at: Time,
    /// The granted length in seconds.
    pub length_s: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldReleaseParams {
    /// The id or an unambiguous beginning of it; absent: the only one there is.
    #[serde(default)]
    pub id: Option<String>,
    /// Every hold there is.
    #[serde(default)]
    pub all: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    /// The ids of what was let go; empty when there was nothing.
    pub ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    pub holds: Vec<Hold>,
}
