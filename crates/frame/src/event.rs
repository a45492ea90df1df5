//! What the name of an event says before anybody parses its payload. The spellings of all agents, compared without
//! case and punctuation, so that `SessionStart`, `sessionStart` and `session.start` are one.

/// How an event matters to a daemon that is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventClass {
    /// An agent begins work: starts a daemon that is away; kept when the spool is full.
    Starts,
    /// A turn or a session ends: kept when the spool is full.
    Ends,
    /// Anything else, unknown and empty names included: starts nothing, leaves first when the spool is full.
    Ordinary,
}

/// Seen in the recordings of Claude Code 2.1, Codex 0.171, Copilot CLI 1.0, OpenCode 1.18, Gemini CLI 0.61 and Qwen
/// Code 0.24, and as Cursor documents them. A shell command typed after `!` and a resumed background task reach a daemon by the same names.
const STARTS: [&[u8]; 8] = [
    b"sessionstart",
    b"userpromptsubmit",
    b"userpromptsubmitted",
    b"beforesubmitprompt",
    b"beforeagent",
    b"sessioncreated",
    b"chatmessage",
    b"sessionstatus",
];

const ENDS: [&[u8]; 12] = [
    b"stop",
    b"stopfailure",
    b"agentstop",
    b"afteragent",
    b"interrupt",
    b"erroroccurred",
    b"sessionend",
    b"sessionidle",
    b"sessionerror",
    b"sessiondeleted",
    b"dispose",
    b"agentturncomplete",
];

impl EventClass {
    /// Classifies the name given on the hook's command line.
    #[must_use]
    pub fn of(event: &[u8]) -> Self {
        if STARTS.iter().any(|known| same_word(event, known)) {
            Self::Starts
        } else if ENDS.iter().any(|known| same_word(event, known)) {
            Self::Ends
        } else {
            Self::Ordinary
        }
    }

    /// Whether a full spool keeps it before ordinary events.
    #[must_use]
    pub const fn is_kept(self) -> bool {
        match self {
            Self::Starts | Self::Ends => true,
            Self::Ordinary => false,
        }
    }
}

fn same_word(given: &[u8], known: &[u8]) -> bool {
    let letters = given.iter().filter(|b| b.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase);
    letters.eq(known.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], expected: EventClass) {
        for name in names {
            assert_eq!(EventClass::of(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn names_of_all_agents() {
        check(
            &[
                "SessionStart",
                "sessionStart",
                "UserPromptSubmit",
                "userPromptSubmitted",
                "BeforeAgent",
                "session.created",
            ],
            EventClass::Starts,
        );
        check(
            &[
                "Stop",
                "StopFailure",
                "agentStop",
                "AfterAgent",
                "SessionEnd",
                "sessionEnd",
                "session.idle",
                "Interrupt",
            ],
            EventClass::Ends,
        );
        check(
            &[
                "",
                "PreToolUse",
                "SubagentStop",
                "SubagentStart",
                "Notification",
                "PermissionRequest",
                "stops",
                "-",
                "ſtop",
            ],
            EventClass::Ordinary,
        );
    }
}
