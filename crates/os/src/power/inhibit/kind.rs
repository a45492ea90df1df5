//! The words of the hold, the same on every system.

use std::fmt;

/// Under this name the locks are listed by the system.
pub const WHO: &str = "Watchkeeper";

/// The reason that is shown beside it.
pub const WHY: &str = "A coding agent is working";

/// What a lock prevents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Sleep because nobody touches the machine.
    Idle,
    /// The system's own reaction to a closed lid.
    LidSwitch,
    /// Any sleep, also one that a person asks for. Taken only if the person chose it.
    Sleep,
}

/// Every kind.
pub const ALL_KINDS: [Kind; 3] = [Kind::Idle, Kind::LidSwitch, Kind::Sleep];

impl Kind {
    /// The word of logind, used in output on every system.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::LidSwitch => "handle-lid-switch",
            Self::Sleep => "sleep",
        }
    }

    /// The kind of a word, `None` for kinds that are not ours (`shutdown`, `handle-power-key`).
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        ALL_KINDS.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A lock that was not given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The system knows this lock and denies it to us.
    #[error("{why}")]
    Denied {
        why: String,
        /// What a person can do about it.
        fix: String,
    },
    /// There is no such lock on this machine.
    #[error("{why}")]
    Unsupported { why: String },
    /// The system did not answer as it should; worth another try.
    #[error("{why}")]
    Failed { why: String },
}

impl Refused {
    /// What a person can do about it, when something can be done.
    #[must_use]
    pub fn fix(&self) -> Option<&str> {
        match self {
            Self::Denied { fix, .. } => Some(fix),
            Self::Unsupported { .. } | Self::Failed { .. } => None,
        }
    }
}

/// The locks as the system lists them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// Ours: by name, pid and mode.
    pub ours: Vec<Kind>,
    /// What the system says is blocked by anybody (`BlockInhibited` of logind).
    pub blocked: Vec<String>,
    /// Blocking locks of others, at most 64; more are left out.
    pub others: Vec<OtherLock>,
}

/// A blocking lock of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherLock {
    /// Kinds in the system's own words.
    pub what: Vec<String>,
    pub who: String,
    pub why: String,
    pub uid: u32,
    pub pid: u32,
}

/// Something happened to the service behind the locks: look whether they still stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The service (logind) went; its locks may be restored by its next life, or not.
    ServiceGone,
    /// The service has a new life.
    ServiceBack,
    /// The way to the service (the bus) is lost; it is tried again.
    BusLost,
    /// The way is there again.
    BusBack,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in ALL_KINDS {
            assert_eq!(Kind::of_name(kind.name()), Some(kind));
        }
        assert_eq!(Kind::of_name("shutdown"), None);
    }
}
