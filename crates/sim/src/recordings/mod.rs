//! Replays recorded sessions of real agents through the real adapters and the real core, in virtual time, and judges
//! the states that come out against labels of what was true.
//!
//! Nothing in a recording is special to this runner: it reads the three files that every recording has.

mod judge;
mod load;
mod replay;
mod report;
mod restart;
mod truth;

use anyhow::Context as _;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use watchkeeper_core::AgentKind;

pub use judge::{Interval, Judged, Wrong, judge};
pub use load::{Event, EventKind, Label, Recording, STATES, find};
pub use replay::{NoAdapter, Replay};
pub(crate) use {
    judge::{TOLERANCE_S, judge_within},
    replay::{Told, word_for},
    truth::Truth,
};

/// What to replay.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder of recordings (AGENT/SCENARIO), one agent's folder, or one recording
    dir: PathBuf,
    /// One JSON object a recording instead of text
    #[arg(long, conflicts_with = "table")]
    json: bool,
    /// One line an agent, as a Markdown table
    #[arg(long)]
    table: bool,
    /// Only these folders of agents (claude, codex, codex-daemon, …); by default all that have an adapter
    #[arg(long, value_delimiter = ',', value_name = "AGENT")]
    only: Vec<String>,
    /// Print the evidence behind every session's states
    #[arg(long)]
    explain: bool,
}

/// Replays and prints; success only if nothing is wrong.
///
/// # Errors
/// When the folder cannot be listed or has no recordings.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let found = find(&args.dir).with_context(|| format!("cannot list {}", args.dir.display()))?;
    anyhow::ensure!(!found.is_empty(), "no recording.json below {}", args.dir.display());
    let mut report = report::Report::new(args);
    for path in &found {
        let agent = agent_of(path);
        if !args.only.is_empty() && !args.only.contains(&agent) {
            continue;
        }
        if kind_of(&agent).and_then(watchkeeper_agents::adapter).is_none() {
            report.left_out(&agent);
            continue;
        }
        let recording = match Recording::load(path) {
            Ok(recording) => recording,
            Err(error) => {
                report.broken(&path.display().to_string(), &error);
                continue;
            }
        };
        let mut replay = Replay::new(&recording)?;
        replay.run(&recording.events, recording.end());
        report.judged(&recording, &judge(&recording, &replay), &replay);
    }
    Ok(report.finish())
}

/// The folder name that tells the agent.
pub(crate) fn agent_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().and_then(Path::file_name);
    folder.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The agent whose adapter reads such a folder's recordings.
pub(crate) fn kind_of(folder: &str) -> Option<AgentKind> {
    match folder {
        // Codex below its shared server.
        "codex-daemon" => Some(AgentKind::Codex),
        // Claude Code driven by a client of the protocol: its hooks are Claude's.
        "acp" => Some(AgentKind::Claude),
        other => other.parse().ok(),
    }
}
