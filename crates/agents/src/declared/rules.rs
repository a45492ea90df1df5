//! What a declared adapter does with one JSON object: where its fields are, which rule holds, what signal that is.

use serde_json::Value;
use watchkeeper_core::{
    TurnId,
    signal::{
        Activity, EndReason, Facts, LockSubject, Prompt, PromptOrigin, SignalBody, StartCause, Thread,
        WorkEnd, WorkKind,
    },
};

use crate::{
    adapter::Parsed,
    json,
    observe::{Context, is_id, label, path, wall},
};

/// Where a value stands: keys, or places in arrays, from the outermost in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPath(pub(super) Vec<String>);

impl FieldPath {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, segment| match value {
            Value::Object(fields) => fields.get(segment),
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        })
    }
}

/// The values that a file may say the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Event,
    Session,
    Turn,
    Subagent,
    Cwd,
    Transcript,
    Version,
    Title,
    Time,
    Prompt,
    Message,
    Tool,
    Call,
    Work,
    Label,
}

/// What a rule can say, by the word that files use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    SessionStarted,
    TurnStarted,
    Activity,
    ToolStarted,
    ToolFinished,
    ToolFailed,
    Waiting,
    WaitingOver,
    WorkStarted,
    WorkFinished,
    TurnEnded,
    TurnAborted,
    TurnFailed,
    Idle,
    SessionEnded,
    Nothing,
}

pub(super) const WORDS: [(&str, Word); 16] = [
    ("session_started", Word::SessionStarted),
    ("turn_started", Word::TurnStarted),
    ("activity", Word::Activity),
    ("tool_started", Word::ToolStarted),
    ("tool_finished", Word::ToolFinished),
    ("tool_failed", Word::ToolFailed),
    ("waiting", Word::Waiting),
    ("waiting_over", Word::WaitingOver),
    ("work_started", Word::WorkStarted),
    ("work_finished", Word::WorkFinished),
    ("turn_ended", Word::TurnEnded),
    ("turn_aborted", Word::TurnAborted),
    ("turn_failed", Word::TurnFailed),
    ("idle", Word::Idle),
    ("session_ended", Word::SessionEnded),
    ("nothing", Word::Nothing),
];

pub(super) const KINDS: [(&str, WorkKind); 5] = [
    ("shell", WorkKind::Shell),
    ("subagent", WorkKind::Subagent),
    ("task", WorkKind::Task),
    ("monitor", WorkKind::Monitor),
    ("terminal", WorkKind::Terminal),
];

impl Word {
    /// The field without whose place the rule could say nothing.
    pub(super) const fn needs(self) -> Option<(Field, &'static str)> {
        match self {
            Self::ToolStarted | Self::ToolFinished | Self::ToolFailed => Some((Field::Tool, "tool")),
            Self::WorkStarted | Self::WorkFinished => Some((Field::Work, "work")),
            Self::SessionStarted
            | Self::TurnStarted
            | Self::Activity
            | Self::Waiting
            | Self::WaitingOver
            | Self::TurnEnded
            | Self::TurnAborted
            | Self::TurnFailed
            | Self::Idle
            | Self::SessionEnded
            | Self::Nothing => None,
        }
    }

    pub(super) const fn ends_a_turn(self) -> bool {
        matches!(
            self,
            Self::TurnEnded | Self::TurnAborted | Self::TurnFailed | Self::Idle | Self::SessionEnded
        )
    }
}

/// One event, or one kind of record, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// `None` in transcripts.
    pub(super) event: Option<String>,
    /// All must hold: the value there is text, a number or a truth that equals this.
    pub(super) when: Vec<(FieldPath, Value)>,
    pub(super) word: Word,
    pub(super) kind: WorkKind,
}

impl Rule {
    fn holds(&self, value: &Value) -> bool {
        self.when.iter().all(|(path, wanted)| path.of(value) == Some(wanted))
    }
}

/// The hooks, or the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Section {
    pub(super) fields: Vec<(Field, FieldPath)>,
    /// The first that holds counts.
    pub(super) rules: Vec<Rule>,
}

