//! Why one file is left alone, and what to do about it.

use std::{io, path::PathBuf};

use watchkeeper_agents::install::Refusal;

/// Every variant leaves the file as it was, except [`Self::NotVerified`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error("cannot {what} {path}")]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{path} is left alone: {refusal}")]
    Refused { path: PathBuf, refusal: Refusal },
    #[error("{path} is left alone: it is not a regular file")]
    NotAFile { path: PathBuf },
    #[error("{path} is left alone: its symbolic links do not end")]
    LinkLoop { path: PathBuf },
    #[error("{path} is left alone: it is read-only")]
    ReadOnly { path: PathBuf },
    #[error("{path} is left alone: its folder {folder} is read-only")]
    ReadOnlyFolder { path: PathBuf, folder: PathBuf },
    #[error("{path} is left alone: somebody changed it after the changes were shown")]
    ChangedMeanwhile { path: PathBuf },
    #[error("{path} is left alone: it belongs to another user or group, and that could not be kept")]
    Owner { path: PathBuf, source: io::Error },
    #[error("{path} was written, but reading it back gave something else")]
    NotVerified { path: PathBuf },
    #[error("{path} is left alone: another file of the same agent was refused")]
    WithOther { path: PathBuf },
    #[error("another installation is at work (its lock is {path})")]
    Busy { path: PathBuf },
}

impl InstallError {
    /// The next step for the person.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::Io { .. } => "see the cause, then run the command again".to_owned(),
            Self::Refused { refusal, .. } => refusal.advice().to_owned(),
            Self::NotAFile { .. } | Self::LinkLoop { .. } => {
                "put a regular file there, or remove it, then run the command again".to_owned()
            }
            Self::ReadOnly { path } => {
                format!("if it may change, `chmod u+w {}`; then run the command again", path.display())
            }
            Self::ReadOnlyFolder { folder, .. } => {
                format!("if it may change, `chmod u+w {}`; then run the command again", folder.display())
            }
            Self::ChangedMeanwhile { .. } => {
                "run the command again to see the changes to the file as it is now".to_owned()
            }
            Self::Owner { .. } => "run the command as the file's owner".to_owned(),
            Self::NotVerified { .. } => {
                "compare it with the backup named above; something else writes it too".to_owned()
            }
            Self::WithOther { .. } => "mend the other file, then run the command again".to_owned(),
            Self::Busy { .. } => "wait for it to end, then run the command again".to_owned(),
        }
    }

    pub(super) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
