//! The answers that probes give. "Unknown" is one of them and authorises nothing.

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe<T> {
    /// It is there, and this is it.
    Yes(T),
    /// It is known not to be there (an exited process that was not reaped yet counts as not there).
    No,
    /// It could not be found out.
    Unknown {
        /// What stood in the way, for people.
        why: String,
    },
}

impl<T> Probe<T> {
    /// The found value, when there is one.
    pub fn yes(self) -> Option<T> {
        match self {
            Self::Yes(found) => Some(found),
            Self::No | Self::Unknown { .. } => None,
        }
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }
}

/// Whether the process named by a reference is still the one that its pid leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    /// Alive, and that process.
    Same,
    /// That process has exited; its pid is free or another's.
    Different,
    /// Cannot be told; authorises neither a signal nor a delete.
    Unknown,
}

/// What the kernel says a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    Running,
    Sleeping,
    /// In an uninterruptible wait, mostly for a disk.
    DiskWait,
    /// Stopped by a job-control signal.
    Stopped,
    /// Stopped by a debugger.
    Traced,
    /// Exited, not reaped.
    Exited,
    Unknown,
}

impl RunState {
    /// Whether it cannot work until someone continues it.
    #[must_use]
    pub fn is_stopped(self) -> bool {
        match self {
            Self::Stopped | Self::Traced => true,
            Self::Running | Self::Sleeping | Self::DiskWait | Self::Exited | Self::Unknown => false,
        }
    }
}
