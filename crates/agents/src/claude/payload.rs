//! Claude Code's hook payloads (stdin JSON, one event each) as observations.
//!
//! Field names and orders as sent by 2.1.332; unknown events and task kinds are counted, never fatal.

use serde_json::Value;
use watchkeeper_core::{
    input::HookQuestion,
    signal::{
        Activity, EndReason, LockSubject, Prompt, PromptOrigin, SignalBody, StartCause, Thread, WorkEnd,
        WorkItem, WorkKind,
    },
};

use crate::{
    adapter::Parsed,
    json,
    known_fields::{Form, count_new},
    observe::{Context, HookPayload, id, label, turn, unknown},
    task_notification::notices,
};

/// The tools by which Claude asks its person; both raise a permission request even where permissions are skipped.
const QUESTION_TOOL: &str = "AskUserQuestion";
const PLAN_TOOL: &str = "ExitPlanMode";

pub(super) fn parse(event: Option<&str>, payload: &[u8]) -> Parsed {
    let HookPayload { value, event, mut context } = match HookPayload::parse(event, payload) {
        Ok(read) => read,
        Err(malformed) => return *malformed,
    };
    context.turn = turn(&value, "prompt_id");
    let mut out = Parsed::default();
    read_event(&event, &value, &mut context, &mut out);
    count_new(Form::Claude, &value, &mut out);
    out
}

fn read_event(event: &str, value: &Value, context: &mut Context, out: &mut Parsed) {
    match event {
        "SessionStart" => {
            context.turn = None;
            let cause = start_cause(json::text(value, "source"));
            context.push(out, SignalBody::SessionStarted { cause });
        }
        "UserPromptSubmit" => prompt(value, context, out),
        "PreToolUse" => {
            if let Some((id, name)) = tool(value) {
                // What follows is the person's, whether or not the permission request is heard.
                let asks = matches!(name.as_str(), QUESTION_TOOL | PLAN_TOOL).then(|| asked_by(&name));
                context.push(out, SignalBody::ToolStarted { id: id.clone(), name });
                if let Some(reason) = asks {
                    let subject = LockSubject::Tool(id);
                    context.push(out, SignalBody::SoftLocked { reason: reason.to_owned(), subject });
                }
            }
        }
        "PermissionRequest" => {
            let name = json::text(value, "tool_name").map_or_else(String::new, label);
            let reason = asked_by(&name);
            let subject = LockSubject::ToolNamed(name);
            context.push(out, SignalBody::SoftLocked { reason: reason.to_owned(), subject });
            out.question = Some(HookQuestion::Permission);
        }
        "PermissionDenied" => {
            if let Some((_, name)) = tool(value) {
                context.push(out, SignalBody::LockResolved { subject: LockSubject::ToolNamed(name) });
            }
        }
        "PostToolUse" => {
            if let Some((id, name)) = tool(value) {
                tool_finished(value, context, id, name, out);
            }
        }
        "PostToolUseFailure" => {
            if let Some((id, name)) = tool(value) {
                context.push(out, SignalBody::ToolFinished { id, name, failed: true });
            }
        }
        "PostToolBatch" => {
            // Comes after denied calls too, which have no event of their own.
            for call in json::items(value, "tool_calls") {
                if let Some((id, name)) = tool(call) {
                    context.push(out, SignalBody::ToolFinished { id, name, failed: false });
                }
            }
        }
        "Notification" => notification(value, context, out),
        "Stop" => {
            let live = live_work(value, out);
            if context.thread == Thread::Main {
                out.question = Some(HookQuestion::Stop);
                let body = SignalBody::Stopped {
                    final_message: json::text(value, "last_assistant_message").map(str::to_owned),
                    can_continue: true,
                    continued: json::flag(value, "stop_hook_active"),
                    live,
                };
                context.push(out, body);
            }
        }
        "StopFailure" => {
            let message = json::text(value, "last_assistant_message").or(json::text(value, "error"));
            let message = message.map(label);
            context.push(out, SignalBody::Failed { message, fatal: false });
        }
        "SubagentStart" => {
            if let Some(agent) = id(value, "agent_id") {
                let body = SignalBody::WorkStarted {
                    id: agent.to_owned(),
                    what: WorkKind::Subagent,
                    label: json::text(value, "agent_type").map(label),
                    process: None,
                };
                context.push(out, body);
            }
        }
        "SubagentStop" => subagent_stop(value, context, out),
        "TaskCreated" => {
            if let Some(task) = id(value, "task_id") {
                let body = SignalBody::WorkStarted {
                    id: task.to_owned(),
                    what: WorkKind::Task,
                    label: json::text(value, "task_subject").map(label),
                    process: None,
                };
                context.push(out, body);
            }
        }
        "TaskCompleted" => {
            if let Some(task) = id(value, "task_id") {
                let body = SignalBody::WorkFinished { id: task.to_owned(), cause: WorkEnd::Completed };
                context.push(out, body);
            }
        }
        "PreCompact" => {
            context.turn = None;
            context.push(out, SignalBody::Activity { what: Activity::CompactionStarted });
        }
        "PostCompact" => {
            context.turn = None;
            context.push(out, SignalBody::Activity { what: Activity::CompactionFinished });
        }
        "Elicitation" => {
            let subject = elicitation(value);
            context.push(out, SignalBody::SoftLocked { reason: "elicitation_dialog".to_owned(), subject });
        }
        "ElicitationResult" => {
            context.push(out, SignalBody::LockResolved { subject: elicitation(value) });
        }
        "SessionEnd" => {
            // Its prompt id is that of the local command that ended the session: no turn of the model.
            context.turn = None;
            let reason = match json::text(value, "reason") {
                // Another conversation takes over in the same process.
                Some("clear" | "resume") => EndReason::Cleared,
                _ => EndReason::Reported,
            };
            context.push(out, SignalBody::SessionEnded { reason, successor: None });
        }
        "MessageDisplay"
        | "UserPromptExpansion"
        | "PreModelSwitch"
        | "PostModelSwitch"
        | "Setup"
        | "TeammateIdle"
        | "ConfigChange"
        | "WorktreeCreate"
        | "WorktreeRemove"
        | "InstructionsLoaded"
        | "CwdChanged"
        | "FileChanged"
        | "DirectoryAdded"
        | "PreSkillShellCommand" => {
            context.push(out, SignalBody::Displayed { what: event.to_owned() });
        }
        _ => {
            unknown(out, event);
            context.push(out, SignalBody::Unknown { event: label(event) });
        }
    }
}

