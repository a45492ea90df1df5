//! Qwen Code's hook payloads as observations.
//!
//! Fields as sent by 0.24.4, which stamps its payloads itself. A permission is asked for before the call starts, so a
//! start is the answer. `background_tasks` lists subagents only, also ended ones, and is no level. A turn that the end of
//! background work begins has no prompt event: the chat file tells.

use serde_json::Value;
use watchkeeper_core::{
    input::HookQuestion,
    signal::{
        Activity, EndReason, LockSubject, Prompt, PromptOrigin, SignalBody, StartCause, Thread, WorkEnd,
        WorkKind,
    },
};

use super::work;
use crate::{
    adapter::Parsed,
    content_parts::result_words,
    json,
    known_fields::{Form, count_new},
    observe::{Context, HookPayload, id, is_id, label, turn, unknown, wall},
    task_notification::end_of_status,
};

/// The tools by which Qwen asks its person; both raise a permission request even where everything is allowed.
const QUESTION_TOOL: &str = "ask_user_question";
const PLAN_TOOL: &str = "exit_plan_mode";

pub(super) fn parse(event: Option<&str>, payload: &[u8]) -> Parsed {
    let HookPayload { value, event, mut context } = match HookPayload::parse(event, payload) {
        Ok(read) => read,
        Err(malformed) => return *malformed,
    };
    context.at = json::text(&value, "timestamp").and_then(wall);
    // Between turns it is that of a local command, or still that of a conversation before.
    let between_turns = matches!(
        event.as_str(),
        "SessionStart" | "SessionEnd" | "PreCompact" | "PostCompact" | "Notification"
    );
    context.turn = turn(&value, "prompt_id").filter(|_| !between_turns);
    let mut out = Parsed::default();
    read_event(&event, &value, &context, &mut out);
    count_new(Form::Qwen, &value, &mut out);
    out
}

fn read_event(event: &str, value: &Value, context: &Context, out: &mut Parsed) {
    match event {
        "SessionStart" => {
            let cause = match json::text(value, "source") {
                Some("startup") => StartCause::Startup,
                Some("resume") => StartCause::Resume,
                Some("clear") => StartCause::Clear,
                Some("compact") => StartCause::Compact,
                Some("branch" | "fork") => StartCause::Fork,
                _ => StartCause::Other,
            };
            context.push(out, SignalBody::SessionStarted { cause });
        }
        "UserPromptSubmit" => prompt(value, context, out),
        "PermissionRequest" => {
            let name = tool_name(value);
            let reason = match name.as_str() {
                QUESTION_TOOL => "question",
                PLAN_TOOL => "plan_approval",
                _ => "permission_prompt",
            };
            let subject = LockSubject::ToolNamed(name);
            context.push(out, SignalBody::SoftLocked { reason: reason.to_owned(), subject });
            out.question = Some(HookQuestion::Permission);
        }
        "PermissionDenied" => {
            let subject = LockSubject::ToolNamed(tool_name(value));
            context.push(out, SignalBody::LockResolved { subject });
        }
        "PreToolUse" => {
            if let Some((id, name)) = tool(value) {
                context.push(out, SignalBody::ToolStarted { id, name });
            }
        }
        "PostToolUse" => tool_finished(value, context, out),
        "PostToolUseFailure" => {
            if let Some((id, name)) = tool(value) {
                context.push(out, SignalBody::ToolFinished { id, name, failed: true });
            }
            if json::flag(value, "is_interrupt") && context.thread == Thread::Main {
                context.push(out, SignalBody::Aborted { tools_to_work: false, call: None });
            }
        }
        "PostToolBatch" => {
            for call in json::items(value, "tool_calls") {
                if let Some((id, name)) = tool(call) {
                    context.push(out, SignalBody::ToolFinished { id, name, failed: false });
                }
            }
        }
        "Notification" => notification(value, context, out),
        "Stop" if context.thread == Thread::Main => {
            subagents(value, None, context, out);
            let body = SignalBody::Stopped {
                final_message: json::text(value, "last_assistant_message").map(str::to_owned),
                can_continue: true,
                continued: json::flag(value, "stop_hook_active"),
                live: None,
            };
            context.push(out, body);
            out.question = Some(HookQuestion::Stop);
        }
        "StopFailure" => {
            let message = json::text(value, "last_assistant_message").or(json::text(value, "error"));
            context.push(out, SignalBody::Failed { message: message.map(label), fatal: false });
        }
        "SubagentStart" => {
            if let Some(agent) = id(value, "agent_id") {
                let label = json::text(value, "agent_type").map(label);
                context.push(out, started(agent, WorkKind::Subagent, label));
            }
        }
        "SubagentStop" => {
            if let Some(agent) = id(value, "agent_id") {
                let body = SignalBody::WorkFinished { id: agent.to_owned(), cause: WorkEnd::Completed };
                context.push(out, body);
                // Its own entry on the list still says running.
                subagents(value, Some(agent), context, out);
            }
        }
        "PreCompact" => context.push(out, SignalBody::Activity { what: Activity::CompactionStarted }),
        "PostCompact" => context.push(out, SignalBody::Activity { what: Activity::CompactionFinished }),
        "SessionEnd" => session_end(value, context, out),
        // The answer as it is written, stamped before the Stop; the first sign of a turn that a notice began.
        "MessageDisplay" => context.push(out, SignalBody::Activity { what: Activity::ModelOutput }),
        "Stop"
        | "InstructionsLoaded"
        | "SessionDelete"
        | "TodoCreated"
        | "TodoCompleted"
        | "UserPromptExpansion" => {
            context.push(out, SignalBody::Displayed { what: event.to_owned() });
        }
        _ => {
            unknown(out, event);
            context.push(out, SignalBody::Unknown { event: label(event) });
        }
    }
}

