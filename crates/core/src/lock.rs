//! The soft-lock: a session waits for a person. Owns what a lock waits for and what clears it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use crate::{
    ordering::When,
    signal::{LockSubject, Thread},
    time::Mono,
    work::WorkSet,
};

/// Reason of the question that is asked before the machine sleeps; the only lock of an idle session.
pub const ASK_BEFORE_SLEEP: &str = "ask_before_sleep";

/// Longest reason kept, in bytes; the rest is cut.
pub const REASON_MAX_BYTES: usize = 200;

/// Reasons after whose resolution an agent may say nothing, so that its processes are looked at instead.
const SILENT_REASONS: [&str; 4] = [
    "permission_prompt",
    "plan_approval",
    "closed_lid_permission_request_ask",
    "codex_transcript_request_user_input_pending",
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lock {
    pub(crate) reason: String,
    pub(crate) subject: LockSubject,
    pub(crate) thread: Thread,
    pub(crate) when: When,
    pub(crate) since: Mono,
    /// Set by silence: any work of the session clears it.
    pub(crate) inactive: bool,
    /// The tool call that waits, where it is known.
    tool: Option<String>,
    /// Tool calls that ran beside it when it began.
    beside: BTreeSet<String>,
    /// The subtree's CPU time when somebody looked after the lock began, milliseconds.
    pub(crate) cpu: Option<(u64, Mono)>,
}

/// Work that may or may not concern a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work<'a> {
    ModelOutput,
    ToolStarted {
        id: &'a str,
        name: &'a str,
    },
    ToolFinished {
        id: &'a str,
        name: &'a str,
    },
    /// Progress, or work of background items.
    Other,
}

/// Why a lock was cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleared {
    BySubject,
    ByWork,
}

impl Lock {
    pub(crate) fn new(
        reason: &str,
        subject: LockSubject,
        thread: Thread,
        when: When,
        since: Mono,
        work: &WorkSet,
    ) -> Self {
        let mut beside: BTreeSet<String> =
            work.tools.iter().filter(|(_, t)| t.thread == thread).map(|(id, _)| id.clone()).collect();
        let newest = |name: Option<&str>| {
            work.tools
                .iter()
                .filter(|(_, t)| t.thread == thread && name.is_none_or(|n| n == t.name))
                .max_by_key(|(_, t)| t.when.received)
                .map(|(id, _)| id.clone())
        };
        let tool = match &subject {
            LockSubject::Tool(id) => Some(id.clone()),
            LockSubject::ToolNamed(name) => newest(Some(name)),
            LockSubject::Question(id) => work.has_tool(id).then(|| id.clone()),
            // A dialog without a subject belongs to the only tool there is; with several nobody can tell.
            LockSubject::Session => (beside.len() == 1).then(|| newest(None)).flatten(),
            LockSubject::Subagent(_) => None,
        };
        if let Some(tool) = &tool {
            beside.remove(tool);
        }
        Self {
            reason: crate::session::cut(reason, REASON_MAX_BYTES),
            subject,
            thread,
            when,
            since,
            inactive: false,
            tool,
            beside,
            cpu: None,
        }
    }

    /// A lock set because nothing was heard for so many minutes.
    pub(crate) fn inactive(minutes: u64, when: When, since: Mono) -> Self {
        Self {
            reason: format!("inactive:{minutes}m"),
            subject: LockSubject::Session,
            thread: Thread::Main,
            when,
            since,
            inactive: true,
            tool: None,
            beside: BTreeSet::new(),
            cpu: None,
        }
    }

    /// The waiting tool call, where it is known.
    pub(crate) fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// Whether the agent may stay silent after the person answered, so that its processes must be looked at.
    pub(crate) fn may_resolve_silently(&self) -> bool {
        self.inactive || SILENT_REASONS.contains(&self.reason.as_str())
    }

    /// A second statement about the same wait: keeps what is more specific.
    pub(crate) fn merge(&mut self, newer: Self) {
        let vague =
            newer.subject == LockSubject::Session && self.subject != LockSubject::Session && !self.inactive;
        if vague {
            return;
        }
        *self = newer;
    }

    /// Whether this resolution speaks of what the lock waits for.
    pub(crate) fn resolved_by(&self, subject: &LockSubject) -> bool {
        match subject {
            LockSubject::Session => true,
            LockSubject::Tool(id) | LockSubject::Question(id) => {
                self.tool.as_deref() == Some(id)
                    || self.subject == *subject
                    || (self.tool.is_none() && self.subject == LockSubject::Session)
                    || matches!(&self.subject, LockSubject::Question(q) | LockSubject::Tool(q) if q == id)
            }
            LockSubject::ToolNamed(name) => match &self.subject {
                LockSubject::ToolNamed(own) => own == name,
                LockSubject::Session => true,
                LockSubject::Tool(_) | LockSubject::Question(_) | LockSubject::Subagent(_) => false,
            },
            LockSubject::Subagent(id) => {
                self.subject == *subject || matches!(&self.thread, Thread::Subagent(own) if own == id)
            }
        }
    }

    /// What work that is later than the lock does to it.
    pub(crate) fn cleared_by(&self, work: Work<'_>, thread: &Thread) -> Option<Cleared> {
        if self.inactive {
            return Some(Cleared::ByWork);
        }
        if self.thread != *thread {
            return None;
        }
        match work {
            Work::ModelOutput => Some(Cleared::ByWork),
            Work::ToolStarted { id, name } => match (&self.tool, &self.subject) {
                // The waiting call is still open, so this one may run beside it.
                (Some(_), _) => None,
                // Asked before its start was reported (Qwen): it starts because it was allowed.
                (None, LockSubject::ToolNamed(own)) if own == name => Some(Cleared::BySubject),
                (None, _) if self.beside.contains(id) => None,
                (None, _) => Some(Cleared::ByWork),
            },
            Work::ToolFinished { id, name } => {
                if self.tool.as_deref() == Some(id) {
                    return Some(Cleared::BySubject);
                }
                if self.beside.contains(id) {
                    return None;
                }
                match (&self.tool, &self.subject) {
                    (None, LockSubject::ToolNamed(own)) if own == name => Some(Cleared::BySubject),
                    _ => Some(Cleared::ByWork),
                }
            }
            Work::Other => None,
        }
    }
}