/// What a person is asked who must answer a call of this tool.
fn asked_by(tool: &str) -> &'static str {
    match tool {
        QUESTION_TOOL => "question",
        PLAN_TOOL => "plan_approval",
        _ => "permission_prompt",
    }
}

fn start_cause(source: Option<&str>) -> StartCause {
    match source {
        Some("startup") => StartCause::Startup,
        Some("resume") => StartCause::Resume,
        Some("clear") => StartCause::Clear,
        Some("compact") => StartCause::Compact,
        Some("fork") => StartCause::Fork,
        _ => StartCause::Other,
    }
}

/// A prompt begins a turn; one that delivers the end of background work finishes that work as well.
fn prompt(value: &Value, context: &Context, out: &mut Parsed) {
    if context.thread != Thread::Main {
        context.push(out, SignalBody::Activity { what: Activity::Progress });
        return;
    }
    let text = json::text(value, "prompt").unwrap_or_default();
    let notices = notices(text);
    let origin = if notices.is_empty() { PromptOrigin::Person } else { PromptOrigin::Work };
    context.push(out, SignalBody::Started { prompt: Some(Prompt { text: text.to_owned(), origin }) });
    for notice in notices {
        if let Some(cause) = notice.end {
            context.push(out, SignalBody::WorkFinished { id: notice.task, cause });
        }
    }
}

/// The call's id and the tool's name; a call without an id cannot be followed.
fn tool(value: &Value) -> Option<(String, String)> {
    let id = id(value, "tool_use_id")?;
    let name = json::text(value, "tool_name").map_or_else(String::new, label);
    Some((id.to_owned(), name))
}

