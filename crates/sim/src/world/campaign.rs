//! `simulate`: many seeds on all cores, then what was reached; or one schedule from a file.

use std::{
    fs,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use anyhow::{Context as _, Result};

use super::{
    coverage::Coverage,
    schedule::{Step, schedule},
    shell::play,
    shrink::shrink,
};

/// Failing seeds that are shrunk and printed; more are counted.
const REPORTED: usize = 3;

/// What was reached, how many inputs it took, and the seeds that fail with their problems.
type Findings = (Coverage, u64, Vec<(u64, String)>);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many schedules
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Steps of each schedule
    #[arg(long, default_value_t = 220)]
    steps: usize,
    /// Do not fail for what was not reached
    #[arg(long)]
    partial: bool,
    /// Play a schedule as a failure printed it
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// Runs a campaign.
///
/// # Errors
/// When a schedule's file cannot be read.
#[expect(clippy::print_stdout, reason = "a program for people")]
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(path) = &args.replay {
        return replay(path);
    }
    let begun = Instant::now();
    let next = AtomicU64::new(args.first);
    let end = args.first.saturating_add(args.seeds);
    let found: Mutex<Findings> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let (outcome, coverage, inputs) = play(&schedule(seed, args.steps));
                    let mut all = found.lock().unwrap_or_else(PoisonError::into_inner);
                    all.0.merge(&coverage);
                    all.1 += inputs;
                    if let Err(problem) = outcome {
                        all.2.push((seed, problem));
                    }
                }
            });
        }
    });
    let (coverage, inputs, mut failures) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort();
    for (seed, problem) in failures.iter().take(REPORTED) {
        println!("seed {seed} fails: {problem}");
        let small = shrink(schedule(*seed, args.steps));
        println!("minimal schedule, {} steps (save it and run `simulate --replay FILE`):", small.len());
        for step in &small {
            println!("{}", serde_json::to_string(step).context("cannot write a step")?);
        }
        println!("which says: {:?}\n", play(&small).0);
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} schedules of {} steps, {inputs} inputs in {seconds:.1} s; {}",
        args.seeds,
        args.steps,
        coverage.summary()
    );
    let missing = coverage.missing();
    if !missing.is_empty() {
        println!("not reached: {}", missing.join(", "));
    }
    println!("{} passed, {} failed", args.seeds - failures.len() as u64, failures.len());
    let complete = args.partial || missing.is_empty();
    Ok(if failures.is_empty() && complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn replay(path: &PathBuf) -> Result<ExitCode> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let steps: Vec<Step> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).with_context(|| format!("not a step: {line}")))
        .collect::<Result<_>>()?;
    match play(&steps).0 {
        Ok(()) => {
            println!("{} steps, nothing wrong", steps.len());
            Ok(ExitCode::SUCCESS)
        }
        Err(problem) => {
            println!("{problem}");
            Ok(ExitCode::FAILURE)
        }
    }
}
