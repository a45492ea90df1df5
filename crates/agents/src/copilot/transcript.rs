//! Copilot CLI's `events.jsonl`: permissions and questions with their ends, aborts, errors, the end of background
//! work. It is current: the record of a hook's start is in the file before the hook runs.

use serde_json::{Value, json};
use watchkeeper_core::signal::{
    Activity, EndReason, Facts, LockSubject, SignalBody, Thread, WorkEnd, WorkKind,
};

use super::{payload::QUESTION_TOOL, work};
use crate::{
    adapter::{Parsed, TranscriptReader},
    json::{flag, parse_object, text},
    observe::{Context, id, is_id, label, unknown, wall},
    open_calls::OpenCalls,
};

/// Records that are parsed.
const WANTED: [&str; 15] = [
    "session.start",
    "session.resume",
    "session.shutdown",
    "session.error",
    "session.compaction_start",
    "session.compaction_complete",
    "assistant.turn_start",
    "assistant.message",
    "tool.execution_start",
    "tool.execution_complete",
    "permission.requested",
    "permission.completed",
    "system.notification",
    "subagent.",
    "abort",
];

#[derive(Debug)]
pub(super) struct Reader {
    session: String,
    /// With their tools' names.
    calls: OpenCalls,
}

impl Reader {
    pub(super) fn new(session: &str, saved: Option<&Value>) -> Self {
        Self { session: session.to_owned(), calls: OpenCalls::restored(saved, "calls") }
    }

    fn record(&mut self, kind: &str, data: &Value, context: &mut Context, out: &mut Parsed) {
        match kind {
            "session.start" | "session.resume" => {
                context.facts.agent_version = text(data, "copilotVersion").map(label);
                context.push(out, SignalBody::Displayed { what: kind.to_owned() });
            }
            "session.shutdown" => {
                context.push(out, SignalBody::SessionEnded { reason: EndReason::Reported, successor: None });
            }
            "session.error" => {
                let message = text(data, "message").map(label);
                context.push(out, SignalBody::Failed { message, fatal: false });
            }
            "session.compaction_start" => {
                context.push(out, SignalBody::Activity { what: Activity::CompactionStarted });
            }
            "session.compaction_complete" => {
                context.push(out, SignalBody::Activity { what: Activity::CompactionFinished });
            }
            "assistant.turn_start" | "assistant.message" => {
                context.push(out, SignalBody::Activity { what: Activity::ModelOutput });
            }
            "tool.execution_start" => self.call_started(data, context, out),
            "tool.execution_complete" => self.call_ended(data, context, out),
            "permission.requested" => {
                let subject = request(data);
                context.push(out, SignalBody::SoftLocked { reason: "permission_prompt".to_owned(), subject });
            }
            "permission.completed" => {
                context.push(out, SignalBody::LockResolved { subject: request(data) });
            }
            "abort" => context.push(out, SignalBody::Aborted { tools_to_work: false, call: None }),
            _ => {}
        }
    }

    fn call_started(&mut self, data: &Value, context: &Context, out: &mut Parsed) {
        let (Some(call), Some(name)) = (id(data, "toolCallId"), text(data, "toolName")) else { return };
        let name = label(work::hook_name(name));
        self.calls.begin(call, &name);
        let asks = name == QUESTION_TOOL;
        context.push(out, SignalBody::ToolStarted { id: call.to_owned(), name });
        if asks {
            let subject = LockSubject::Tool(call.to_owned());
            context.push(out, SignalBody::SoftLocked { reason: "question".to_owned(), subject });
        }
    }

    fn call_ended(&mut self, data: &Value, context: &Context, out: &mut Parsed) {
        let Some(call) = id(data, "toolCallId") else { return };
        let name = self.calls.end(call).unwrap_or_default();
        let result = data.get("result").unwrap_or(&Value::Null);
        let words = text(result, "content").unwrap_or_default();
        if let Some(body) = work::of_result(&name, words) {
            context.push(out, body);
        }
        let failed = !flag(data, "success");
        context.push(out, SignalBody::ToolFinished { id: call.to_owned(), name, failed });
    }
}

impl TranscriptReader for Reader {
    fn wants(&self, line: &[u8]) -> bool {
        line.strip_prefix(b"{\"type\":\"")
            .is_none_or(|kind| WANTED.iter().any(|wanted| kind.starts_with(wanted.as_bytes())))
    }

    fn line(&mut self, line: &[u8], out: &mut Parsed) {
        let Ok(record) = parse_object(line) else { return };
        let (Some(kind), Some(at)) = (text(&record, "type"), text(&record, "timestamp").and_then(wall))
        else {
            return;
        };
        let agent = id(&record, "agentId");
        let mut context = Context {
            session: Some(self.session.clone()),
            turn: None,
            thread: agent.map_or(Thread::Main, |agent| Thread::Subagent(agent.to_owned())),
            at: Some(at),
            facts: Facts::default(),
        };
        let data = record.get("data").unwrap_or(&Value::Null);
        match (kind, agent) {
            ("subagent.started", Some(agent)) => {
                context.push(out, work::started(agent.to_owned(), WorkKind::Subagent));
            }
            ("subagent.completed", Some(agent)) => {
                context.push(out, work::finished(agent.to_owned(), WorkEnd::Completed));
            }
            ("subagent.failed" | "subagent.cancelled", Some(agent)) => {
                context.push(out, work::finished(agent.to_owned(), WorkEnd::Failed));
            }
            ("system.notification", None) => notice(data, &context, out),
            (_, None) => self.record(kind, data, &mut context, out),
            ("permission.requested" | "permission.completed", Some(_)) => {
                self.record(kind, data, &mut context, out);
            }
            // Anything else of a subagent is its parent's work going on.
            (_, Some(_)) => context.push(out, SignalBody::Activity { what: Activity::Progress }),
        }
    }

    fn save(&self) -> Value {
        json!({ "calls": self.calls.save() })
    }
}

/// The dialog of a permission request.
fn request(data: &Value) -> LockSubject {
    id(data, "requestId").map_or(LockSubject::Session, |request| LockSubject::Question(request.to_owned()))
}

/// A notice that is put before the model: its kind names what ended.
fn notice(data: &Value, context: &Context, out: &mut Parsed) {
    let kind = data.get("kind").unwrap_or(&Value::Null);
    let body = match text(kind, "type").unwrap_or_default() {
        "shell_completed" | "shell_detached_completed" => {
            let cause = match kind.get("exitCode").and_then(Value::as_i64) {
                Some(0) | None => WorkEnd::Completed,
                Some(_) => WorkEnd::Failed,
            };
            text(kind, "shellId")
                .filter(|s| is_id(s))
                .map(|shell| work::finished(work::shell_key(shell), cause))
        }
        "agent_idle" | "agent_completed" => {
            id(kind, "agentId").map(|agent| work::finished(agent.to_owned(), WorkEnd::Completed))
        }
        other => {
            unknown(out, &format!("system.notification {other}"));
            None
        }
    };
    if let Some(body) = body {
        context.push(out, body);
    }
}

#[cfg(test)]
mod tests;
