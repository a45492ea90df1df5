//! Codex's rollout: turn starts and ends, questions, commands that go on in the background, and what becomes of them.
//! Most of it has no hook.

use serde_json::{Value, json};
use watchkeeper_core::{
    TurnId,
    signal::{Activity, Facts, Lineage, LockSubject, SignalBody, Thread, WorkEnd, WorkKind},
};

use super::payload::QUESTION_TOOL;
use crate::{
    adapter::{Parsed, TranscriptReader},
    json::{flag, items, parse_object, text},
    line_scanner::holds_any,
    observe::{Context, id, label, turn, wall},
    open_calls::OpenCalls,
};

/// What a command's output says when it goes on behind the turn.
const STILL_RUNNING: &str = "Process running with session ID ";
/// What an interrupted call's output says; a command goes on nevertheless.
const ABORTED: &str = "aborted by user";
/// The reason code of a question that only the rollout tells of.
const QUESTION_PENDING: &str = "codex_transcript_request_user_input_pending";

/// Kinds of payload that are parsed; the rest of a rollout is passed over by a look at a line's start.
const WANTED: [&[u8]; 10] = [
    b"\"type\":\"session_meta\"",
    b"\"type\":\"task_started\"",
    b"\"type\":\"task_complete\"",
    b"\"type\":\"turn_aborted\"",
    b"\"type\":\"item_completed\"",
    b"\"type\":\"function_call\"",
    b"\"type\":\"function_call_output\"",
    b"\"type\":\"custom_tool_call\"",
    b"\"type\":\"custom_tool_call_output\"",
    b"\"type\":\"message\"",
];

#[derive(Debug)]
pub(super) struct Reader {
    session: String,
    turn: Option<TurnId>,
    /// Without an output so far, with their tools' names.
    calls: OpenCalls,
    /// Running terminals by their numbers, with the calls that started them.
    terminals: OpenCalls,
    /// A subagent's rollout: nothing in it is the session's.
    foreign: bool,
}

impl Reader {
    pub(super) fn new(session: &str, saved: Option<&Value>) -> Self {
        Self {
            session: session.to_owned(),
            turn: saved.and_then(|saved| turn(saved, "turn")),
            calls: OpenCalls::restored(saved, "calls"),
            terminals: OpenCalls::restored(saved, "terminals"),
            foreign: saved.is_some_and(|saved| flag(saved, "foreign")),
        }
    }

    fn event(&mut self, payload: &Value, context: &mut Context, out: &mut Parsed) {
        let named = turn(payload, "turn_id");
        match text(payload, "type") {
            Some("task_started") => {
                self.turn.clone_from(&named);
                context.turn = named;
                context.push(out, SignalBody::Started { prompt: None });
            }
            Some("task_complete") => {
                context.turn = named.or(self.turn.clone());
                let error = payload.get("error").filter(|e| !e.is_null());
                let body = match error {
                    Some(error) => {
                        SignalBody::Failed { message: text(error, "message").map(label), fatal: false }
                    }
                    None => SignalBody::Stopped {
                        final_message: text(payload, "last_agent_message").map(str::to_owned),
                        can_continue: false,
                        continued: false,
                        live: None,
                    },
                };
                context.push(out, body);
            }
            Some("turn_aborted") => {
                context.turn = named.or(self.turn.clone());
                context.push(out, SignalBody::Aborted { tools_to_work: true, call: None });
            }
            Some("item_completed") => {
                context.turn = named.or(self.turn.clone());
                let item = payload.get("item").unwrap_or(&Value::Null);
                self.item(item, context, out);
            }
            _ => {}
        }
    }

    fn item(&mut self, item: &Value, context: &Context, out: &mut Parsed) {
        match text(item, "type") {
            Some("AgentMessage" | "HookPrompt") => {
                // A hook's prompt blocked the stop: the turn goes on.
                context.push(out, SignalBody::Activity { what: Activity::ModelOutput });
            }
            Some("CommandExecution") => {
                let Some(call) = id(item, "id") else { return };
                let failed = item.get("exit_code").and_then(Value::as_i64) != Some(0);
                self.calls.end(call);
                self.terminals.end_all_of(call);
                let cause = if failed { WorkEnd::Failed } else { WorkEnd::Completed };
                context.push(out, SignalBody::WorkFinished { id: call.to_owned(), cause });
                let finished =
                    SignalBody::ToolFinished { id: call.to_owned(), name: "Bash".to_owned(), failed };
                context.push(out, finished);
            }
            _ => {}
        }
    }

