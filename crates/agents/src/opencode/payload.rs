//! OpenCode's events as observations: those of its bus (`{type, properties}`) and its plugin hooks (`{input, output}`),
//! as our plugin got them. The name on the command line tells which it is.
//!
//! Names and fields as of 1.18.33; of the second plugin surface, which has no recordings, the names that its types and
//! its users give. A turn is named by its user message. A subagent is a session of its own with a parent; whether a
//! session is one is said when it is made, and by its later updates, never by what it does.

use serde_json::Value;
use watchkeeper_core::{
    TurnId,
    input::HookQuestion,
    signal::{
        Activity, EndReason, Facts, LockSubject, Prompt, PromptOrigin, SignalBody, StartCause, Thread,
        WorkEnd, WorkKind,
    },
};

use super::task;
use crate::{
    adapter::Parsed,
    content_parts::words,
    json,
    observe::{Context, id, label, malformed, path, unknown},
};

/// The tool by which OpenCode asks its person; the dialog's own event follows.
const QUESTION_TOOL: &str = "question";

/// Titles that OpenCode gives before it has one.
const PLACEHOLDER_TITLES: [&str; 2] = ["New session - ", "Child session - "];

/// Events that say nothing about a turn, a wait or work; for whole families the beginning of their names.
const QUIET: [&str; 31] = [
    "init",
    "dispose",
    "process.exit",
    "config",
    "chat.params",
    "chat.headers",
    "command.",
    "shell.env",
    "message.",
    "session.diff",
    "experimental.",
    "todo.",
    "file.",
    "lsp.",
    "mcp.",
    "vcs.",
    "pty.",
    "tui.",
    "ide.",
    "project.",
    "plugin.",
    "catalog.",
    "integration.",
    "installation.",
    "models-dev.",
    "reference.",
    "server.",
    "global.",
    "workspace.",
    "worktree.",
    "tool.definition",
];

pub(super) fn parse(event: Option<&str>, payload: &[u8]) -> Parsed {
    let value = match json::parse_object(payload) {
        Ok(value) => value,
        Err(json::Refused::Empty) if event.is_some_and(is_quiet) => return Parsed::default(),
        Err(refused) => return malformed(refused),
    };
    let Some(event) = event.or(json::text(&value, "type")) else {
        return malformed("no event name");
    };
    // A hook's input names the session, an event's properties or what they are about do.
    let said = value.get("properties").or(value.get("input")).unwrap_or(&Value::Null);
    let info = said.get("info").unwrap_or(&Value::Null);
    let Some(session) = id(said, "sessionID").or(id(info, "id").filter(|_| event.starts_with("session.")))
    else {
        let mut out = Parsed::default();
        // An error outside of any session, and events of the program, concern none.
        if !is_quiet(event) && event != "session.error" {
            return malformed(format_args!("{} without a session", label(event)));
        }
        out.unknown.clear();
        return out;
    };
    let context = Context { session: Some(session.to_owned()), ..Context::default() };
    let mut out = Parsed::default();
    match event {
        "session.created" | "session.updated" | "session.deleted" => {
            about_session(event, session, info, context, &mut out);
        }
        _ => read_event(event, session, said, &value, context, &mut out),
    }
    out
}

fn is_quiet(event: &str) -> bool {
    QUIET.iter().any(|quiet| match quiet.strip_suffix('.') {
        Some(_) => event.starts_with(quiet),
        None => event == *quiet,
    })
}

/// What a session is: its place, its title, whose subagent.
fn about_session(event: &str, session: &str, info: &Value, mut context: Context, out: &mut Parsed) {
    if let Some(parent) = id(info, "parentID") {
        context.session = Some(parent.to_owned());
        let body = match event {
            "session.created" => SignalBody::WorkStarted {
                id: session.to_owned(),
                what: WorkKind::Subagent,
                label: json::text(info, "title").map(label),
                process: None,
            },
            "session.deleted" => finished(session, WorkEnd::Killed),
            _ => {
                context.thread = Thread::Subagent(session.to_owned());
                SignalBody::Displayed { what: label(event) }
            }
        };
        return context.push(out, body);
    }
    context.facts = Facts {
        cwd: path(info, "directory"),
        title: json::text(info, "title")
            .filter(|title| !PLACEHOLDER_TITLES.iter().any(|placeholder| title.starts_with(placeholder)))
            .map(label),
        agent_version: json::text(info, "version").map(label),
        ..Facts::default()
    };
    let body = match event {
        "session.created" => SignalBody::SessionStarted { cause: StartCause::Startup },
        "session.deleted" => SignalBody::SessionEnded { reason: EndReason::Reported, successor: None },
        _ => SignalBody::Displayed { what: label(event) },
    };
    context.push(out, body);
}

