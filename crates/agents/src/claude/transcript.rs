//! Claude Code's transcript: what its records say about the turn that no hook says (interrupts, results of denied
//! calls, the end of a turn), and what they repeat.
//!
//! Every statement carries the record's own time: records are written after the hooks they belong to, and a forked
//! session copies old ones.

use memchr::memmem;
use serde_json::{Value, json};
use watchkeeper_core::{
    TurnId,
    signal::{Activity, EndReason, Facts, Lineage, Prompt, PromptOrigin, SignalBody, Thread},
};

use super::{ancestry::entry_point_can_ask, payload::started_work};
use crate::{
    adapter::{Parsed, TranscriptReader},
    json::{Bulk, flag, items, parse_object_without, text},
    observe::{Context, id, label, turn, wall},
    open_calls::OpenCalls,
    task_notification::notices,
};

/// Starts of user texts that the harness writes for commands it ran itself: they open no turn.
const LOCAL_COMMANDS: [&str; 5] =
    ["<command-name>", "<command-message>", "<local-command-", "<bash-input>", "<bash-std"];
const INTERRUPTED: &str = "[Request interrupted by user";
const STOP_BLOCKED: &str = "Stop hook feedback";

/// Types of records that are parsed, with the closing quote.
const WANTED: [&str; 5] = ["user\"", "assistant\"", "system\"", "ai-title\"", "continued-in\""];

/// What tools read, wrote and printed. A prompt's own `content` is less deep.
const BULK: [Bulk; 7] = [
    Bulk { key: "content", depth: 3 },
    Bulk { key: "stdout", depth: 2 },
    Bulk { key: "stderr", depth: 2 },
    Bulk { key: "originalFile", depth: 2 },
    Bulk { key: "oldString", depth: 2 },
    Bulk { key: "newString", depth: 2 },
    Bulk { key: "new_string", depth: 3 },
];

const MARK: &[u8] = b"\"type\":\"";
/// The model's records name their type behind the message.
const ROLE: &[u8] = b"\"role\":\"assistant\"";

#[derive(Debug)]
pub(super) struct Reader {
    session: String,
    turn: Option<TurnId>,
    /// With their tools' names.
    calls: OpenCalls,
}

impl Reader {
    pub(super) fn new(session: &str, saved: Option<&Value>) -> Self {
        let turn = saved.and_then(|saved| turn(saved, "turn"));
        Self { session: session.to_owned(), turn, calls: OpenCalls::restored(saved, "calls") }
    }

    fn user(&mut self, record: &Value, context: &mut Context, out: &mut Parsed) {
        let words = user_text(record);
        if flag(record, "isMeta") {
            // Another hook blocked the stop: the model goes on in the same turn.
            if words.starts_with(STOP_BLOCKED) {
                context.turn.clone_from(&self.turn);
                context.push(out, SignalBody::Activity { what: Activity::ModelOutput });
            }
            return;
        }
        let harness_wrote = flag(record, "isCompactSummary") || flag(record, "isVisibleInTranscriptOnly");
        if harness_wrote || LOCAL_COMMANDS.iter().any(|start| words.starts_with(start)) {
            return;
        }
        if let Some(prompt) = id(record, "promptId") {
            self.turn = Some(TurnId(prompt.to_owned()));
        }
        context.turn.clone_from(&self.turn);
        let results = self.tool_results(record, context, out);
        if words.starts_with(INTERRUPTED) {
            context.push(out, SignalBody::Aborted { tools_to_work: false, call: None });
        } else if !results && !words.is_empty() && context.turn.is_some() {
            let notices = notices(words);
            let origin = if notices.is_empty() { PromptOrigin::Person } else { PromptOrigin::Work };
            let prompt = Some(Prompt { text: words.to_owned(), origin });
            context.push(out, SignalBody::Started { prompt });
            for notice in notices {
                if let Some(cause) = notice.end {
                    context.push(out, SignalBody::WorkFinished { id: notice.task, cause });
                }
            }
        }
    }

    /// Whether the record carries results of tool calls.
    fn tool_results(&mut self, record: &Value, context: &Context, out: &mut Parsed) -> bool {
        let message = record.get("message").unwrap_or(&Value::Null);
        let mut any = false;
        for block in items(message, "content").filter(|b| text(b, "type") == Some("tool_result")) {
            any = true;
            let Some(call) = id(block, "tool_use_id") else { continue };
            let name = self.calls.end(call).unwrap_or_default();
            let response = record.get("toolUseResult").unwrap_or(&Value::Null);
            if let Some((work, what)) = started_work(&name, response) {
                context.push(out, SignalBody::WorkStarted { id: work, what, label: None, process: None });
            }
            let failed = flag(block, "is_error");
            context.push(out, SignalBody::ToolFinished { id: call.to_owned(), name, failed });
        }
        any
    }

