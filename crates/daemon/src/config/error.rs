//! What can be wrong with a configuration, in words that name the key and the nearest valid one.

use std::{fmt, io, path::PathBuf};

/// A configuration that cannot be read, understood or changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    /// Line and column count from 1.
    #[error("{}, line {line}, column {column}: {message}", path.display())]
    Syntax { path: PathBuf, line: usize, column: usize, message: String },
    /// All problems of a file or of the environment, in their order; never empty.
    #[error("{origin}: {}", listed(problems))]
    Invalid { origin: String, problems: Vec<Problem> },
    /// A key or value given to `set` or `unset`.
    #[error("{0}")]
    Rejected(Problem),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Somebody wrote the file between our reading and our writing; nothing was changed.
    #[error("{} was changed by someone else at the same time", path.display())]
    Raced { path: PathBuf },
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key as written, or the name of the environment variable.
    pub key: String,
    /// Counts from 1; `None` outside of a file.
    pub line: Option<usize>,
    pub kind: ProblemKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemKind {
    Unknown {
        nearest: Option<&'static str>,
    },
    BadValue {
        given: String,
        /// What it takes, e.g. `off, busy or on`.
        expected: String,
        /// What is wrong with it or what was meant.
        note: Option<String>,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match &self.kind {
            ProblemKind::Unknown { nearest: Some(nearest) } => {
                write!(f, "unknown setting '{}'; did you mean '{nearest}'?", self.key)
            }
            ProblemKind::Unknown { nearest: None } => write!(f, "unknown setting '{}'", self.key),
            ProblemKind::BadValue { given, expected, note } => {
                write!(f, "'{}' cannot be '{given}'; it takes {expected}", self.key)?;
                note.as_ref().map_or(Ok(()), |note| write!(f, " ({note})"))
            }
        }
    }
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}