fn read_event(event: &str, session: &str, said: &Value, value: &Value, context: Context, out: &mut Parsed) {
    match event {
        "chat.message" => prompt(value.get("output").unwrap_or(&Value::Null), context, out),
        "session.status" => status(session, said, can_answer(value), &context, out),
        "session.idle" => {
            // Whether it is a subagent is not said here; for a session itself the id is no work's.
            context.push(out, finished(session, WorkEnd::Completed));
            context.push(out, SignalBody::IdleNoticed);
        }
        "session.execution.succeeded" => stopped(session, can_answer(value), &context, out),
        "session.error" => {
            let error = said.get("error").unwrap_or(&Value::Null);
            let body = match json::text(error, "name") {
                Some("MessageAbortedError") => SignalBody::Aborted { tools_to_work: false, call: None },
                _ => {
                    let words = error.get("data").and_then(|data| json::text(data, "message"));
                    SignalBody::Failed {
                        message: words.or(json::text(error, "name")).map(label),
                        fatal: false,
                    }
                }
            };
            context.push(out, body);
        }
        "session.execution.failed" => {
            context.push(out, finished(session, WorkEnd::Failed));
            context.push(out, SignalBody::Failed { message: None, fatal: false });
        }
        "session.execution.interrupted" => {
            context.push(out, finished(session, WorkEnd::Killed));
            context.push(out, SignalBody::Aborted { tools_to_work: false, call: None });
        }
        "experimental.session.compacting" => {
            context.push(out, SignalBody::Activity { what: Activity::CompactionStarted });
        }
        "session.compacted" => {
            context.push(out, SignalBody::Activity { what: Activity::CompactionFinished });
        }
        "message.part.updated" => part(said, &context, out),
        "tool.execute.before" => {
            if let Some((id, name)) = call(said) {
                let asks = name == QUESTION_TOOL;
                context.push(out, SignalBody::ToolStarted { id: id.clone(), name });
                if asks {
                    let (reason, subject) = ("question".to_owned(), LockSubject::Tool(id));
                    context.push(out, SignalBody::SoftLocked { reason, subject });
                }
            }
        }
        "tool.execute.after" => tool_finished(said, value, &context, out),
        _ => ask_or_answer(event, said, can_answer(value), &context, out),
    }
}

/// Whether our plugin could carry an answer out where it runs.
fn can_answer(value: &Value) -> bool {
    !json::flag(value, "unanswerable")
}

fn finished(id: &str, cause: WorkEnd) -> SignalBody {
    SignalBody::WorkFinished { id: id.to_owned(), cause }
}

/// The end of a turn; it may be one that can be answered.
fn stopped(session: &str, can_continue: bool, context: &Context, out: &mut Parsed) {
    context.push(out, finished(session, WorkEnd::Completed));
    let body = SignalBody::Stopped { final_message: None, can_continue, continued: false, live: None };
    context.push(out, body);
    out.question = can_continue.then_some(HookQuestion::Stop);
}

fn status(session: &str, said: &Value, can_continue: bool, context: &Context, out: &mut Parsed) {
    let kind = said.get("status").and_then(|status| json::text(status, "type")).unwrap_or_default();
    match kind {
        "busy" => context.push(out, SignalBody::Activity { what: Activity::ModelOutput }),
        "retry" => context.push(out, SignalBody::Activity { what: Activity::Progress }),
        // Comes right before `session.idle`.
        "idle" => stopped(session, can_continue, context, out),
        _ => unknown(out, &format!("session.status {kind}")),
    }
}

