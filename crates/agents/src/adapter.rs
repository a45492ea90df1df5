//! The contract between an agent's adapter and the shell.

use serde_json::Value;
use watchkeeper_core::{
    AgentKind, TurnId, Wall,
    signal::{Facts, SignalBody, Thread},
};

use crate::ancestry::{AncestryRules, Found, ProcessInfo, find};

/// A signal before the shell adds who sent it, when it was received and its delivery id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The agent's session id; `None` when a transcript or state file leaves it to its path.
    pub session: Option<String>,
    pub turn: Option<TurnId>,
    pub thread: Thread,
    /// The record's own wall time where it has one (hooks are stamped by the hook program instead).
    pub at: Option<Wall>,
    pub facts: Facts,
    pub body: SignalBody,
}

/// What came of one payload.
#[derive(Debug, Default)]
pub struct Parsed {
    /// In the order in which the core must see them.
    pub observations: Vec<Observation>,
    /// The agent waits for this hook's output and could be told something.
    pub question: Option<watchkeeper_core::input::HookQuestion>,
    /// Processes that the agent named for started work, by the work's id (bounded by the observations). The shell looks
    /// each up while the work is young, and completes the observation with what it finds.
    pub work_pids: Vec<(String, u32)>,
    /// Names of events, record types and fields that no adapter knows (bounded), for `doctor`.
    pub unknown: Vec<String>,
    /// The payload was not what this agent sends (not JSON, no session id, too deep); why, in a few words.
    pub malformed: Option<String>,
    /// Texts at which the adapter itself failed; they say nothing.
    pub panicked: u32,
    /// For a transcript, the lines that say anything, in order; empty for a hook.
    pub lines: Vec<Line>,
}

/// A line of a transcript that says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line {
    /// Index of its first observation; the others follow, up to the next line's first.
    pub first: usize,
    /// Where it begins in its file, in bytes.
    pub offset: u64,
}

/// Reads the lines appended to one transcript. Its state survives restarts through `save` and `Adapter::transcript`.
pub trait TranscriptReader: std::fmt::Debug + Send {
    /// A cheap look at raw bytes (at most the first few hundred): could this line matter? Lines that cannot are never
    /// parsed, whatever their length.
    fn wants(&self, line: &[u8]) -> bool;
    /// One complete line without its newline. Called for wanted lines only.
    fn line(&mut self, line: &[u8], out: &mut Parsed);
    /// The detector's memory (open calls, current turn) as JSON, bounded.
    fn save(&self) -> Value;
}

/// A look for one session's transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptSearch {
    /// Below the agent's home, with `/` between segments.
    pub folder: &'static str,
    /// So many folders deep below that one its files may be.
    pub depth: usize,
    /// How the name of its file ends. No other session's does.
    pub name_end: String,
}

/// What a state file of the agent says (Claude's session registry).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFile {
    pub observation: Observation,
    /// The process that wrote it; the shell drops the statement unless this process lives with this start time.
    pub pid: u32,
    /// Start time in clock ticks where the file has one.
    pub start: Option<u64>,
}

/// One agent. All methods are pure and total.
pub trait Adapter: std::fmt::Debug + Send + Sync {
    fn kind(&self) -> AgentKind;
    /// Whether the end of background work starts a turn by itself.
    fn wakes_model(&self) -> bool;
    /// The rules by which its process is found. An adapter that answers [`Adapter::find_agent`] and [`Adapter::can_ask`]
    /// itself has none.
    fn ancestry(&self) -> &'static AncestryRules<'static> {
        &AncestryRules::NOBODY
    }
    /// Which process of a chain, nearest first, is the agent.
    fn find_agent(&self, chain: &[ProcessInfo]) -> Found {
        find(self.ancestry(), chain)
    }
    /// Whether the process that `ancestry` found can ask a person (not in print or exec mode); `None` when its command
    /// line does not tell. The shell adds it to the facts of what this process sends.
    fn can_ask(&self, agent: &ProcessInfo) -> Option<bool> {
        self.ancestry().can_ask(agent)
    }
    /// `event`: the name given on the hook's command line, where the payload may not carry one. `argv`: further
    /// arguments after it (Codex's legacy notify passes its JSON there).
    fn payload(&self, event: Option<&str>, argv: &[&[u8]], payload: &[u8]) -> Parsed;
    /// A reader for this session's transcript; `saved` as returned by an earlier `save`.
    fn transcript(&self, session: &str, saved: Option<&Value>) -> Option<Box<dyn TranscriptReader>>;
    /// Where a session's transcript is below the agent's home folder, with `/` between segments, for an agent whose hooks do
    /// not always give its path; the folder of that file is the session's alone. `None` as well for an id that names no file
    /// there.
    fn transcript_below_home(&self, _session: &str) -> Option<String> {
        None
    }
    /// By what a session's transcript is found among others below the agent's home folder, for an agent whose hooks may leave its
    /// path out and whose place the id alone does not give. `None` as well for an id that is no part of a file's name.
    fn transcript_search(&self, _session: &str) -> Option<TranscriptSearch> {
        None
    }
    /// Folders of state files to watch, derived from a session's transcript path (so that a moved home is honoured).
    /// Most agents keep none.
    fn state_dirs(&self, _transcript: &str) -> Vec<String> {
        Vec::new()
    }
    /// Parses a state file in such a folder; `content` is `None` when it was removed.
    fn state_file(&self, _file_name: &str, _content: Option<&[u8]>) -> Option<StateFile> {
        None
    }
    /// What a held hook prints to carry the answer.
    fn reply(&self, event: &str, answer: &watchkeeper_core::effect::HookAnswer) -> Option<String>;
    /// Installer for this agent's hooks.
    fn installer(&self) -> Option<&'static crate::install::Installer>;
}

/// The built-in adapter of an agent; `None` for kinds that have no hooks of their own.
#[must_use]
pub fn adapter(kind: AgentKind) -> Option<&'static dyn Adapter> {
    match kind {
        AgentKind::Claude => Some(&crate::claude::Claude),
        AgentKind::Codex => Some(&crate::codex::Codex),
        AgentKind::Copilot => Some(&crate::copilot::Copilot),
        AgentKind::OpenCode => Some(&crate::opencode::OpenCode),
        AgentKind::Gemini => Some(&crate::gemini::Gemini),
        AgentKind::Qwen => Some(&crate::qwen::Qwen),
        AgentKind::Acp | AgentKind::Mcp | AgentKind::Run | AgentKind::Declared(_) => None,
    }
}
