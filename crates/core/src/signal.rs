//! What sources tell the core about sessions. Wire formats live in the adapters; this is the one domain type.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{DeliveryId, Incarnation, ProcessRef, SessionKey, TurnId},
    time::Stamp,
};

/// One statement about one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    pub key: SessionKey,
    /// `None`: the incarnation whose process sent it, else the current one.
    pub incarnation: Option<Incarnation>,
    pub turn: Option<TurnId>,
    pub thread: Thread,
    pub delivery: DeliveryId,
    pub source: Source,
    /// When it happened; `None` when that cannot be compared with other times (then the order of receipt counts).
    pub happened: Option<Stamp>,
    /// The living agent process that this comes from, when the shell resolved one.
    pub process: Option<AgentProcess>,
    pub facts: Facts,
    pub body: SignalBody,
}

/// Where a signal comes from, strongest statements about liveness first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Process,
    AgentState,
    Hook,
    /// A hook that waited in the spool while no daemon ran; a fact, never held.
    Spool,
    Transcript,
    Acp,
    Mcp,
    User,
    Timer,
    Recovery,
}

/// An agent process as found by ancestry or declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProcess {
    pub process: ProcessRef,
    /// A host that outlives conversations (an app-server): its exit ends all its sessions, its life proves nothing.
    pub shared: bool,
    /// Named by the caller, not found among its ancestors.
    pub declared: bool,
}

/// The thread of the conversation that acted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thread {
    #[default]
    Main,
    /// A subagent, by the id under which it is (or will be) tracked as work.
    Subagent(String),
}

/// Things that are true of the session, whoever says so; each `Some` replaces what was known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// The agent's own title of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// False in print and exec mode, where nobody can be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_ask: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Lineage>,
}

/// A link to another session of the same agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "link", content = "id")]
pub enum Lineage {
    ForkedFrom(String),
    ForkedTo(String),
    ContinuedIn(String),
    ClearedTo(String),
    ClearedFrom(String),
    Parent(String),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SignalBody {
    /// A turn begins: a prompt, or an explicit start.
    Started {
        prompt: Option<Prompt>,
    },
    /// The agent announces a session; no turn runs by that.
    SessionStarted {
        cause: StartCause,
    },
    /// The agent works, or its person acts.
    Activity {
        what: Activity,
    },
    /// Display, summaries, costs, titles: recorded, never changes a phase or a lock.
    Displayed {
        what: String,
    },
    ToolStarted {
        id: String,
        name: String,
    },
    ToolFinished {
        id: String,
        name: String,
        failed: bool,
    },
    SoftLocked {
        reason: String,
        subject: LockSubject,
    },
    /// The subject of a lock was resolved (answered, denied, gone).
    LockResolved {
        subject: LockSubject,
    },
    WorkStarted {
        id: String,
        what: WorkKind,
        label: Option<String>,
        process: Option<ProcessRef>,
    },
    /// The work ended; completion by itself is never a stop.
    WorkFinished {
        id: String,
        cause: WorkEnd,
    },
    /// The complete list of live work from an authoritative source. `except`: the subject of the event that carries it.
    WorkLevel {
        live: Vec<WorkItem>,
        except: Option<String>,
    },
    /// The turn is over. `live`: the complete list of live work, where the agent gives one.
    Stopped {
        final_message: Option<String>,
        can_continue: bool,
        continued: bool,
        live: Option<Vec<WorkItem>>,
    },
    /// The turn was interrupted. `tools_to_work`: commands in flight that go on as background work (Codex).
    Aborted {
        tools_to_work: bool,
        /// The tool call whose end tells it, where nothing else does: then it is the turn in which that call began. A command
        /// that is slow to die says so when the next turn runs already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// The turn failed (API error): as a stop without message, abnormal when `fatal`.
    Failed {
        message: Option<String>,
        fatal: bool,
    },
    /// The agent says that it is idle: a stop without message, never a lock.
    IdleNoticed,
    SessionEnded {
        reason: EndReason,
        successor: Option<String>,
    },
    /// The agent's own live state, verified by pid and start time by the shell.
    AgentStated {
        state: AgentState,
        waiting_for: Option<String>,
    },
    ProcessExited {
        process: ProcessRef,
    },
    /// Found gone after a restart or at a check.
    Orphaned,
    Removed,
    /// A person's or script's `clear-softlock`.
    SoftLockCleared,
    /// An event no adapter knows; counted and recorded.
    Unknown {
        event: String,
    },
}

/// The prompt of a turn. Its text is stored by the setting `record_prompts`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prompt {
    pub text: String,
    pub origin: PromptOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptOrigin {
    Person,
    /// Delivers the completion (or a tick) of background work.
    Work,
    /// Text that the agent feeds itself: a stop hook's reason, a queued notice.
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartCause {
    Startup,
    Resume,
    Clear,
    Compact,
    Fork,
    Other,
}

/// Kinds of activity that decide differently.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// The model wrote something (text, a tool call).
    ModelOutput,
    /// A tool in flight reported progress, or a person typed; keeps working, opens nothing.
    Progress,
    CompactionStarted,
    CompactionFinished,
    /// `watchkeeper activity`.
    Manual,
}

/// What a lock waits for; resolution of the same subject clears it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum LockSubject {
    #[default]
    Session,
    /// A tool call by id, where the agent names it.
    Tool(String),
    /// A tool by name, where the agent does not give the call's id (Claude's PermissionRequest).
    ToolNamed(String),
    Question(String),
    Subagent(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    Shell,
    Subagent,
    Task,
    /// A cron: keeps nothing awake until it runs.
    Scheduled,
    Monitor,
    Terminal,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WorkItem {
    pub id: String,
    pub kind: WorkKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkEnd {
    Completed,
    Failed,
    Killed,
    /// Not on a newer authoritative list.
    Reconciled,
    /// The process behind it is gone.
    ProcessGone,
    /// It detached itself from the agent: nobody's work any more.
    Detached,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// `/exit`, end of print mode, the agent's own orderly end.
    Reported,
    /// Replaced by a new conversation in the same process.
    Cleared,
    Forked,
    /// Moved elsewhere (Claude: to the background).
    Moved,
    /// `watchkeeper stop` and MCP stops.
    Stopped,
}

/// The agent's own live state (Claude's session registry, Copilot's lock file).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    Busy,
    Idle,
    /// The turn is over, a background shell still runs.
    Shell,
    Waiting,
    /// Its exit dialog or another dialog that is no question to the conversation.
    Dialog,
    /// The state file is gone in an orderly way.
    Gone,
}
