//! Copilot CLI's hook payloads as observations.
//!
//! The spelling of a hook's event name selects its payload. The PascalCase spelling is read (`Stop`), which is also the
//! one that the installer writes; the camelCase spelling of the same events (`agentStop`) is ignored, since where both
//! are installed both run. Some PascalCase events keep camelCase keys, so both are looked up. Fields as sent by
//! 1.0.102. The agent stamps its payloads itself; hooks start up to half a second later.

use serde_json::Value;
use watchkeeper_core::{
    Wall,
    input::HookQuestion,
    signal::{
        Activity, EndReason, Facts, LockSubject, Prompt, PromptOrigin, SignalBody, StartCause, Thread,
        WorkEnd, WorkKind,
    },
};

use super::work;
use crate::{
    adapter::Parsed,
    json,
    known_fields::{Form, count_new},
    observe::{Context, id, label, malformed, path, unknown, wall},
};

/// The tool by which Copilot asks its person, under the name that hooks use.
pub(super) const QUESTION_TOOL: &str = "AskUserQuestion";

pub(super) fn parse(event: Option<&str>, payload: &[u8]) -> Parsed {
    if event.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase())) {
        return Parsed::default();
    }
    let value = match json::parse_object(payload) {
        Ok(value) => value,
        Err(refused) => return malformed(refused),
    };
    let Some(event) = event.or(json::text(&value, "hook_event_name")) else {
        return malformed("no event name");
    };
    // A subagent's events name the child or the parent; the parent's id is the session's where it is given.
    let parent = id(&value, "parent_agent_id").or(id(&value, "parentAgentId"));
    let Some(session) = parent.or(id(&value, "session_id")).or(id(&value, "sessionId")) else {
        return malformed("no session id");
    };
    let agent = id(&value, "agent_id").or(id(&value, "agentId"));
    let context = Context {
        session: Some(session.to_owned()),
        turn: None,
        thread: agent.map_or(Thread::Main, |agent| Thread::Subagent(agent.to_owned())),
        at: match value.get("timestamp") {
            Some(Value::String(text)) => wall(text),
            Some(Value::Number(number)) => number.as_i64().map(Wall),
            _ => None,
        },
        facts: Facts {
            cwd: path(&value, "cwd"),
            transcript: path(&value, "transcript_path").or(path(&value, "transcriptPath")),
            ..Facts::default()
        },
    };
    let mut out = Parsed::default();
    match &context.thread {
        Thread::Main => main_event(event, &value, &context, &mut out),
        Thread::Subagent(agent) => subagent_event(event, agent.clone(), &context, &mut out),
    }
    count_new(Form::Copilot, &value, &mut out);
    out
}

