//! What an installer does to an agent's configuration, as text to text: merge Watchkeeper's hooks in, take them out
//! again, say what is there. Bytes that somebody else wrote stay as they are; a file that cannot be read is refused.
//!
//! Pure: reading, backing up, writing and undoing belong to the command line.

mod command;
mod hooks_file;
mod jsonc;
mod mcp;
mod own_file;
mod sha256;
mod switch;

use std::{
    ffi::OsStr,
    fmt,
    path::{Path, PathBuf},
};

use watchkeeper_core::AgentKind;

pub use command::{HOOK_PROGRAM, Instance, Shell, Timeouts, Wiring, is_ours};
pub(crate) use hooks_file::{CLOSING_S, HookEvent, HooksFile, Nesting, OffSwitch, RunsIn, TimeoutUnit, Wait};
pub use mcp::McpCommand;
pub(crate) use mcp::{JsonServers, SwitchAndServers};
pub(crate) use own_file::OwnFile;
pub(crate) use sha256::hex_digest;
pub(crate) use switch::{FeatureSwitch, KeyedState, states};

/// Largest configuration file that is edited, in bytes; a larger one is refused.
pub const FILE_MAX_BYTES: usize = jsonc::FILE_MAX_BYTES;

/// How one agent is wired up.
#[derive(Debug)]
pub struct Installer {
    pub agent: AgentKind,
    /// Where the agent keeps its configuration.
    pub home: Home,
    /// Names of its executable on PATH, without an extension.
    pub programs: &'static [&'static str],
    /// The files to edit, in the order in which they are written.
    pub files: &'static [&'static dyn ConfigFile],
    /// What the person must know beyond the diff.
    pub notes: &'static [&'static str],
    /// How the agent decides whether it runs the hooks that stand in its files; `None` for one without a trust step.
    pub trust: Option<TrustStep>,
}

/// Which hooks the agent runs. Given the absolute path of its hooks file as the agent spells it, and the texts of its
/// files in the order of [`Installer::files`].
pub type TrustStep = fn(hooks_path: &str, texts: &[Option<&str>]) -> Trust;

/// An agent's configuration folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home {
    /// The environment variable that moves it.
    pub variable: &'static str,
    /// The folder below what the variable names; empty when it names the folder itself.
    pub below: &'static str,
    /// Its place below the user's home folder otherwise.
    pub default: &'static str,
}

impl Home {
    /// The folder of a user with this home folder; `moved`: the value of the variable, which moves nothing when it is empty.
    #[must_use]
    pub fn resolve(&self, user_home: &Path, moved: Option<&OsStr>) -> PathBuf {
        match moved.filter(|moved| !moved.is_empty()) {
            Some(moved) if self.below.is_empty() => user_home.join(moved),
            Some(moved) => user_home.join(moved).join(self.below),
            None => user_home.join(self.default),
        }
    }
}

/// One file an installer edits.
pub trait ConfigFile: fmt::Debug + Sync {
    /// Relative to the agent's [`Home`], with `/` between segments.
    fn path(&self) -> &'static str;
    /// Where it is while nothing moves the agent's [`Home`], relative to the user's home folder; `None`: in that
    /// [`Home`] then, too.
    fn default_path(&self) -> Option<&'static str> {
        None
    }
    /// Whether the MCP server is registered there.
    fn mcp(&self) -> McpPlace {
        McpPlace::No
    }
    /// Merges Watchkeeper's entries in. Idempotent; replaces entries of older versions; an absent or blank file is
    /// an empty one.
    ///
    /// # Errors
    /// A [`Refusal`] when the text cannot be edited without guessing.
    fn install(&self, current: Option<&str>, wiring: &Wiring) -> Result<Edit, Refusal>;
    /// Takes Watchkeeper's entries out, and nothing else. `original`: what the file was without them when they were
    /// last written, if a receipt says so; it decides what becomes of containers that are empty afterwards.
    ///
    /// # Errors
    /// A [`Refusal`] when the text has our entries but cannot be edited without guessing.
    fn remove(&self, current: Option<&str>, original: Option<Original<'_>>) -> Result<Edit, Refusal>;
    /// What is there of Watchkeeper, compared with what [`Self::install`] would write.
    ///
    /// # Errors
    /// A [`Refusal`] when the text cannot be read.
    fn inspect(&self, current: Option<&str>, wiring: &Wiring) -> Result<Inspection, Refusal>;
}

/// What a file is to the MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpPlace {
    No,
    /// It is registered there, beside what hooks need.
    Beside,
    /// It is registered there; the file is nothing to somebody who did not ask for it.
    Only,
}

