//! `cargo xtask fuzz`: libFuzzer at every door of `fuzz/`, a smaller corpus afterwards, and how much of the code behind
//! each door the corpus reaches.

use anyhow::{Context as _, Result, bail, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{cargo, execute, root, target_dir};

pub(crate) const USAGE: &str = "usage: cargo xtask fuzz [--seconds N] [DOOR…] | cargo xtask fuzz coverage";
const SECONDS_DEFAULT: u32 = 600;
/// Larger inputs are slow and find nothing new.
const INPUT_MAX_BYTES: u32 = 32 * 1024;
/// One input may take so long; a door that is slower is a finding.
const INPUT_MAX_SECONDS: u32 = 10;
const MEMORY_MAX_MB: u32 = 2048;
/// Of the lines behind a door, the share that its corpus must reach.
const COVERED_MIN_PERCENT: f64 = 80.0;

struct Door {
    name: String,
    covers: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    if args == ["coverage"] {
        return coverage();
    }
    let (seconds, wanted) = match args {
        [flag, seconds, wanted @ ..] if flag == "--seconds" => (seconds.parse().context(USAGE)?, wanted),
        wanted => (SECONDS_DEFAULT, wanted),
    };
    let doors = doors()?;
    if let Some(unknown) = wanted.iter().find(|w| doors.iter().all(|d| d.name != **w)) {
        let names: Vec<&str> = doors.iter().map(|d| d.name.as_str()).collect();
        bail!("no door '{unknown}'; there are {}\n{USAGE}", names.join(", "));
    }
    let knock = build()?;
    let seeds = work().join("seeds");
    let recordings = root().join("tests/recordings");
    execute(program().arg("seeds").args([&recordings, &seeds]))?;
    for door in doors.iter().filter(|d| wanted.is_empty() || wanted.contains(&d.name)) {
        println!("== {} for {seconds} s", door.name);
        door.fuzz(&knock, &seeds, seconds)?;
    }
    Ok(())
}

/// Everything that is not committed lies here.
fn work() -> PathBuf {
    target_dir().join("fuzz")
}

fn program() -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "watchkeeper-fuzz", "--features", "seeds", "--"]);
    command
}

fn doors() -> Result<Vec<Door>> {
    let listed = program().arg("doors").output().context("cannot list the doors")?;
    ensure!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).context("doors with strange names")?;
    Ok(listed
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, covers)| Door {
            name: name.to_owned(),
            covers: covers.split(' ').map(str::to_owned).collect(),
        })
        .collect())
}

/// The target with a sanitizer, which needs a nightly compiler.
fn build() -> Result<PathBuf> {
    let into = work().join("build");
    let mut build = Command::new("cargo");
    build.current_dir(root()).args([
        "+nightly",
        "fuzz",
        "build",
        "--fuzz-dir",
        "fuzz/targets",
        "-O",
        "--target-dir",
    ]);
    execute(build.arg(&into).arg("knock"))
        .context("needs `rustup toolchain install nightly` and `cargo install cargo-fuzz`")?;
    Ok(into.join("x86_64-unknown-linux-gnu/release/knock"))
}

impl Door {
    fn corpus(&self) -> PathBuf {
        root().join("fuzz/corpus").join(&self.name)
    }

    fn fuzz(&self, knock: &Path, seeds: &Path, seconds: u32) -> Result<()> {
        let (grown, found) = (work().join("grown").join(&self.name), work().join("found"));
        let sources = [grown.clone(), self.corpus(), seeds.join(&self.name)];
        for folder in sources.iter().chain([&found]) {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let knock = |options: &[String]| {
            let mut command = Command::new(knock);
            command.env("WATCHKEEPER_DOOR", &self.name).args(options);
            command
        };
        execute(
            knock(&[
                format!("-max_total_time={seconds}"),
                format!("-max_len={INPUT_MAX_BYTES}"),
                format!("-timeout={INPUT_MAX_SECONDS}"),
                format!("-rss_limit_mb={MEMORY_MAX_MB}"),
                format!("-artifact_prefix={}/{}-", found.display(), self.name),
                // A leak is not what these doors are for, and the look for one takes most of the time.
                "-detect_leaks=0".to_owned(),
                "-print_final_stats=1".to_owned(),
                "-verbosity=0".to_owned(),
            ])
            .args(&sources),
        )
        .with_context(|| format!("what door {} does not stand lies in {}", self.name, found.display()))?;

        // The fewest inputs that reach all that was reached.
        let smaller = work().join("smaller").join(&self.name);
        _ = fs::remove_dir_all(&smaller);
        fs::create_dir_all(&smaller)?;
        execute(
            knock(&[
                "-set_cover_merge=1".to_owned(),
                "-use_counters=0".to_owned(),
                "-verbosity=0".to_owned(),
            ])
            .arg(&smaller)
            .args(&sources),
        )?;
        fs::remove_dir_all(self.corpus())?;
        copy_all(&smaller, &self.corpus())
    }
}

fn copy_all(from: &Path, into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        fs::copy(file.path(), into.join(file.file_name()))?;
    }
    Ok(())
}

