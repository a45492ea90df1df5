//! What the MCP servers and the daemon must agree about: the capability that a person's `install` hands out, the names
//! of providers, the settings that a capability may change. Pure; nothing here opens a file or a connection.

use serde::{Deserialize, Serialize};

/// Below the state folder: written by `install --mcp`, readable by its owner only.
pub const CAPABILITY_FILE: &str = "mcp/capability.json";
/// Longest capability file that is looked at; a longer one is none.
pub const CAPABILITY_BYTES_MAX: usize = 4096;
/// Hexadecimal digits of a secret: 128 bits.
const SECRET_DIGITS: usize = 32;
/// Longest name of a provider.
pub const PROVIDER_BYTES_MAX: usize = 64;
/// Holds that one provider may have at a time; a further one is refused, so that there is room for a person's.
pub const PROVIDER_HOLDS_MAX: usize = 32;
/// Holds that all providers may have together at a time: under as many names as one likes, half of the daemon's room stays
/// for a person's.
pub const PROVIDERS_HOLDS_MAX: usize = 128;

/// The settings that a capability with writes may change. A new setting is not among them until it is named here: who
/// may approve, what leaves the machine, and what is recorded of prompts stay with the person.
pub const SETTABLE: [&str; 11] = [
    "keep_awake",
    "inactivity_timeout",
    "work_max",
    "background_quiet",
    "wake_grace",
    "post_stop_delay",
    "waiting_delay",
    "cleanup_delay",
    "lease_max",
    "ask_before_sleep",
    "ask_timeout",
];

/// What the control server shows to be more than a program inside an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    version: u32,
    /// Lower-case hexadecimal.
    pub secret: String,
    /// Whether it reaches the four writes, too.
    pub write: bool,
}

/// A capability file that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    #[error("it has more than {CAPABILITY_BYTES_MAX} bytes")]
    TooLong,
    #[error("it is not a capability: {why}")]
    Malformed { why: String },
}

/// A provider's name that cannot be part of a session's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a provider's name has 1 to {PROVIDER_BYTES_MAX} of the characters a-z, A-Z, 0-9, '.', '_' and '-'")]
pub struct ProviderNameError;

impl Capability {
    /// The version of the file.
    const VERSION: u32 = 1;

    #[must_use]
    pub fn new(secret: u128, write: bool) -> Self {
        Self { version: Self::VERSION, secret: format!("{secret:032x}"), write }
    }

    /// The same secret for more, or for less.
    #[must_use]
    pub fn allowing(self, write: bool) -> Self {
        Self { write, ..self }
    }

    /// The file's text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (version, secret, write) = (self.version, &self.secret, self.write);
        format!("{{\"version\":{version},\"secret\":\"{secret}\",\"write\":{write}}}\n")
    }

    /// Reads the file's bytes.
    ///
    /// # Errors
    /// [`CapabilityError`]; a secret of another form than [`Self::new`] makes is refused, so that an empty one never counts.
    pub fn parse(bytes: &[u8]) -> Result<Self, CapabilityError> {
        if bytes.len() > CAPABILITY_BYTES_MAX {
            return Err(CapabilityError::TooLong);
        }
        let malformed = |why: String| CapabilityError::Malformed { why };
        let read: Self = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        if read.version != Self::VERSION {
            return Err(malformed(format!("version {} is not known", read.version)));
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if read.secret.len() != SECRET_DIGITS || !read.secret.bytes().all(is_digit) {
            return Err(malformed("its secret has another form".to_owned()));
        }
        Ok(read)
    }

    /// Whether a caller showed this very secret. Takes the same time whichever digit differs.
    #[must_use]
    pub fn is_shown_by(&self, shown: &str) -> bool {
        let differences =
            self.secret.bytes().zip(shown.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
        self.secret.len() == shown.len() && differences == 0
    }
}

/// Checks a provider's name.
///
/// # Errors
/// [`ProviderNameError`].
pub fn check_provider(name: &str) -> Result<(), ProviderNameError> {
    let well_formed = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if name.is_empty() || name.len() > PROVIDER_BYTES_MAX || !well_formed {
        return Err(ProviderNameError);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        assert_eq!(Capability::parse(text.as_bytes()).is_ok(), expected, "{text}");
    }

    #[test]
    fn only_what_install_writes_is_a_capability() {
        let made = Capability::new(7, true);
        assert_eq!(Capability::parse(made.to_text().as_bytes()), Ok(made.clone()));
        assert!(made.is_shown_by("00000000000000000000000000000007"));
        for other in ["", "7", "00000000000000000000000000000008", "000000000000000000000000000000070"] {
            assert!(!made.is_shown_by(other), "{other}");
        }
        check(r#"{"version":1,"secret":"00000000000000000000000000000007","write":false,"more":1}"#, true);
        check(r#"{"version":2,"secret":"00000000000000000000000000000007","write":false}"#, false);
        check(r#"{"version":1,"secret":"","write":false}"#, false);
        check(r#"{"version":1,"secret":"0000000000000000000000000000000G","write":false}"#, false);
        check("", false);
        check(&format!("{}{}", made.to_text(), " ".repeat(CAPABILITY_BYTES_MAX)), false);
    }

    #[test]
    fn provider_names_fit_into_keys() {
        for good in ["a", "My.Provider-1_x", &"n".repeat(PROVIDER_BYTES_MAX)] {
            assert_eq!(check_provider(good), Ok(()), "{good}");
        }
        for bad in ["", "a b", "a/b", "a:b", "ä", "a\n", &"n".repeat(PROVIDER_BYTES_MAX + 1)] {
            assert_eq!(check_provider(bad), Err(ProviderNameError), "{bad}");
        }
    }
}