/// What is to become of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// It already is as it should be.
    Keep,
    /// Its new text.
    Write(String),
    /// It held nothing but ours.
    Delete,
}

/// A file without Watchkeeper's entries, as a receipt recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Original<'a> {
    Absent,
    Text(&'a str),
}

impl<'a> Original<'a> {
    pub(crate) const fn text(self) -> Option<&'a str> {
        match self {
            Self::Absent => None,
            Self::Text(text) => Some(text),
        }
    }
}

/// What stands in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Our entries that are exactly as they should be.
    pub current: Vec<String>,
    /// Events without an entry of ours.
    pub missing: Vec<String>,
    /// Our entries that another version or another instance wrote, or that stand where they do not work.
    pub outdated: Vec<String>,
    /// What in this file keeps hooks from running, each as a clause.
    pub disabled: Vec<String>,
    /// Our entries that the person switched off one by one, by their events.
    pub switched_off: Vec<String>,
}

impl Inspection {
    /// Nothing to write.
    #[must_use]
    pub const fn is_current(&self) -> bool {
        self.missing.is_empty() && self.outdated.is_empty()
    }

    /// Nothing of ours at all.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        self.current.is_empty() && self.outdated.is_empty()
    }
}

/// Whether an agent with a trust step runs our hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    pub trusted: Vec<String>,
    /// Events whose hook the agent passes over until the person reviews it.
    pub untrusted: Vec<String>,
    /// Events whose hook was reviewed in another form, so that the agent asks again.
    pub changed: Vec<String>,
    /// Events whose hook the person switched off.
    pub switched_off: Vec<String>,
}

/// Why a file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is not UTF-8 text (byte {at})")]
    NotUtf8 { at: usize },
    #[error("it has {bytes} bytes, more than the {max_bytes} that are edited")]
    TooLarge { bytes: usize, max_bytes: usize },
    #[error("it is not valid {format}: line {line}, column {column}: {why}")]
    Broken { format: &'static str, line: usize, column: usize, why: String },
    #[error("'{key}' in it is {found}, not {wanted}")]
    WrongType { key: String, found: &'static str, wanted: &'static str },
    #[error("somebody else wrote it")]
    Foreign,
    #[error("the edit would not leave everything else as it was")]
    Unfaithful,
}

impl Refusal {
    /// The next step for the person.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => "save it as UTF-8, then run the command again",
            Self::TooLarge { .. } => "make it smaller, or add the hooks by hand as docs/install.md shows",
            Self::Broken { .. } => {
                "mend it there (the agent cannot read it either), then run the command again"
            }
            Self::WrongType { .. } => "correct that value or remove it, then run the command again",
            Self::Foreign => "give it another name if you need it, then run the command again",
            Self::Unfaithful => "add the hooks by hand as docs/install.md shows, and report the file's shape",
        }
    }
}

/// A file's bytes as text.
///
/// # Errors
/// Bytes that are not UTF-8, or too many of them.
pub fn decode(bytes: &[u8]) -> Result<&str, Refusal> {
    if bytes.len() > FILE_MAX_BYTES {
        return Err(Refusal::TooLarge { bytes: bytes.len(), max_bytes: FILE_MAX_BYTES });
    }
    std::str::from_utf8(bytes).map_err(|error| Refusal::NotUtf8 { at: error.valid_up_to() })
}

/// The built-in installers.
pub static ALL: [&Installer; 6] = [
    &crate::claude::install::INSTALLER,
    &crate::codex::install::INSTALLER,
    &crate::copilot::install::INSTALLER,
    &crate::opencode::install::INSTALLER,
    &crate::gemini::install::INSTALLER,
    &crate::qwen::install::INSTALLER,
];

/// The installer of one agent, `None` where Watchkeeper has none.
#[must_use]
pub fn installer(agent: AgentKind) -> Option<&'static Installer> {
    ALL.into_iter().find(|installer| installer.agent == agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_where_its_variable_says() {
        let check = |below: &'static str, moved: Option<&str>, folder: &str| {
            let home = Home { variable: "V", below, default: ".agent" };
            assert_eq!(home.resolve(Path::new("/u"), moved.map(OsStr::new)), Path::new(folder));
        };
        check("", None, "/u/.agent");
        check("", Some(""), "/u/.agent");
        check("", Some("/m"), "/m");
        check("", Some("m"), "/u/m");
        check("below", Some("/m"), "/m/below");
    }
}
