//! `cargo xtask test`: every check in order of cost, each named, timed, and stopped at the first failure.

use anyhow::{Result, bail};
use std::{process::Command, time::Instant};

use crate::{build, cargo, execute, root, tidy};

struct Stage {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<()>,
}

const STAGES: &[Stage] = &[
    Stage { name: "tidy", what: "format, layers, leftovers", run: tidy::run },
    Stage { name: "clippy", what: "lints of all crates, warnings are errors", run: clippy },
    Stage { name: "unit", what: "tests of all crates", run: unit },
];

fn run_stages(wanted: &[String]) -> Result<()> {
    let begun = Instant::now();
    for stage in STAGES.iter().filter(|s| wanted.is_empty() || wanted.iter().any(|w| w == s.name)) {
        println!("== {}: {}", stage.name, stage.what);
        let started = Instant::now();
        (stage.run)().map_err(|e| e.context(format!("stage {}", stage.name)))?;
        println!("== {} passed in {:.1} s", stage.name, started.elapsed().as_secs_f64());
    }
    println!("== all passed in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    if args == ["list"] {
        for stage in STAGES {
            println!("{:<12} {}", stage.name, stage.what);
        }
        return Ok(());
    }
    if let Some(unknown) = args.iter().find(|a| STAGES.iter().all(|s| s.name != **a)) {
        bail!("no stage '{unknown}'; `cargo xtask test list` names them");
    }
    run_stages(args)
}

fn clippy() -> Result<()> {
    execute(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn unit() -> Result<()> {
    build::hook()?;
    execute(cargo().args(["test", "--workspace", "--quiet"]))
}

#[expect(dead_code, reason = "used by the stages that are scripts")]
fn script(words: &[&str]) -> Result<()> {
    execute(Command::new(words[0]).args(&words[1..]).current_dir(root()))
}