/// An empty prompt goes on with the results of tools.
fn prompt(value: &Value, context: &Context, out: &mut Parsed) {
    let text = json::text(value, "prompt").unwrap_or_default();
    if text.is_empty() || context.thread != Thread::Main {
        return context.push(out, SignalBody::Activity { what: Activity::Progress });
    }
    let prompt = Prompt { text: text.to_owned(), origin: PromptOrigin::Person };
    context.push(out, SignalBody::Started { prompt: Some(prompt) });
}

fn tool_name(value: &Value) -> String {
    json::text(value, "tool_name").map_or_else(String::new, label)
}

/// The call's id and the tool's name; a call without an id cannot be followed.
fn tool(value: &Value) -> Option<(String, String)> {
    let id = id(value, "tool_use_id").or(id(value, "tool_call_id"))?;
    Some((id.to_owned(), tool_name(value)))
}

fn started(id: &str, what: WorkKind, label: Option<String>) -> SignalBody {
    SignalBody::WorkStarted { id: id.to_owned(), what, label, process: None }
}

fn tool_finished(value: &Value, context: &Context, out: &mut Parsed) {
    let Some((call, name)) = tool(value) else { return };
    let input = value.get("tool_input").unwrap_or(&Value::Null);
    if let Some(work) = work::begun(&name, result_words(value)) {
        let words = json::text(input, "command").or(json::text(input, "description"));
        out.work_pids.extend(work.pid.map(|pid| (work.id.clone(), pid)));
        context.push(out, started(&work.id, work.what, words.map(label)));
    } else if let Some(agent) = waited_for(&name, input, value) {
        context.push(out, SignalBody::WorkFinished { id: agent, cause: WorkEnd::Completed });
    }
    if name == "task_stop"
        && let Some(task) = id(input, "task_id")
    {
        let body = SignalBody::WorkFinished { id: task.to_owned(), cause: WorkEnd::Killed };
        context.push(out, body);
    }
    context.push(out, SignalBody::ToolFinished { id: call, name, failed: false });
}

/// The subagent whose result a finished call brings. It is named by its kind and the call.
fn waited_for(name: &str, input: &Value, value: &Value) -> Option<String> {
    let kind = json::text(input, "subagent_type").filter(|_| name == work::AGENT_TOOL)?;
    Some(format!("{kind}-{}", id(value, "tool_call_id")?)).filter(|agent| is_id(agent))
}

fn notification(value: &Value, context: &Context, out: &mut Parsed) {
    let kind = json::text(value, "notification_type").unwrap_or_default();
    let body = match kind {
        "permission_prompt" | "elicitation_dialog" => {
            SignalBody::SoftLocked { reason: kind.to_owned(), subject: LockSubject::Session }
        }
        "idle_prompt" => SignalBody::IdleNoticed,
        _ => SignalBody::Displayed { what: format!("Notification {}", label(kind)) },
    };
    context.push(out, body);
}

/// The subagents that a Stop lists, but for the one that the event is about.
fn subagents(value: &Value, except: Option<&str>, context: &Context, out: &mut Parsed) {
    for task in json::items(value, "background_tasks") {
        let Some(agent) = id(task, "id").filter(|agent| Some(*agent) != except) else { continue };
        let status = json::text(task, "status").unwrap_or_default();
        if let Some(cause) = end_of_status(status) {
            context.push(out, SignalBody::WorkFinished { id: agent.to_owned(), cause });
        } else if status == "running" {
            let words = json::text(task, "description").map(label);
            context.push(out, started(agent, WorkKind::Subagent, words));
        }
    }
}

/// Background work ends with the agent; a clear hands it on.
fn session_end(value: &Value, context: &Context, out: &mut Parsed) {
    let reason = match json::text(value, "reason") {
        Some("clear" | "resume") => EndReason::Cleared,
        Some("branch" | "fork") => EndReason::Forked,
        _ => {
            context.push(out, SignalBody::WorkLevel { live: Vec::new(), except: None });
            EndReason::Reported
        }
    };
    context.push(out, SignalBody::SessionEnded { reason, successor: None });
}

#[cfg(test)]
mod tests;