/// Replays the corpus in a build that counts lines.
fn coverage() -> Result<()> {
    let into = work().join("coverage");
    let profiles = work().join("profiles");
    _ = fs::remove_dir_all(&profiles);
    let counted = |words: &[&str]| {
        let mut test = cargo();
        test.args(["test", "--quiet", "--package", "watchkeeper-fuzz", "--test", "corpus", "--target-dir"])
            .arg(&into)
            .args(words)
            .env("RUSTFLAGS", "-C instrument-coverage")
            .env("LLVM_PROFILE_FILE", profiles.join("%p.profraw"));
        test
    };
    execute(&mut counted(&[]))?;
    let built = counted(&["--no-run", "--message-format=json"]).output()?;
    let built = String::from_utf8_lossy(&built.stdout).into_owned();
    let test = built
        .split("\"executable\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .find(|path| path.contains("/corpus-"))
        .context("cargo names no test program")?;
    let raw: Vec<PathBuf> = fs::read_dir(&profiles)?.flatten().map(|file| file.path()).collect();
    let merged = work().join("merged.profdata");
    execute(Command::new(llvm("llvm-profdata")?).args(["merge", "-sparse", "-o"]).arg(&merged).args(raw))?;
    let mut report = Command::new(llvm("llvm-cov")?);
    let lines = report.args(["export", "-format=lcov", "-instr-profile"]).arg(&merged).arg(test).output()?;
    ensure!(lines.status.success(), "{}", String::from_utf8_lossy(&lines.stderr));
    judge(&String::from_utf8_lossy(&lines.stdout))
}

/// LLVM's tool of the compiler's own version: another one cannot read what the compiler's programs write.
fn llvm(tool: &str) -> Result<String> {
    let version = Command::new("rustc").arg("-vV").output()?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let major = version
        .lines()
        .find_map(|line| line.strip_prefix("LLVM version: "))
        .and_then(|v| v.split('.').next())
        .context("rustc does not say its LLVM")?;
    let name = format!("{tool}-{major}");
    match Command::new(&name).arg("--version").output() {
        Ok(_) => Ok(name),
        Err(_) => {
            bail!("needs {name}: on Debian `apt install llvm-{major}` (from backports where it is too new)")
        }
    }
}

/// Lines of one file by the report: how many there are, and how many were reached.
fn counted(report: &str, covers: &[String]) -> (u32, u32) {
    let (mut all, mut reached, mut counts) = (0, 0, false);
    for line in report.lines() {
        if let Some(file) = line.strip_prefix("SF:") {
            counts = Path::new(file)
                .strip_prefix(root())
                .is_ok_and(|file| covers.iter().any(|covered| file.starts_with(covered)));
        } else if let Some((_, count)) =
            line.strip_prefix("DA:").and_then(|l| l.split_once(',')).filter(|_| counts)
        {
            all += 1;
            reached += u32::from(count != "0");
        }
    }
    (all, reached)
}

fn judge(report: &str) -> Result<()> {
    let mut short = Vec::new();
    println!("| Door | Inputs | Lines behind it | Reached |\n|---|---|---|---|");
    for door in doors()? {
        let (all, reached) = counted(report, &door.covers);
        ensure!(all > 0, "no lines behind door {}", door.name);
        let percent = f64::from(reached) / f64::from(all) * 100.0;
        let inputs = fs::read_dir(door.corpus()).map_or(0, Iterator::count);
        println!("| {} | {inputs} | {all} | {percent:.1} % |", door.name);
        if percent < COVERED_MIN_PERCENT {
            short.push(door.name);
        }
    }
    ensure!(short.is_empty(), "below {COVERED_MIN_PERCENT} %: {}", short.join(", "));
    Ok(())
}
