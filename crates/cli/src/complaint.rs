//! The one way in which a command fails: what failed, why, what to do, in that order.

use std::{error::Error, fmt::Write as _, io};

use watchkeeper_api::{ClientError, ErrorCode};
use watchkeeper_daemon::config::ConfigError;

use crate::{
    exit,
    output::{Terminal, harmless, style},
};

/// Causes shown of one chain; a longer chain is cut.
const CAUSES_MAX: usize = 8;

/// A failed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// What failed: "cannot show the status".
    what: String,
    /// From the nearest cause to the deepest.
    why: Vec<String>,
    /// What the person can do, a sentence each.
    todo: Vec<String>,
    pub(crate) exit: u8,
    /// Nothing to say: whoever read the output left.
    quiet: bool,
}

impl Complaint {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), why: Vec::new(), todo: Vec::new(), exit: exit::FAILED, quiet: false }
    }

    pub(crate) fn because(mut self, why: impl Into<String>) -> Self {
        self.why.push(why.into());
        self
    }

    pub(crate) fn caused_by(mut self, error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        for _ in 0..CAUSES_MAX {
            let Some(error) = next else { break };
            next = error.source();
            let text = error.to_string();
            // A transparent error repeats its source's words.
            if self.why.last() != Some(&text) {
                self.why.push(text);
            }
        }
        self
    }

    pub(crate) fn todo(mut self, todo: impl Into<String>) -> Self {
        self.todo.push(todo.into());
        self
    }

    pub(crate) const fn exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// The output cannot be written. A reader that left (`| head`) is no failure.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { quiet: true, exit: exit::SUCCESS, ..Self::new("") };
        }
        Self::new("cannot write the output").caused_by(error)
    }

    /// What the daemon, or the way to it, answered.
    pub(crate) fn client(what: &str, error: &ClientError) -> Self {
        let complaint = Self::new(what).caused_by(error);
        match error {
            ClientError::Unreachable { .. } => {
                complaint.exit(exit::UNREACHABLE).todo("Start it with `watchkeeper up`.")
            }
            ClientError::Untrusted { .. } => complaint
                .exit(exit::UNREACHABLE)
                .todo("See who owns that place; remove it, or name another instance with `--home DIR`."),
            ClientError::TimedOut { .. } | ClientError::Closed { .. } | ClientError::Broken { .. } => {
                complaint
                    .exit(exit::UNREACHABLE)
                    .todo("Look at `watchkeeper doctor`, then `watchkeeper daemon restart`.")
            }
            ClientError::Protocol { .. } => complaint.todo(
                "If the daemon is of another version than this program, run `watchkeeper daemon restart`.",
            ),
            ClientError::Remote { failure, .. } => complaint.remote(failure),
        }
    }

    fn remote(mut self, failure: &watchkeeper_api::Failure) -> Self {
        if !failure.candidates.is_empty() {
            self.why.push(format!("it could be {}", failure.candidates.join(", ")));
        }
        match (&failure.hint, failure.code) {
            (Some(hint), _) => self.todo(hint),
            (None, ErrorCode::Forbidden) => self.todo(
                "Programs inside an agent see only their own session; run this in a terminal of your own.",
            ),
            (None, ErrorCode::UnknownMethod) => {
                self.todo("The daemon is older than this program; run `watchkeeper daemon restart`.")
            }
            (None, ErrorCode::UnknownSetting | ErrorCode::BadValue) => self.todo(LIST_SETTINGS),
            (None, ErrorCode::ShuttingDown | ErrorCode::Busy) => self.todo("Try again in a moment."),
            (
                None,
                ErrorCode::Parse
                | ErrorCode::InvalidRequest
                | ErrorCode::InvalidParams
                | ErrorCode::Internal
                | ErrorCode::NotInitialized
                | ErrorCode::UnsupportedProtocol
                | ErrorCode::FrameTooLong
                | ErrorCode::UnknownSession
                | ErrorCode::AmbiguousSession
                | ErrorCode::UnknownHold
                | ErrorCode::Refused
                | ErrorCode::Other(_),
            ) => self,
        }
    }

    pub(crate) fn config(what: impl Into<String>, error: &ConfigError) -> Self {
        let complaint = Self::new(what).caused_by(error);
        match error {
            ConfigError::Rejected(_) => complaint.todo(LIST_SETTINGS),
            ConfigError::Syntax { .. } | ConfigError::Invalid { .. } => {
                complaint.todo("Mend it with `watchkeeper config edit`.")
            }
            ConfigError::Raced { .. } => complaint.todo("Run the command again."),
            ConfigError::Read { .. } | ConfigError::TooLarge { .. } | ConfigError::Write { .. } => complaint,
        }
    }

    /// For people. Ids and names in it are anybody's words: none of them may speak to the terminal.
    pub(crate) fn text(&self, terminal: &Terminal) -> String {
        if self.quiet {
            return String::new();
        }
        let mut text = format!("{} {}\n", terminal.paint(style::BAD, "error:"), harmless(&self.what));
        let mut add = |label: &str, lines: &[String]| {
            for (at, line) in lines.iter().enumerate() {
                let label = if at == 0 { label } else { "" };
                // Writing to a string cannot fail.
                let (label, line) = (terminal.paint(style::DIM, &format!("{label:<4}")), harmless(line));
                _ = writeln!(text, "  {label} {line}");
            }
        };
        add("why:", &self.why);
        add("do:", &self.todo);
        text
    }

    /// For programs, one line.
    pub(crate) fn json(&self) -> String {
        if self.quiet { String::new() } else { format!("{}\n", self.value()) }
    }

    /// For programs.
    pub(crate) fn value(&self) -> serde_json::Value {
        let error =
            serde_json::json!({"what": self.what, "why": self.why, "do": self.todo, "exit": self.exit});
        serde_json::json!({"version": 1, "error": error})
    }

    /// For people who read it in another program.
    pub(crate) fn plain(&self) -> String {
        self.text(&Terminal::PLAIN).trim_end().to_owned()
    }
}

const LIST_SETTINGS: &str = "`watchkeeper config schema` lists every setting with what it takes.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_speaks_to_the_terminal_through_it() {
        let evil = "h\u{1b}]0;title\u{7}\u{9b}2J\u{202e}x\r";
        let failure = watchkeeper_api::Failure {
            candidates: vec![evil.to_owned()],
            ..watchkeeper_api::Failure::new(ErrorCode::UnknownHold, evil)
        };
        let complaint = Complaint::new(format!("cannot release {evil}")).because(evil).remote(&failure);
        let text = complaint.todo(evil).text(&Terminal::PLAIN);
        assert!(text.contains("h ]0;title"), "{text:?}");
        let speaks = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(speaks), "{text:?}");
        assert_eq!(Complaint::new("a\n  b").text(&Terminal::PLAIN), "error: a\n  b\n");
    }
}