    fn response(&mut self, payload: &Value, context: &mut Context, out: &mut Parsed) {
        context.turn.clone_from(&self.turn);
        match text(payload, "type") {
            Some("function_call" | "custom_tool_call") => {
                let (Some(call), Some(name)) = (id(payload, "call_id"), text(payload, "name")) else {
                    return;
                };
                let name = hook_name(name);
                self.calls.begin(call, &name);
                let asks = name == QUESTION_TOOL;
                context.push(out, SignalBody::ToolStarted { id: call.to_owned(), name });
                if asks {
                    let subject = LockSubject::Tool(call.to_owned());
                    context
                        .push(out, SignalBody::SoftLocked { reason: QUESTION_PENDING.to_owned(), subject });
                }
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                if let Some(call) = id(payload, "call_id") {
                    self.output(call, &output_text(payload), context, out);
                }
            }
            Some("message") if text(payload, "role") == Some("user") => {
                for block in items(payload, "content") {
                    if let Some(agent) = text(block, "text").and_then(finished_subagent) {
                        let body = SignalBody::WorkFinished { id: agent, cause: WorkEnd::Completed };
                        context.push(out, body);
                    }
                }
            }
            _ => {}
        }
    }

    fn output(&mut self, call: &str, words: &str, context: &Context, out: &mut Parsed) {
        let name = self.calls.end(call);
        if let Some(terminal) = running_terminal(words) {
            // Polling a terminal says the same again under the poll's own call.
            if !self.terminals.holds(terminal) {
                self.terminals.begin(terminal, call);
                let body = SignalBody::WorkStarted {
                    id: call.to_owned(),
                    what: WorkKind::Terminal,
                    label: None,
                    process: None,
                };
                context.push(out, body);
            }
        } else if words.ends_with(ABORTED) && name.as_deref().is_none_or(|n| n == "Bash") {
            // Not its end: the command is still a tool in flight when the interrupt arrives.
            return;
        }
        let name = name.unwrap_or_default();
        context.push(out, SignalBody::ToolFinished { id: call.to_owned(), name, failed: false });
    }
}

impl TranscriptReader for Reader {
    fn wants(&self, line: &[u8]) -> bool {
        holds_any(line, &WANTED)
    }

    fn line(&mut self, line: &[u8], out: &mut Parsed) {
        let Ok(record) = parse_object(line) else { return };
        let Some(at) = text(&record, "timestamp").and_then(wall) else { return };
        let payload = record.get("payload").unwrap_or(&Value::Null);
        let mut context = Context {
            session: Some(self.session.clone()),
            turn: None,
            thread: Thread::Main,
            at: Some(at),
            facts: Facts::default(),
        };
        match text(&record, "type") {
            Some("session_meta") => {
                self.foreign = id(payload, "id").is_some_and(|own| own != self.session);
                if !self.foreign {
                    context.facts.agent_version = text(payload, "cli_version").map(label);
                    let exec = text(payload, "source") == Some("exec");
                    context.facts.can_ask = exec.then_some(false);
                    // A subagent's thread may begin with its parent's words; that is no fork.
                    let is_subagent = payload.get("parent_thread_id").is_some_and(Value::is_string)
                        || payload.get("source").is_some_and(Value::is_object);
                    context.facts.lineage = id(payload, "forked_from_id")
                        .filter(|_| !is_subagent)
                        .map(|from| Lineage::ForkedFrom(from.to_owned()));
                    context.push(out, SignalBody::Displayed { what: "session_meta".to_owned() });
                }
            }
            Some("event_msg") if !self.foreign => self.event(payload, &mut context, out),
            Some("response_item") if !self.foreign => self.response(payload, &mut context, out),
            _ => {}
        }
    }

    fn save(&self) -> Value {
        json!({
            "turn": self.turn.as_ref().map(|t| &t.0),
            "calls": self.calls.save(),
            "terminals": self.terminals.save(),
            "foreign": self.foreign,
        })
    }
}

/// The name under which hooks speak of a tool.
fn hook_name(name: &str) -> String {
    match name {
        "exec_command" | "shell" | "shell_command" | "local_shell" => "Bash".to_owned(),
        other => label(other),
    }
}

/// An output is a string, or a list of text blocks.
fn output_text(payload: &Value) -> String {
    match payload.get("output") {
        Some(Value::String(words)) => words.trim_end().to_owned(),
        Some(Value::Array(blocks)) => blocks.iter().filter_map(|b| text(b, "text")).collect(),
        Some(Value::Object(fields)) => {
            fields.get("content").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

/// The number of the terminal that a command goes on in: a line of the output's head, before the command's own words.
fn running_terminal(words: &str) -> Option<&str> {
    let mut head = words.lines().take(8).take_while(|line| !line.starts_with("Output:"));
    let number = head.find_map(|line| line.strip_prefix(STILL_RUNNING))?.trim();
    (!number.is_empty() && number.len() <= 20 && number.bytes().all(|b| b.is_ascii_digit())).then_some(number)
}

/// The subagent that a `<subagent_notification>` reports in an end state.
fn finished_subagent(words: &str) -> Option<String> {
    let (_, body) = words.trim_start().split_once("<subagent_notification>")?;
    let (body, _) = body.split_once("</subagent_notification>").unwrap_or((body, ""));
    let notice = parse_object(body.as_bytes()).ok()?;
    let status = notice.get("status")?;
    let ended = match status {
        Value::String(word) => !matches!(word.as_str(), "running" | "pending_init"),
        Value::Object(fields) => fields.keys().any(|k| k != "running"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    };
    ended.then(|| id(&notice, "agent_path").or(id(&notice, "agent_id")).map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests;