/// A user message: a person's prompt, or the result of a subagent that worked in the background.
fn prompt(output: &Value, mut context: Context, out: &mut Parsed) {
    context.turn = output.get("message").and_then(|message| id(message, "id")).map(|t| TurnId(t.to_owned()));
    let text = words(output, "parts").unwrap_or_default();
    let is_synthetic = json::items(output, "parts").all(|part| json::flag(part, "synthetic"));
    let origin = if is_synthetic { PromptOrigin::Work } else { PromptOrigin::Person };
    let ended = task::leading(&text).filter(|_| is_synthetic);
    let ended = ended.and_then(|task| Some((task.id.to_owned(), task.end?)));
    context.push(out, SignalBody::Started { prompt: Some(Prompt { text, origin }) });
    if let Some((task, cause)) = ended {
        context.turn = None;
        context.push(out, SignalBody::WorkFinished { id: task, cause });
    }
}

/// The call's id and the tool's name; a call without an id cannot be followed.
fn call(said: &Value) -> Option<(String, String)> {
    let name = json::text(said, "tool").map_or_else(String::new, label);
    Some((id(said, "callID")?.to_owned(), name))
}

fn tool_finished(said: &Value, value: &Value, context: &Context, out: &mut Parsed) {
    let Some((id, name)) = call(said) else { return };
    let words = value.get("output").and_then(|output| json::text(output, "output")).unwrap_or_default();
    if let Some(task) = task::leading(words).filter(|_| name == "task") {
        let body = match task.end {
            Some(cause) => finished(task.id, cause),
            None => SignalBody::WorkStarted {
                id: task.id.to_owned(),
                what: WorkKind::Subagent,
                label: None,
                process: None,
            },
        };
        context.push(out, body);
    }
    context.push(out, SignalBody::ToolFinished { id, name, failed: false });
}

/// A part of a message: a call that failed or was rejected ends here and nowhere else. Parts are updated late, too.
fn part(said: &Value, context: &Context, out: &mut Parsed) {
    let part = said.get("part").unwrap_or(&Value::Null);
    let state = part.get("state").and_then(|state| json::text(state, "status"));
    let body = match (call(part), state) {
        (Some((id, name)), Some("completed" | "error")) => {
            SignalBody::ToolFinished { id, name, failed: state == Some("error") }
        }
        (_, _) => SignalBody::Activity { what: Activity::Progress },
    };
    context.push(out, body);
}

/// Dialogs: both generations of the names.
fn ask_or_answer(event: &str, said: &Value, can_answer: bool, context: &Context, out: &mut Parsed) {
    let lock = |reason: &str, out: &mut Parsed| {
        let subject = dialog(said).map_or(LockSubject::Session, LockSubject::Question);
        context.push(out, SignalBody::SoftLocked { reason: reason.to_owned(), subject });
    };
    match event {
        "permission.asked" | "permission.v2.asked" | "permission.updated" => {
            lock("permission_prompt", out);
            out.question = can_answer.then_some(HookQuestion::Permission);
        }
        "question.asked" | "question.v2.asked" => lock("question", out),
        "form.created" => lock("elicitation_dialog", out),
        "permission.replied"
        | "permission.v2.replied"
        | "question.replied"
        | "question.v2.replied"
        | "question.rejected"
        | "question.v2.rejected"
        | "form.replied"
        | "form.cancelled" => {
            let subject = dialog(said).map_or(LockSubject::Session, LockSubject::Question);
            context.push(out, SignalBody::LockResolved { subject });
        }
        quiet if is_quiet(quiet) => {}
        _ => {
            unknown(out, event);
            context.push(out, SignalBody::Unknown { event: label(event) });
        }
    }
}

/// Which dialog an event is about.
fn dialog(said: &Value) -> Option<String> {
    let form = said.get("form").unwrap_or(&Value::Null);
    let named = id(said, "requestID").or(id(said, "permissionID")).or(id(said, "id")).or(id(form, "id"));
    named.map(str::to_owned)
}

#[cfg(test)]
mod tests;
