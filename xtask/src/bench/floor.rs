//! Floors: C programs that do the least that has to be done.

use anyhow::{Context as _, Result};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{execute, root};

/// Compiles `programs/NAME` into `folder`; returns the program.
pub(super) fn compile(folder: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let out = folder.join(name).with_extension("");
    let source = root().join("xtask/src/bench/programs").join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-static", "-O2"]).args(options).arg("-o").arg(&out).arg(source);
    execute(&mut gcc).context("the floor needs gcc and the static C library (Debian: gcc, libc6-dev)")?;
    Ok(out)
}
