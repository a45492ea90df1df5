//! Recorded sessions replayed while something goes wrong. A state must become right again within a bound, and whether the
//! machine must be kept awake must be right once the inactivity rule had its time.

mod bounds;
mod change;
mod evidence;
mod report;
mod unseen;
mod verdict;

use anyhow::Context as _;
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

pub use bounds::beyond;
pub use change::{Change, Kind};
pub use verdict::{Baseline, Outcome, Verdict, verdict};

use crate::recordings::{Recording, agent_of, find};

/// What to replay, and what goes wrong.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A folder of recordings (AGENT/SCENARIO), one agent's folder, or one recording
    dir: PathBuf,
    /// One JSON object a run instead of text
    #[arg(long)]
    json: bool,
    /// Only these folders of agents (claude, codex, codex-daemon, …)
    #[arg(long, value_delimiter = ',', value_name = "AGENT")]
    only: Vec<String>,
    /// Only these kinds of disturbance
    #[arg(long, value_delimiter = ',', value_name = "KIND")]
    kind: Vec<Kind>,
    /// Print every run that was not right at once
    #[arg(long, conflicts_with = "json")]
    all: bool,
}

/// Replays with every disturbance and prints; success only if nothing is wrong, and the project's own recordings cost no more than
/// is known.
///
/// # Errors
/// When a recording cannot be read.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let found = find(&args.dir).with_context(|| format!("cannot list {}", args.dir.display()))?;
    let wanted = found.into_iter().filter(|path| args.only.is_empty() || args.only.contains(&agent_of(path)));
    let recordings = wanted.map(|path| Recording::load(&path)).collect::<anyhow::Result<Vec<_>>>()?;
    anyhow::ensure!(!recordings.is_empty(), "no recordings below {}", args.dir.display());
    let kinds = if args.kind.is_empty() { Kind::ALL.to_vec() } else { args.kind.clone() };
    let verdicts = verdicts(&recordings, &kinds)?;
    let beyond = if bounds::is_own(&args.dir) { beyond(&verdicts) } else { Vec::new() };
    Ok(report::print(args, &verdicts, &beyond))
}

/// Every disturbance of these kinds of every recording, on all cores, in a fixed order.
///
/// # Errors
/// When no adapter is built in for a recording's agent.
pub fn verdicts(recordings: &[Recording], kinds: &[Kind]) -> anyhow::Result<Vec<Verdict>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, anyhow::Result<Vec<Verdict>>)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(recording) = recordings.get(number) else { return };
                    let verdicts = of_recording(recording, kinds);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((number, verdicts));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    let mut all = Vec::new();
    for (_, verdicts) in done {
        all.extend(verdicts?);
    }
    Ok(all)
}

fn of_recording(recording: &Recording, kinds: &[Kind]) -> anyhow::Result<Vec<Verdict>> {
    let baseline = Baseline::of(recording)?;
    let mut verdicts = Vec::new();
    for kind in kinds {
        for change in Change::all(*kind, recording) {
            verdicts.push(verdict(recording, &baseline, *kind, change)?);
        }
    }
    Ok(verdicts)
}
