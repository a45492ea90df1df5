//! The two programs as people run them: `watchkeeper`, and `watchkeeper-hook`, static on Linux.

use anyhow::{Context as _, Result};
use std::path::PathBuf;

use crate::{cargo, execute, target_dir};

/// Builds both programs into `<target>/release` and returns the path of `watchkeeper`.
pub(crate) fn release() -> Result<PathBuf> {
    let bin = target_dir().join("release");
    execute(cargo().args(["build", "--quiet", "--release", "--package", "watchkeeper"]))?;
    let hook = hook()?;
    let name = hook.file_name().context("the hook has a file name")?;
    // By rename: a running hook keeps the file that it was started from.
    let staged = bin.join(".watchkeeper-hook.new");
    std::fs::copy(&hook, &staged).with_context(|| format!("cannot copy {}", hook.display()))?;
    std::fs::rename(&staged, bin.join(name)).context("cannot put the hook beside watchkeeper")?;
    Ok(bin.join(if cfg!(windows) { "watchkeeper.exe" } else { "watchkeeper" }))
}

/// Builds the hook with its own profile: on x86-64 Linux without a C library, on other Linux without the dynamic linker
/// (both would cost more than the hook's own work), elsewhere as an ordinary program. `crates/hook/src/main.rs` says why.
pub(crate) fn hook() -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--profile", "hook", "--package", "watchkeeper-hook"]);
    let mut folder = target_dir();
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        // Naming the target keeps these flags away from build scripts.
        command.args(["--target", &target]);
        if cfg!(target_arch = "x86_64") {
            command.arg("--no-default-features").env("RUSTFLAGS", "--cfg watchkeeper_bare");
        } else {
            command.env("RUSTFLAGS", "-C target-feature=+crt-static -C relocation-model=static");
        }
        folder.push(target);
    }
    execute(&mut command)?;
    Ok(folder.join("hook").join(if cfg!(windows) { "watchkeeper-hook.exe" } else { "watchkeeper-hook" }))
}
