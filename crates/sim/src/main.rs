//! The simulator's command line.

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use watchkeeper_sim::{perturb, recordings, world};

#[derive(Debug, Parser)]
#[command(about = "Runs the real core in virtual time")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay recorded agent sessions through the real adapters and the real core, and compare with their labels
    Recordings(recordings::Args),
    /// Replay recorded sessions while something goes wrong: hooks lost, late, repeated or swapped, the daemon killed
    Perturb(perturb::Args),
    /// Play made-up schedules against the real core, with faults, and check what must hold after every step
    Simulate(world::Args),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Recordings(args) => recordings::run(&args),
        Command::Perturb(args) => perturb::run(&args),
        Command::Simulate(args) => world::run(&args),
    }
}
