//! Systems whose locks end with their process whatever is done: a successor takes its own.

use std::{fs::File, process::Command};

use super::Held;

/// Nothing; the locks given to it are released.
#[derive(Debug, Default)]
pub struct HandOver {
    companion: Option<File>,
}

/// Handed locks that cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    #[error("this system hands no locks over, but some were described")]
    Malformed,
    #[error("on this system no program takes over another one's locks")]
    Unsupported,
}

/// Nothing: no exec follows here.
#[derive(Debug)]
#[must_use = "dropped, it does nothing"]
pub struct EndsAtOnce;

impl EndsAtOnce {
    /// Does nothing.
    pub fn begin() -> Self {
        Self
    }
}

impl HandOver {
    /// Releases the locks.
    #[must_use]
    pub fn new(held: impl IntoIterator<Item = Held>) -> Self {
        held.into_iter().for_each(drop);
        Self::default()
    }

    /// Keeps a file, for the caller itself: nobody else will get it.
    #[must_use]
    pub fn with_companion(self, file: File) -> Self {
        Self { companion: Some(file) }
    }

    /// The file that was kept.
    pub fn take_companion(&mut self) -> Option<File> {
        self.companion.take()
    }

    /// An empty description.
    ///
    /// # Errors
    /// Never.
    pub fn keep_over_exec(&self) -> Result<String, HandOverError> {
        Ok(String::new())
    }

    /// Does nothing: the caller stays what it is.
    #[must_use]
    pub fn exec(self, _command: impl FnOnce(&str) -> Command) -> (Self, HandOverError) {
        (self, HandOverError::Unsupported)
    }

    /// Always: there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Accepts the empty description.
    ///
    /// # Errors
    /// When anything is described.
    pub fn from_text(text: &str) -> Result<Self, HandOverError> {
        if text.is_empty() { Ok(Self::default()) } else { Err(HandOverError::Malformed) }
    }

    /// No locks.
    #[must_use]
    pub fn into_held(self) -> Vec<Held> {
        Vec::new()
    }
}