impl Section {
    fn value<'a>(&self, value: &'a Value, field: Field) -> Option<&'a Value> {
        self.fields.iter().find(|(known, _)| *known == field)?.1.of(value)
    }

    /// The text of a field; `None` when it is missing, empty or something else.
    pub(super) fn text<'a>(&self, value: &'a Value, field: Field) -> Option<&'a str> {
        self.value(value, field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// An id, up to a line break (Cursor's ids of tool calls have a second line).
    fn id<'a>(&self, value: &'a Value, field: Field) -> Option<&'a str> {
        self.text(value, field)?.lines().next().filter(|id| is_id(id))
    }

    fn path(&self, value: &Value, field: Field) -> Option<String> {
        // The shared check takes a key.
        let text = self.value(value, field)?;
        path(&serde_json::json!({ "path": text }), "path")
    }

    pub(super) fn rule(&self, event: Option<&str>, value: &Value) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.event.as_deref() == event && rule.holds(value))
    }

    pub(super) fn context(&self, value: &Value) -> Context {
        Context {
            session: self.id(value, Field::Session).map(str::to_owned),
            turn: self.id(value, Field::Turn).map(|id| TurnId(id.to_owned())),
            thread: match self.id(value, Field::Subagent) {
                Some(id) => Thread::Subagent(id.to_owned()),
                None => Thread::Main,
            },
            at: self.text(value, Field::Time).and_then(wall),
            facts: Facts {
                cwd: self.path(value, Field::Cwd),
                transcript: self.path(value, Field::Transcript),
                title: self.text(value, Field::Title).map(label),
                agent_version: self.text(value, Field::Version).map(label),
                ..Facts::default()
            },
        }
    }

    /// What a rule that holds says. `event`: its name, for what is only displayed.
    pub(super) fn apply(&self, rule: &Rule, event: &str, value: &Value, context: &Context, out: &mut Parsed) {
        let mut context = context.clone();
        let body = match rule.word {
            Word::SessionStarted => SignalBody::SessionStarted { cause: StartCause::Other },
            Word::TurnStarted => {
                let text = self.text(value, Field::Prompt).unwrap_or_default().to_owned();
                SignalBody::Started { prompt: Some(Prompt { text, origin: PromptOrigin::Person }) }
            }
            Word::Activity => SignalBody::Activity { what: Activity::Progress },
            Word::ToolStarted => {
                let (id, name) = self.call(value);
                SignalBody::ToolStarted { id, name }
            }
            Word::ToolFinished | Word::ToolFailed => {
                let (id, name) = self.call(value);
                SignalBody::ToolFinished { id, name, failed: rule.word == Word::ToolFailed }
            }
            Word::Waiting => {
                SignalBody::SoftLocked { reason: "question".to_owned(), subject: LockSubject::Session }
            }
            Word::WaitingOver => SignalBody::LockResolved { subject: LockSubject::Session },
            Word::WorkStarted => {
                // Work that nobody could name again would never end.
                let Some(id) = self.id(value, Field::Work) else { return nameless(event, &context, out) };
                context.thread = Thread::Main;
                let text = self.text(value, Field::Label).map(label);
                SignalBody::WorkStarted { id: id.to_owned(), what: rule.kind, label: text, process: None }
            }
            Word::WorkFinished => {
                let Some(id) = self.id(value, Field::Work) else { return nameless(event, &context, out) };
                context.thread = Thread::Main;
                SignalBody::WorkFinished { id: id.to_owned(), cause: WorkEnd::Completed }
            }
            Word::TurnEnded => SignalBody::Stopped {
                final_message: self.text(value, Field::Message).map(str::to_owned),
                can_continue: false,
                continued: false,
                live: None,
            },
            Word::TurnAborted => SignalBody::Aborted { tools_to_work: false, call: None },
            Word::TurnFailed => {
                SignalBody::Failed { message: self.text(value, Field::Message).map(label), fatal: false }
            }
            Word::Idle => SignalBody::IdleNoticed,
            Word::SessionEnded => SignalBody::SessionEnded { reason: EndReason::Reported, successor: None },
            Word::Nothing => SignalBody::Displayed { what: label(event) },
        };
        context.push(out, body);
    }

    /// A tool call: its id, else one entry for all calls of a tool.
    fn call(&self, value: &Value) -> (String, String) {
        let name = self.text(value, Field::Tool).map_or_else(String::new, label);
        let id = self.id(value, Field::Call).map_or_else(|| format!("hook:{name}"), str::to_owned);
        (id, name)
    }
}

fn nameless(event: &str, context: &Context, out: &mut Parsed) {
    crate::observe::unknown(out, &format!("{} without an id of its work", json::clipped(event, 32)));
    context.push(out, SignalBody::Displayed { what: label(event) });
}
