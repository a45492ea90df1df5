//! Codex's hook payloads and its legacy `notify` argument as observations.
//!
//! Fields as sent by 0.171.0. A subagent's events carry the parent's session id and an agent id of their own.

use serde_json::Value;
use watchkeeper_core::{
    TurnId,
    input::HookQuestion,
    signal::{
        Activity, EndReason, Facts, LockSubject, Prompt, PromptOrigin, SignalBody, StartCause, Thread,
        WorkEnd, WorkKind,
    },
};

use crate::{
    adapter::Parsed,
    json,
    known_fields::{Form, count_new},
    observe::{Context, HookPayload, id, label, malformed, path, turn, unknown},
};

/// The tool by which Codex asks its person; it has no event of its own.
pub(super) const QUESTION_TOOL: &str = "request_user_input";

pub(super) fn parse(event: Option<&str>, argv: &[&[u8]], payload: &[u8]) -> Parsed {
    // The legacy notify program gets everything in its last argument and nothing on stdin.
    if let Some(argument) = argv.last()
        && let Ok(value) = json::parse_object(argument)
        && value.get("thread-id").is_some()
    {
        return notify(&value);
    }
    let HookPayload { value, event, mut context } = match HookPayload::parse(event, payload) {
        Ok(read) => read,
        Err(malformed) => return *malformed,
    };
    // A subagent counts its own turns; they are none of the session's.
    context.turn = turn(&value, "turn_id").filter(|_| context.thread == Thread::Main);
    if context.thread != Thread::Main {
        // Most of a subagent's events name the subagent's rollout; the session's own is the one to follow.
        context.facts.transcript = None;
    }
    let mut out = Parsed::default();
    read_event(&event, &value, context, &mut out);
    count_new(Form::Codex, &value, &mut out);
    out
}

fn read_event(event: &str, value: &Value, mut context: Context, out: &mut Parsed) {
    match event {
        "SessionStart" => {
            let cause = match json::text(value, "source") {
                Some("startup") => StartCause::Startup,
                Some("resume") => StartCause::Resume,
                Some("clear") => StartCause::Clear,
                Some("compact") => StartCause::Compact,
                Some("fork") => StartCause::Fork,
                _ => StartCause::Other,
            };
            context.push(out, SignalBody::SessionStarted { cause });
        }
        "UserPromptSubmit" => {
            if let Thread::Subagent(agent) = &context.thread {
                // A subagent that is given a (further) task is live again.
                context.push(out, subagent_started(agent, value));
            } else {
                let text = json::text(value, "prompt").unwrap_or_default().to_owned();
                let prompt = Some(Prompt { text, origin: PromptOrigin::Person });
                context.push(out, SignalBody::Started { prompt });
            }
        }
        "PreToolUse" => {
            if let Some((call, name)) = tool(value) {
                let asks = name == QUESTION_TOOL;
                context.push(out, SignalBody::ToolStarted { id: call.clone(), name });
                if asks {
                    let subject = LockSubject::Tool(call);
                    context.push(out, SignalBody::SoftLocked { reason: "question".to_owned(), subject });
                }
            }
        }
        "PermissionRequest" => {
            let name = json::text(value, "tool_name").map_or_else(String::new, label);
            let subject = LockSubject::ToolNamed(name);
            context.push(out, SignalBody::SoftLocked { reason: "permission_prompt".to_owned(), subject });
            out.question = Some(HookQuestion::Permission);
        }
        "PostToolUse" => {
            if let Some((id, name)) = tool(value) {
                context.push(out, SignalBody::ToolFinished { id, name, failed: false });
            }
        }
        "Stop" if context.thread == Thread::Main => {
            let body = SignalBody::Stopped {
                final_message: json::text(value, "last_assistant_message").map(str::to_owned),
                can_continue: true,
                continued: json::flag(value, "stop_hook_active"),
                live: None,
            };
            context.push(out, body);
            out.question = Some(HookQuestion::Stop);
        }
        "Stop" => context.push(out, SignalBody::Displayed { what: "Stop of a subagent".to_owned() }),
        "Interrupt" => {
            // Commands in flight go on as background terminals.
            context.push(out, SignalBody::Aborted { tools_to_work: true, call: None });
        }
        "SubagentStart" => {
            if let Thread::Subagent(agent) = &context.thread {
                context.push(out, subagent_started(agent, value));
            }
        }
        "SubagentStop" => {
            if let Thread::Subagent(agent) = &context.thread {
                let body = SignalBody::WorkFinished { id: agent.clone(), cause: WorkEnd::Completed };
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
        "SessionEnd" => {
            context.push(out, SignalBody::SessionEnded { reason: EndReason::Reported, successor: None });
        }
        _ => {
            unknown(out, event);
            context.push(out, SignalBody::Unknown { event: label(event) });
        }
    }
}

fn tool(value: &Value) -> Option<(String, String)> {
    let call = id(value, "tool_use_id")?;
    Some((call.to_owned(), json::text(value, "tool_name").map_or_else(String::new, label)))
}

fn subagent_started(agent: &str, value: &Value) -> SignalBody {
    let label = json::text(value, "agent_type").map(label);
    SignalBody::WorkStarted { id: agent.to_owned(), what: WorkKind::Subagent, label, process: None }
}

/// `agent-turn-complete`: runs without trust, so it may be all that is heard of a session. It also comes for hidden
/// threads (title generation) and subagents, which a stop of an unknown session does not bring to life.
fn notify(value: &Value) -> Parsed {
    let mut out = Parsed::default();
    let kind = json::text(value, "type").unwrap_or_default();
    if kind != "agent-turn-complete" {
        unknown(&mut out, &format!("notify {kind}"));
        return out;
    }
    let Some(thread) = id(value, "thread-id") else { return malformed("no thread id") };
    let context = Context {
        session: Some(thread.to_owned()),
        turn: id(value, "turn-id").map(|t| TurnId(t.to_owned())),
        facts: Facts { cwd: path(value, "cwd"), ..Facts::default() },
        ..Context::default()
    };
    let final_message = json::text(value, "last-assistant-message").map(str::to_owned);
    context.push(
        &mut out,
        SignalBody::Stopped { final_message, can_continue: false, continued: false, live: None },
    );
    // `codex exec` runs one turn and ends what it left in the background itself.
    if json::text(value, "client") == Some("codex_exec") {
        context.push(&mut out, SignalBody::SessionEnded { reason: EndReason::Reported, successor: None });
    }
    out
}

#[cfg(test)]
mod tests;
