//! A private instance with its own empty home folder, and the real programs.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

/// One instance; its daemon is stopped at the end.
pub(crate) struct Instance {
    folder: tempfile::TempDir,
}

impl Instance {
    pub(crate) fn new() -> Self {
        // A socket's path is short, so not below the build's folder.
        let folder = tempfile::Builder::new().prefix("wk").tempdir().unwrap();
        std::fs::create_dir(folder.path().join("person")).unwrap();
        Self { folder }
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    /// The program for this instance, with nothing of the tester's environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchkeeper"));
        command
            .args(words)
            .env_clear()
            .env("HOME", self.home().join("person"))
            // No agent is found, and no bus: the tester's machine is left alone.
            .env("PATH", self.home().join("person"))
            .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent")
            .env("WATCHKEEPER_HOME", self.home())
            .env("USER", "tester")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Exit code, standard output, standard error; the instance's folder reads `[HOME]`.
    pub(crate) fn said(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.run(words);
        let home = self.home().display().to_string();
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(&home, "[HOME]");
        (status.code(), text(stdout), text(stderr))
    }

    /// Standard output as JSON; the command must succeed.
    pub(crate) fn json(&self, words: &[&str]) -> serde_json::Value {
        let words = [words, &["--json"]].concat();
        let (code, out, err) = self.said(&words);
        assert_eq!(code, Some(0), "{words:?}: {out}{err}");
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["version"], 1, "{out}");
        value
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let stopped = self.run(&["daemon", "stop"]);
        if !std::thread::panicking() {
            assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
        }
    }
}
