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
    Stage { name: "tools", what: "programs that the tests need, by apt where they are missing", run: tools },
    Stage {
        name: "tidy",
        what: "format, layers, leftovers, tests that the field cases name",
        run: tidy::run,
    },
    Stage { name: "clippy", what: "lints of all crates, warnings are errors", run: clippy },
    Stage {
        name: "unit",
        what: "tests of all crates, the recorded sessions among them, and of the judge of real agents",
        run: unit,
    },
    Stage {
        name: "sim",
        what: "10,000 made-up schedules with faults; everything must be reached; recordings while something goes wrong",
        run: simulate,
    },
    Stage {
        name: "faults",
        what: "planted faults, each found within 1,000 schedules or with the recordings",
        run: planted_faults,
    },
    Stage { name: "cross", what: "types of the whole workspace for Windows and macOS", run: cross },
    Stage {
        name: "logind",
        what: "as root: the hold against the real logind, polkit and UPower; another user at the door",
        run: logind,
    },
    Stage {
        name: "agents",
        what: "real Claude Code, Codex and OpenCode from hook to inhibitor",
        run: agents,
    },
    Stage { name: "crash", what: "the daemon killed 200 times under 64 senders", run: crash },
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

/// The properties' cases are the same on every machine and every day: what fails here fails for everyone.
/// [`explore`] looks where no run has looked before.
fn unit() -> Result<()> {
    script("tests/agents/test_judge.py", &[])?;
    build::hook()?;
    let mut tests = cargo();
    if std::env::var_os(PROPTEST_SEED).is_none() {
        tests.env(PROPTEST_SEED, "1");
    }
    execute(tests.args(["test", "--workspace", "--quiet"]))
}

const PROPTEST_SEED: &str = "PROPTEST_RNG_SEED";

/// Many more cases of every property, from a seed of chance; a failure prints its smallest input. Takes minutes.
pub(crate) fn explore(args: &[String]) -> Result<()> {
    let cases = match args {
        [] => "20000",
        [one] if one.parse::<u32>().is_ok_and(|n| n > 0) => one,
        _ => bail!("usage: cargo xtask explore [CASES]"),
    };
    build::hook()?;
    let packages = [
        "--package",
        "watchkeeper-core",
        "--package",
        "watchkeeper-agents",
        "--package",
        "watchkeeper-store",
    ];
    execute(
        cargo()
            .args(["test", "--profile", "sim", "--no-fail-fast"])
            .args(packages)
            .env("PROPTEST_CASES", cases)
            .env_remove(PROPTEST_SEED),
    )
}

/// Debian's packages by the program that shows that they are there.
const TOOLS: [(&str, &str); 7] = [
    ("gcc", "gcc"),
    ("curl", "curl"),
    ("git", "git"),
    ("tmux", "tmux"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("/usr/bin/python3", "python3"),
];

fn tools() -> Result<()> {
    let has = |program: &str| {
        Command::new("sh")
            .args(["-c", &format!("command -v {program}")])
            .output()
            .is_ok_and(|o| o.status.success())
    };
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(program, _)| !has(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(" "));
    execute(Command::new("apt-get").args(["update", "-qq"]))?;
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    execute(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(install).args(missing))
}

fn simulate() -> Result<()> {
    let run = ["run", "--quiet", "--profile", "sim", "--package", "watchkeeper-sim", "--"];
    execute(cargo().args(run).args(["simulate", "--seeds", "10000"]))?;
    execute(cargo().args(run).args(["perturb", "tests/recordings"]))
}

fn planted_faults() -> Result<()> {
    script("tests/sim/planted_faults.py", &[])
}

fn cross() -> Result<()> {
    script("tests/cross/cross-check.sh", &["windows-clippy", "--workspace", "--", "-D", "warnings"])?;
    script("tests/cross/cross-check.sh", &["macos-check", "--workspace"])
}

fn logind() -> Result<()> {
    // One rig for both: its tests take turns within a program, and cargo runs one program after the other.
    let packages = ["--package", "watchkeeper-os", "--package", "watchkeeper-daemon"];
    let features = ["--features", "watchkeeper-os/rig,watchkeeper-daemon/rig"];
    let tests = ["--test", "logind", "--test", "other_user"];
    let words = [&["cargo", "test", "--quiet"][..], &packages, &features, &tests].concat();
    script("tests/power/with-rig.sh", &words)
}

fn agents() -> Result<()> {
    built("tests/agents/run.py", &["--core"])
}

fn crash() -> Result<()> {
    built("tests/crash/run.py", &[])
}

fn script(path: &str, words: &[&str]) -> Result<()> {
    execute(Command::new(root().join(path)).args(words).current_dir(root()))
}

/// Runs a script against the programs as people get them.
fn built(path: &str, words: &[&str]) -> Result<()> {
    let program = build::release()?;
    let folder = program.parent().unwrap_or(root());
    execute(
        Command::new(root().join(path)).args(words).current_dir(root()).env("WATCHKEEPER_BIN_DIR", folder),
    )
}
