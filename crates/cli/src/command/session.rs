//! `start`, `stop`, `activity`, `softlock`, `clear-softlock`, `remove`: statements about sessions by people and scripts.

use std::path::PathBuf;

use clap::Args;
use watchkeeper_api::Method;
use watchkeeper_api::method::{
    Acknowledged, SessionActivity, SessionActivityParams, SessionClearSoftlock, SessionParams, SessionRemove,
    SessionSoftlock, SessionSoftlockParams, SessionStart, SessionStartParams, SessionStop, SessionStopParams,
};
use watchkeeper_core::AgentKind;

use crate::{
    app::{App, Outcome},
    exit,
    output::{plain, style},
};

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// claude, codex, copilot, opencode, gemini, qwen, acp, mcp, run, or one that a file in your configuration declares
    #[arg(value_parser = AgentKind::named)]
    agent: AgentKind,
    /// The agent's own id of the session; a fresh one when left out
    #[arg(long)]
    id: Option<String>,
    /// The provider's name, for acp and mcp
    #[arg(long)]
    namespace: Option<String>,
    #[arg(long)]
    prompt: Option<String>,
    #[arg(long)]
    title: Option<String>,
    /// The session's folder; the present one when left out
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// The agent's process; found among this program's ancestors when left out
    #[arg(long)]
    pid: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    session: String,
    /// What the agent said last
    #[arg(long)]
    message: Option<String>,
    /// The session is over, not only its turn
    #[arg(long)]
    end: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ActivityArgs {
    session: String,
}

#[derive(Debug, Args)]
pub(crate) struct SoftlockArgs {
    session: String,
    /// What it waits for
    #[arg(long, default_value = "waiting_for_user_input")]
    reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct SelectArgs {
    /// An id, an unambiguous beginning of one, or AGENT:ID
    session: String,
}

pub(super) fn start(app: &App, args: StartArgs) -> Outcome {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let params = SessionStartParams {
        agent: args.agent,
        namespace: args.namespace,
        id: args.id,
        prompt: args.prompt,
        title: args.title,
        // A folder that cannot be read is no reason to refuse a start.
        cwd: args.cwd.or_else(|| std::env::current_dir().ok()).map(text),
        transcript: args.transcript.map(text),
        pid: args.pid,
    };
    say::<SessionStart>(app, &format!("cannot start a session of {}", args.agent), &params)
}

pub(super) fn stop(app: &App, args: StopArgs) -> Outcome {
    let what = format!("cannot stop '{}'", args.session);
    let params = SessionStopParams { session: args.session, message: args.message, end: args.end };
    say::<SessionStop>(app, &what, &params)
}

pub(super) fn activity(app: &App, args: ActivityArgs) -> Outcome {
    let what = format!("cannot record activity of '{}'", args.session);
    say::<SessionActivity>(app, &what, &SessionActivityParams { session: args.session })
}

pub(super) fn softlock(app: &App, args: SoftlockArgs) -> Outcome {
    let what = format!("cannot soft-lock '{}'", args.session);
    say::<SessionSoftlock>(app, &what, &SessionSoftlockParams { session: args.session, reason: args.reason })
}

pub(super) fn clear_softlock(app: &App, args: SelectArgs) -> Outcome {
    let what = format!("cannot clear the soft-lock of '{}'", args.session);
    say::<SessionClearSoftlock>(app, &what, &SessionParams { session: args.session })
}

pub(super) fn remove(app: &App, args: SelectArgs) -> Outcome {
    let what = format!("cannot remove '{}'", args.session);
    say::<SessionRemove>(app, &what, &SessionParams { session: args.session })
}

fn say<M: Method<Output = Acknowledged>>(app: &App, what: &str, params: &M::Params) -> Outcome {
    let acknowledged = app.ask::<M>(what, params)?;
    app.answer(&acknowledged, |app| {
        let state = acknowledged.state.map_or_else(
            || "not known any more".to_owned(),
            |state| app.terminal.paint(style::state(state), state.name()),
        );
        let note = acknowledged.note.as_ref().map(|note| format!(" ({})", plain(note)));
        format!("{} is {state}{}\n", plain(&acknowledged.session), note.unwrap_or_default())
    })?;
    Ok(exit::SUCCESS)
}