fn main_event(event: &str, value: &Value, context: &Context, out: &mut Parsed) {
    match event {
        "SessionStart" => {
            let cause = match json::text(value, "source") {
                Some("new" | "startup") => StartCause::Startup,
                Some("resume") => StartCause::Resume,
                _ => StartCause::Other,
            };
            context.push(out, SignalBody::SessionStarted { cause });
        }
        "UserPromptSubmit" => {
            let text = json::text(value, "prompt").unwrap_or_default();
            let notice = text.trim_start().starts_with("<system_notification>");
            let origin = if notice { PromptOrigin::Work } else { PromptOrigin::Person };
            context.push(out, SignalBody::Started { prompt: Some(Prompt { text: text.to_owned(), origin }) });
            if let Some(end) = work::ended_shell(text).filter(|_| notice) {
                context.push(out, end);
            }
        }
        // Calls have no id in hooks: one in-flight entry a tool's name stands for them; the transcript has each.
        "PreToolUse" => {
            let name = tool_name(value);
            context.push(out, SignalBody::ToolStarted { id: format!("hook:{name}"), name });
        }
        "PostToolUse" => {
            let name = tool_name(value);
            let result = value.get("tool_result").or(value.get("toolResult")).unwrap_or(&Value::Null);
            let words = json::text(result, "text_result_for_llm").or(json::text(result, "textResultForLlm"));
            if let Some(body) = work::of_result(&name, words.unwrap_or_default()) {
                context.push(out, body);
            }
            context.push(out, SignalBody::ToolFinished { id: format!("hook:{name}"), name, failed: false });
        }
        "PostToolUseFailure" => {
            let name = tool_name(value);
            context.push(out, SignalBody::ToolFinished { id: format!("hook:{name}"), name, failed: true });
        }
        // Comes for every call, even where everything is allowed, and the dialog is hidden while this hook runs: no wait,
        // and never a hook to hold.
        "PermissionRequest" => context.push(out, SignalBody::Displayed { what: event.to_owned() }),
        "Notification" => notification(value, context, out),
        "Stop" => {
            let body = SignalBody::Stopped {
                final_message: None,
                can_continue: true,
                continued: json::flag(value, "stop_hook_active"),
                live: None,
            };
            context.push(out, body);
            out.question = Some(HookQuestion::Stop);
        }
        "PreCompact" => context.push(out, SignalBody::Activity { what: Activity::CompactionStarted }),
        "ErrorOccurred" => {
            // Once per attempt; a recoverable one is tried again.
            let recoverable = json::flag(value, "recoverable");
            let body = if recoverable {
                SignalBody::Activity { what: Activity::Progress }
            } else {
                let error = value.get("error").unwrap_or(&Value::Null);
                SignalBody::Failed { message: json::text(error, "message").map(label), fatal: false }
            };
            context.push(out, body);
        }
        "SessionEnd" => {
            let body = match json::text(value, "reason") {
                Some("user_exit") => {
                    SignalBody::SessionEnded { reason: EndReason::Reported, successor: None }
                }
                Some("error") => SignalBody::Failed { message: None, fatal: false },
                // Print mode says `complete` after every turn; the process or the transcript tells the end.
                _ => SignalBody::Displayed { what: event.to_owned() },
            };
            context.push(out, body);
        }
        _ => {
            unknown(out, event);
            context.push(out, SignalBody::Unknown { event: label(event) });
        }
    }
}

fn subagent_event(event: &str, agent: String, context: &Context, out: &mut Parsed) {
    match event {
        // A prompt re-opens an agent that was idle.
        "SubagentStart" | "UserPromptSubmit" => {
            context.push(out, work::started(agent, WorkKind::Subagent));
        }
        "SubagentStop" => context.push(out, work::finished(agent, WorkEnd::Completed)),
        "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "ErrorOccurred" => {
            context.push(out, SignalBody::Activity { what: Activity::Progress });
        }
        "PermissionRequest" | "Stop" | "Notification" | "PreCompact" | "SessionStart" | "SessionEnd" => {
            context.push(out, SignalBody::Displayed { what: event.to_owned() });
        }
        _ => {
            unknown(out, event);
            context.push(out, SignalBody::Unknown { event: label(event) });
        }
    }
}

fn tool_name(value: &Value) -> String {
    let name = json::text(value, "tool_name").or(json::text(value, "toolName"));
    name.map_or_else(String::new, label)
}

fn notification(value: &Value, context: &Context, out: &mut Parsed) {
    let kind = json::text(value, "notification_type").unwrap_or_default();
    let lock = |subject| SignalBody::SoftLocked { reason: kind.to_owned(), subject };
    let body = match kind {
        "permission_prompt" => lock(LockSubject::Session),
        "elicitation_dialog" => lock(LockSubject::ToolNamed(QUESTION_TOOL.to_owned())),
        "shell_completed" | "shell_detached_completed" => {
            let message = json::text(value, "message").unwrap_or_default();
            work::ended_shell(message).unwrap_or_else(|| SignalBody::Displayed { what: label(kind) })
        }
        // Names no agent; the transcript's notice does.
        "agent_idle" | "agent_completed" => SignalBody::Displayed { what: label(kind) },
        _ => {
            unknown(out, &format!("notification {kind}"));
            SignalBody::Displayed { what: label(kind) }
        }
    };
    context.push(out, body);
}

#[cfg(test)]
mod tests;