    fn assistant(&mut self, record: &Value, context: &mut Context, out: &mut Parsed) {
        context.turn.clone_from(&self.turn);
        let message = record.get("message").unwrap_or(&Value::Null);
        if flag(record, "isApiErrorMessage") {
            let words = items(message, "content").find_map(|block| text(block, "text")).map(label);
            context.push(out, SignalBody::Failed { message: words, fatal: false });
            return;
        }
        // Placeholders that the harness writes in the model's name.
        if text(message, "model") == Some("<synthetic>") {
            return;
        }
        if flag(record, "isAbortedMidStream") {
            context.push(out, SignalBody::Aborted { tools_to_work: false, call: None });
            return;
        }
        for block in items(message, "content").filter(|b| text(b, "type") == Some("tool_use")) {
            if let (Some(call), Some(name)) = (id(block, "id"), text(block, "name")) {
                let name = label(name);
                self.calls.begin(call, &name);
                context.push(out, SignalBody::ToolStarted { id: call.to_owned(), name });
            }
        }
        // A record of a call alone says no more than that: it may run beside one that waits for the person.
        if items(message, "content").any(|b| text(b, "type") != Some("tool_use")) {
            context.push(out, SignalBody::Activity { what: Activity::ModelOutput });
        }
    }

    fn system(&self, record: &Value, context: &mut Context, out: &mut Parsed) {
        context.turn.clone_from(&self.turn);
        match text(record, "subtype") {
            Some("turn_duration") => {
                let body = SignalBody::Stopped {
                    final_message: None,
                    can_continue: false,
                    continued: false,
                    live: None,
                };
                context.push(out, body);
            }
            // The model is asked again by itself.
            Some("api_error") => context.push(out, SignalBody::Activity { what: Activity::Progress }),
            _ => {}
        }
    }
}

impl TranscriptReader for Reader {
    fn wants(&self, line: &[u8]) -> bool {
        // Where the type comes first it decides; else the records that matter name theirs, or a role, near the start.
        if let Some(kind) = line.strip_prefix(b"{\"type\":\"") {
            return WANTED.iter().any(|wanted| kind.starts_with(wanted.as_bytes()));
        }
        memmem::find_iter(line, MARK).any(|at| {
            let value = line.get(at + MARK.len()..).unwrap_or_default();
            WANTED.iter().any(|wanted| value.starts_with(wanted.as_bytes()))
        }) || memmem::find(line, ROLE).is_some()
    }

    fn line(&mut self, line: &[u8], out: &mut Parsed) {
        let Ok(record) = parse_object_without(&BULK, line) else { return };
        if flag(&record, "isSidechain") || text(&record, "sessionId").is_some_and(|s| s != self.session) {
            return;
        }
        let at = text(&record, "timestamp").and_then(wall);
        let mut context = Context {
            session: Some(self.session.clone()),
            turn: None,
            thread: Thread::Main,
            at,
            facts: Facts {
                agent_version: text(&record, "version").map(label),
                can_ask: entry_point_can_ask(text(&record, "entrypoint")),
                // A fork begins with copies of what was asked for in another session.
                lineage: id(&record, "requestSessionId")
                    .filter(|asked_in| *asked_in != self.session)
                    .map(|asked_in| Lineage::ForkedFrom(asked_in.to_owned())),
                ..Facts::default()
            },
        };
        match text(&record, "type") {
            // A record without its own time cannot be put in order.
            Some("user" | "assistant" | "system") if at.is_none() => {}
            Some("user") => self.user(&record, &mut context, out),
            Some("assistant") => self.assistant(&record, &mut context, out),
            Some("system") => self.system(&record, &mut context, out),
            Some("continued-in") => {
                let successor = id(&record, "continuedInSessionId").map(str::to_owned);
                context.push(out, SignalBody::SessionEnded { reason: EndReason::Moved, successor });
            }
            Some("ai-title") => {
                context.facts.title = text(&record, "aiTitle").map(label);
                context.push(out, SignalBody::Displayed { what: "title".to_owned() });
            }
            _ => {}
        }
    }

    fn save(&self) -> Value {
        json!({ "turn": self.turn.as_ref().map(|t| &t.0), "calls": self.calls.save() })
    }
}

/// The words of a user record: its string content, or its first text block.
fn user_text(record: &Value) -> &str {
    let content = record.get("message").and_then(|m| m.get("content"));
    match content {
        Some(Value::String(words)) => words,
        Some(Value::Array(blocks)) => blocks
            .iter()
            .find(|b| text(b, "type") == Some("text"))
            .and_then(|b| text(b, "text"))
            .unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
mod tests;
