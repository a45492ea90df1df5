//! Gemini CLI's hook payloads as observations.
//!
//! Fields as sent by 0.61.0, which stamps its payloads itself. Calls have no id, and a subagent's look like the
//! session's own. A turn that was interrupted while a tool ran ends without an event: the tool's result and the chat
//! file tell. Nothing tells the end of a background command, so its process is watched.

use serde_json::Value;
use watchkeeper_core::{
    input::HookQuestion,
    signal::{Activity, EndReason, LockSubject, Prompt, PromptOrigin, SignalBody, StartCause, WorkKind},
};

use crate::{
    adapter::Parsed,
    content_parts::{leading_pid, result_words},
    json,
    known_fields::{Form, count_new},
    observe::{Context, HookPayload, label, unknown, wall},
};

/// The tool by which Gemini asks its person.
const QUESTION_TOOL: &str = "ask_user";
/// The tool by which Gemini runs commands. Only its results are in Gemini's own words; others hand on what a file or a server says.
pub(super) const SHELL_TOOL: &str = "run_shell_command";

pub(super) fn parse(event: Option<&str>, payload: &[u8]) -> Parsed {
    let HookPayload { value, event, mut context } = match HookPayload::parse(event, payload) {
        Ok(read) => read,
        Err(malformed) => return *malformed,
    };
    context.at = json::text(&value, "timestamp").and_then(wall);
    let mut out = Parsed::default();
    read_event(&event, &value, &context, &mut out);
    count_new(Form::Gemini, &value, &mut out);
    out
}

fn read_event(event: &str, value: &Value, context: &Context, out: &mut Parsed) {
    match event {
        "SessionStart" => {
            let cause = match json::text(value, "source") {
                Some("startup") => StartCause::Startup,
                Some("resume") => StartCause::Resume,
                Some("clear") => StartCause::Clear,
                _ => StartCause::Other,
            };
            context.push(out, SignalBody::SessionStarted { cause });
        }
        "BeforeAgent" => {
            let text = json::text(value, "prompt").unwrap_or_default().to_owned();
            let prompt = Prompt { text, origin: PromptOrigin::Person };
            context.push(out, SignalBody::Started { prompt: Some(prompt) });
        }
        "AfterAgent" => {
            let body = SignalBody::Stopped {
                final_message: json::text(value, "prompt_response").map(str::to_owned),
                can_continue: true,
                continued: json::flag(value, "stop_hook_active"),
                live: None,
            };
            context.push(out, body);
            out.question = Some(HookQuestion::Stop);
        }
        "BeforeTool" => {
            let name = tool_name(value);
            let asks = name == QUESTION_TOOL;
            context.push(out, SignalBody::ToolStarted { id: call(&name), name });
            if asks {
                // The notice of the question says the same, if it is heard.
                let subject = LockSubject::ToolNamed(QUESTION_TOOL.to_owned());
                context.push(out, SignalBody::SoftLocked { reason: "question".to_owned(), subject });
            }
        }
        "AfterTool" => tool_finished(value, context, out),
        // Before and after each request to the model and each chunk of its answer; `PreCompress` before each request too.
        "BeforeModel" | "AfterModel" | "BeforeToolSelection" | "PreCompress" => {
            context.push(out, SignalBody::Activity { what: Activity::Progress });
        }
        "Notification" => notification(value, context, out),
        "SessionEnd" => session_end(value, context, out),
        _ => {
            unknown(out, event);
            context.push(out, SignalBody::Unknown { event: label(event) });
        }
    }
}

/// One in-flight entry a tool's name stands for its calls.
pub(super) fn call(name: &str) -> String {
    format!("hook:{name}")
}

fn tool_name(value: &Value) -> String {
    json::text(value, "tool_name").map_or_else(String::new, label)
}

fn tool_finished(value: &Value, context: &Context, out: &mut Parsed) {
    let name = tool_name(value);
    let said = if name == SHELL_TOOL { result_words(value) } else { "" };
    let command = value.get("tool_input").and_then(|input| json::text(input, "command")).map(label);
    if let Some(pid) = left_running(said) {
        let work = background(pid);
        out.work_pids.push((work.clone(), pid));
        let body = SignalBody::WorkStarted { id: work, what: WorkKind::Shell, label: command, process: None };
        context.push(out, body);
    }
    let cancelled = said.starts_with("Command was cancelled by user");
    if cancelled {
        // Before the call is over: it tells which turn this was.
        context.push(out, SignalBody::Aborted { tools_to_work: false, call: Some(call(&name)) });
    }
    context.push(out, SignalBody::ToolFinished { id: call(&name), name, failed: cancelled });
}

/// The process of a command that goes on in the background, by what its call gave to the model.
pub(super) fn left_running(said: &str) -> Option<u32> {
    said.strip_prefix("Command moved to background (PID: ").and_then(leading_pid)
}

/// The work that a process in the background stands for.
pub(super) fn background(pid: u32) -> String {
    format!("pid:{pid}")
}

fn notification(value: &Value, context: &Context, out: &mut Parsed) {
    let kind = json::text(value, "notification_type").unwrap_or_default();
    if kind != "ToolPermission" {
        unknown(out, &format!("notification {kind}"));
        return context.push(out, SignalBody::Displayed { what: label(kind) });
    }
    let what = value.get("details").and_then(|details| json::text(details, "type")).unwrap_or_default();
    let (reason, subject) = match what {
        QUESTION_TOOL => ("question", LockSubject::ToolNamed(QUESTION_TOOL.to_owned())),
        "exit_plan_mode" => ("plan_approval", LockSubject::ToolNamed(what.to_owned())),
        "exec" => ("permission_prompt", LockSubject::ToolNamed(SHELL_TOOL.to_owned())),
        // More than one tool edits files, fetches, or comes from a server: the details do not say which one waits.
        _ => ("permission_prompt", LockSubject::Session),
    };
    context.push(out, SignalBody::SoftLocked { reason: reason.to_owned(), subject });
}

/// Comes up to three times. Background commands end with the agent, or are nobody's afterwards.
fn session_end(value: &Value, context: &Context, out: &mut Parsed) {
    let reason = match json::text(value, "reason") {
        Some("clear") => EndReason::Cleared,
        _ => {
            context.push(out, SignalBody::WorkLevel { live: Vec::new(), except: None });
            EndReason::Reported
        }
    };
    context.push(out, SignalBody::SessionEnded { reason, successor: None });
}

#[cfg(test)]
mod tests;
