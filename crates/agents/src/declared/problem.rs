//! What can be wrong with an adapter file, in words that name the place, what is allowed and what was meant.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Counts from 1; `None` when the whole file is meant.
    pub line: Option<usize>,
    /// The key with the tables around it (`hooks.session`); empty when the whole file is meant.
    pub key: String,
    pub kind: ProblemKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemKind {
    TooLarge {
        bytes: usize,
        limit: usize,
    },
    /// Not TOML.
    Syntax {
        message: String,
    },
    UnknownKey {
        allowed: &'static [&'static str],
        nearest: Option<&'static str>,
    },
    /// The key must be there; what it says.
    Missing {
        what: &'static str,
    },
    BadValue {
        /// Cut to one short line.
        given: String,
        expected: String,
        nearest: Option<&'static str>,
    },
    TooMany {
        limit: usize,
    },
    /// A rule that never holds, because an earlier one of the same event always does.
    Unreachable,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        let meant = |f: &mut fmt::Formatter<'_>, nearest: &Option<&str>| match nearest {
            Some(nearest) => write!(f, "; did you mean '{nearest}'?"),
            None => Ok(()),
        };
        let key = &self.key;
        match &self.kind {
            ProblemKind::TooLarge { bytes, limit } => write!(f, "{bytes} bytes, more than {limit}"),
            ProblemKind::Syntax { message } => write!(f, "not TOML: {message}"),
            ProblemKind::UnknownKey { allowed, nearest } => {
                write!(f, "unknown key '{key}'; allowed here are {}", allowed.join(", "))?;
                meant(f, nearest)
            }
            ProblemKind::Missing { what } => write!(f, "'{key}' is missing: {what}"),
            ProblemKind::BadValue { given, expected, nearest } => {
                write!(f, "'{key}' cannot be {given}; it takes {expected}")?;
                meant(f, nearest)
            }
            ProblemKind::TooMany { limit } => write!(f, "'{key}' has more than {limit} entries"),
            ProblemKind::Unreachable => {
                write!(f, "'{key}' never holds: an earlier entry of the same event has no condition")
            }
        }
    }
}
