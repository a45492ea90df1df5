//! `cargo xtask …`: what the project does to itself. Run `cargo xtask help` for the list.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

#[cfg(target_os = "linux")]
mod bench;
mod build;
mod field_cases;
mod fuzz;
mod tidy;
mod verify;

use anyhow::{Context as _, Result, bail};
use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

const HELP: &str = "\
cargo xtask up [ARGS]      build in release mode and run `watchkeeper up`
cargo xtask build          build watchkeeper and watchkeeper-hook into target/release
cargo xtask test [STAGE…]  everything that has to hold, cheap checks first; `list` names the stages
cargo xtask explore [N]    N cases of every property from a seed of chance (default 20000)
cargo xtask fuzz [--seconds N] [DOOR…]  libFuzzer at every door for what others write; `coverage`: what the corpus reaches
cargo xtask tidy           format, import directions, file sizes, leftovers, the tests that docs/field-cases.md names
cargo xtask bench [hook|ingest|exit|rest|reducer|transcript]…  floors, rivals and ours in one run, as ratios";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let outcome = match command.as_str() {
        "up" => up(&rest),
        "build" => build::release().map(|bin| println!("built {}", bin.display())),
        "test" => verify::run(&rest),
        "explore" => verify::explore(&rest),
        "fuzz" => fuzz::run(&rest),
        "tidy" => tidy::run(),
        #[cfg(target_os = "linux")]
        "bench" => bench::run(&rest),
        #[cfg(not(target_os = "linux"))]
        "bench" => Err(anyhow::anyhow!("the benchmarks measure by /proc and pidfd: they run on Linux only")),
        "help" | "--help" | "-h" | "" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(anyhow::anyhow!("unknown command '{other}'\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds and hands over to `watchkeeper up`, with its exit status.
fn up(args: &[String]) -> Result<()> {
    let bin = build::release()?;
    execute(Command::new(bin).arg("up").args(passed_on(args)))
}

/// What stands behind `up`, also behind the `--` by which people tell such words from the task's own.
fn passed_on(args: &[String]) -> &[String] {
    args.strip_prefix(&["--".to_owned()]).unwrap_or(args)
}

/// The workspace's root folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Cargo's target folder, as cargo itself decides it.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end; its failure is ours.
fn execute(command: &mut Command) -> Result<()> {
    let status =
        command.status().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        let words: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        bail!("{} {} ended with {status}", command.get_program().display(), words.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_takes_its_words_with_and_without_dashes() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (given, expected) in [("--demo", "--demo"), ("-- --demo", "--demo"), ("--demo --", "--demo --")] {
            assert_eq!(passed_on(&words(given)), words(expected));
        }
    }
}