fn tool_finished(value: &Value, context: &Context, id_of_call: String, name: String, out: &mut Parsed) {
    let response = value.get("tool_response").unwrap_or(&Value::Null);
    let input = value.get("tool_input").unwrap_or(&Value::Null);
    if let Some((work, what)) = started_work(&name, response) {
        let description = json::text(input, "description").or(json::text(input, "command"));
        let body = SignalBody::WorkStarted { id: work, what, label: description.map(label), process: None };
        context.push(out, body);
    }
    if matches!(name.as_str(), "TaskStop" | "KillShell" | "KillBash") {
        for key in ["task_id", "shell_id", "bash_id"] {
            if let Some(task) = id(input, key) {
                let body = SignalBody::WorkFinished { id: task.to_owned(), cause: WorkEnd::Killed };
                context.push(out, body);
            }
        }
    }
    context.push(out, SignalBody::ToolFinished { id: id_of_call, name, failed: false });
}

/// Background work that a finished tool call left running, by the shape of its response.
pub(super) fn started_work(tool: &str, response: &Value) -> Option<(String, WorkKind)> {
    if let Some(task) = id(response, "backgroundTaskId") {
        return Some((task.to_owned(), WorkKind::Shell));
    }
    if json::flag(response, "isAsync") || json::text(response, "status") == Some("async_launched") {
        return id(response, "agentId").map(|agent| (agent.to_owned(), WorkKind::Subagent));
    }
    if tool == "Monitor" {
        return id(response, "taskId").map(|task| (task.to_owned(), WorkKind::Monitor));
    }
    None
}

fn notification(value: &Value, context: &mut Context, out: &mut Parsed) {
    let kind = json::text(value, "notification_type").unwrap_or_default();
    match kind {
        "permission_prompt" | "elicitation_dialog" => {
            let body = SignalBody::SoftLocked { reason: kind.to_owned(), subject: LockSubject::Session };
            context.push(out, body);
        }
        "agent_needs_input" => {
            let body =
                SignalBody::SoftLocked { reason: "question".to_owned(), subject: LockSubject::Session };
            context.push(out, body);
        }
        "idle_prompt" => context.push(out, SignalBody::IdleNoticed),
        "" => {}
        _ => {
            unknown(out, &format!("notification {kind}"));
            context.push(out, SignalBody::Displayed { what: format!("Notification {}", label(kind)) });
        }
    }
}

fn subagent_stop(value: &Value, context: &Context, out: &mut Parsed) {
    let Some(agent) = id(value, "agent_id") else { return };
    let live = live_work(value, out);
    let body = SignalBody::WorkFinished { id: agent.to_owned(), cause: WorkEnd::Completed };
    context.push(out, body);
    if let Some(live) = live {
        // Its own entry on the list still says running.
        context.push(out, SignalBody::WorkLevel { live, except: Some(agent.to_owned()) });
    }
}

/// The complete list of live work in a Stop or SubagentStop; `None` where it has none (older versions, a cut payload).
fn live_work(value: &Value, out: &mut Parsed) -> Option<Vec<WorkItem>> {
    value.get("background_tasks").filter(|list| list.is_array())?;
    let mut live = Vec::new();
    for task in json::items(value, "background_tasks") {
        if matches!(
            json::text(task, "status"),
            Some("completed" | "failed" | "killed" | "stopped" | "cancelled")
        ) {
            continue;
        }
        let Some(task_id) = id(task, "id") else { continue };
        let kind = match json::text(task, "type").unwrap_or_default() {
            "shell" | "bash" | "powershell" => WorkKind::Shell,
            "subagent" | "agent" => WorkKind::Subagent,
            "monitor" => WorkKind::Monitor,
            "task" => WorkKind::Task,
            other => {
                unknown(out, &format!("background_tasks.type {other}"));
                WorkKind::Task
            }
        };
        let description = json::text(task, "description").or(json::text(task, "command"));
        live.push(WorkItem { id: task_id.to_owned(), kind, label: description.map(label) });
    }
    for cron in json::items(value, "session_crons") {
        if let Some(cron_id) = id(cron, "id") {
            let what = json::text(cron, "schedule").map(label);
            live.push(WorkItem { id: cron_id.to_owned(), kind: WorkKind::Scheduled, label: what });
        }
    }
    Some(live)
}

fn elicitation(value: &Value) -> LockSubject {
    id(value, "elicitation_id")
        .or(id(value, "mcp_server_name"))
        .map_or(LockSubject::Session, |question| LockSubject::Question(question.to_owned()))
}

#[cfg(test)]
mod tests;
