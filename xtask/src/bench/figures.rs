//! Figures out of a package's own benchmark: lines `figure NAME NUMBER` among what it says to people.

use anyhow::{Context as _, Result, bail};
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use crate::cargo;

#[derive(Debug)]
pub(super) struct Figures {
    bench: String,
    found: BTreeMap<String, f64>,
}

impl Figures {
    /// Builds and runs the benchmark, and repeats what it says.
    pub(super) fn of(package: &str, bench: &str) -> Result<Self> {
        let mut command = cargo();
        command.args(["bench", "--quiet", "--package", package, "--bench", bench]).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start cargo")?;
        let output = child.stdout.take().context("no output")?;
        let mut found = BTreeMap::new();
        for line in BufReader::new(output).lines() {
            let line = line?;
            let figure = line.strip_prefix("figure ").and_then(|rest| rest.rsplit_once(' '));
            match figure.and_then(|(name, number)| Some((name, number.parse().ok()?))) {
                Some((name, number)) => _ = found.insert(name.to_owned(), number),
                None => println!("{line}"),
            }
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("the benchmark {bench} ended with {status}");
        }
        Ok(Self { bench: bench.to_owned(), found })
    }

    pub(super) fn get(&self, name: &str) -> Result<f64> {
        self.found.get(name).copied().with_context(|| format!("{} tells no {name}", self.bench))
    }
}
