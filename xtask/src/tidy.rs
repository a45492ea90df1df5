//! Rules of the house that a program can check: import directions, file sizes, leftovers, names that do not belong here.

use anyhow::{Context as _, Result, bail};
use std::{fs, path::Path, process::Command};

use crate::{cargo, execute, field_cases, root};

/// Which of our crates a crate may use. A crate that is not listed here fails the check.
const LAYERS: [(&str, &[&str]); 12] = [
    ("core", &[]),
    ("agents", &["core"]),
    ("frame", &[]),
    ("hook", &["frame"]),
    ("os", &["core"]),
    ("store", &["core"]),
    ("api", &["core"]),
    ("daemon", &["core", "agents", "frame", "os", "store", "api"]),
    ("cli", &["core", "agents", "frame", "os", "store", "api", "daemon"]),
    ("sim", &["core", "agents", "frame", "os", "store", "api", "daemon"]),
    ("fuzz", &["core", "agents", "frame", "api", "sim"]),
    ("xtask", &["frame"]),
];
/// Crates that must stay free of any third-party code.
const BARE: [&str; 2] = ["frame", "hook"];
/// A longer file holds more than one idea.
const MAX_LINES: usize = 900;
/// Packages in Cargo.lock; raised only on purpose.
const MAX_PACKAGES: usize = 260;
/// Text that must not stand in the project: leftovers, and names of places that are not the reader's.
const FORBIDDEN: [&str; 7] = [
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("FIX", "ME"),
    concat!("#[ign", "ore]"),
    concat!("/wo", "rk/"),
    concat!("/tmp/", "t-"),
    concat!("index.crat", "es.io"),
];

fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    layers(&mut problems)?;
    field_cases::check(&mut problems)?;
    for file in tracked_files()? {
        check_file(&file, &mut problems);
    }
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let packages = lock.matches("[[package]]").count();
    if packages > MAX_PACKAGES {
        problems.push(format!("Cargo.lock has {packages} packages, the limit is {MAX_PACKAGES}"));
    }
    Ok(problems)
}

pub(crate) fn run() -> Result<()> {
    format()?;
    let problems = problems()?;
    if !problems.is_empty() {
        bail!("{} untidy places:\n{}", problems.len(), problems.join("\n"));
    }
    Ok(())
}

fn format() -> Result<()> {
    execute(cargo().args(["fmt", "--all", "--check"])).context("run `cargo fmt --all`")
}

fn layers(problems: &mut Vec<String>) -> Result<()> {
    for folder in crate_folders()? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest =
            fs::read_to_string(folder.join("Cargo.toml")).with_context(|| format!("cannot read {name}"))?;
        let Some((_, allowed)) = LAYERS.iter().find(|(crate_name, _)| *crate_name == name) else {
            problems.push(format!("crate {name} has no place in the layers of xtask/src/tidy.rs"));
            continue;
        };
        let mut section = "";
        for line in manifest.lines() {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']');
            }
            let dependency = line.split(['=', '.']).next().unwrap_or_default().trim();
            if !section.ends_with("dependencies") || dependency.is_empty() || line.starts_with(['#', '[']) {
                continue;
            }
            match dependency.strip_prefix("watchkeeper-") {
                Some(ours) if !allowed.contains(&ours) && !section.starts_with("dev") => {
                    problems.push(format!("crate {name} may not use {ours}"));
                }
                None if BARE.contains(&name.as_str()) => {
                    problems.push(format!("crate {name} may not use {dependency}"));
                }
                Some(_) | None => {}
            }
        }
    }
    Ok(())
}

fn crate_folders() -> Result<Vec<std::path::PathBuf>> {
    let mut folders = vec![root().join("xtask"), root().join("fuzz")];
    for entry in fs::read_dir(root().join("crates")).context("cannot list crates")? {
        folders.push(entry.context("cannot list crates")?.path());
    }
    folders.sort();
    Ok(folders)
}

fn tracked_files() -> Result<Vec<String>> {
    let listed = Command::new("git")
        .current_dir(root())
        .args(["ls-files", "-z"])
        .output()
        .context("cannot run git")?;
    Ok(String::from_utf8_lossy(&listed.stdout)
        .split('\0')
        .filter(|f| !f.is_empty())
        .map(str::to_owned)
        .collect())
}

fn check_file(file: &str, problems: &mut Vec<String>) {
    let is_code =
        [".rs", ".py", ".sh", ".toml", ".md"].iter().any(|end| file.ends_with(end)) || file == ".ci/run";
    if !is_code || file.starts_with("tests/recordings/") {
        return;
    }
    // A tracked file that is gone from the working tree is git's business.
    let Ok(text) = fs::read_to_string(root().join(Path::new(file))) else { return };
    let lines = text.lines().count();
    if file.ends_with(".rs") && lines > MAX_LINES {
        problems.push(format!("{file} has {lines} lines, the limit is {MAX_LINES}"));
    }
    if file == "xtask/src/tidy.rs" {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        for word in FORBIDDEN {
            if line.contains(word) {
                problems.push(format!("{file}:{} says {word}", number + 1));
            }
        }
    }
}
