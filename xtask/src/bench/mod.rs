//! Floors, rivals and ours in one run, as ratios. Nothing here is a test: figures depend on the machine, ratios less so.

pub(crate) mod hook;
mod row;

pub(crate) use row::{Goal, Row};

use anyhow::{Result, bail};

/// Runs the rows named in `args` (all without a name) and prints their table; fails when a row misses its goal by more
/// than a factor of two.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut names: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut daemon = None;
    if let Some(at) = names.iter().position(|name| *name == "--against-daemon") {
        names.remove(at);
        if at == names.len() {
            bail!("--against-daemon needs the runtime directory of a running daemon");
        }
        daemon = Some(std::path::PathBuf::from(names.remove(at)));
    }
    let mut rows = Vec::new();
    for name in if names.is_empty() { vec!["hook"] } else { names } {
        match name {
            "hook" => rows.extend(hook::run(daemon.as_deref())?),
            other => bail!("unknown benchmark '{other}'; known: hook"),
        }
    }
    row::print(&rows);
    let failed: Vec<&str> = rows.iter().filter(|row| row.fails()).map(|row| row.what.as_str()).collect();
    if !failed.is_empty() {
        bail!("twice beyond the goal: {}", failed.join(", "));
    }
    Ok(())
}
