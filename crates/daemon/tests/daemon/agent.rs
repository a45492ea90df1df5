//! A process that counts as an agent.
#![cfg(target_os = "linux")]

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use watchkeeper_core::ProcessRef;
use watchkeeper_frame::ancestry::{Ancestor, BLOCK_MAX_BYTES, Namespaces, Writer, descent};
use watchkeeper_os::process::identity;

use crate::rig::until;

/// A process under an agent's name that lives until it is killed.
pub(crate) struct Agent {
    child: Child,
}

impl Agent {
    /// `variables`: what it finds in its environment beyond ours.
    pub(crate) fn start(home: &Path, name: &str, variables: &[(&str, &Path)]) -> Self {
        let program = home.join(name);
        if !program.exists() {
            fs::copy("/bin/sh", &program).unwrap();
        }
        let mut command = Command::new(program);
        command.args(["-c", "read -r never; :"]).envs(variables.iter().copied()).stdin(Stdio::piped());
        let child = until("an agent starts", || command.spawn().ok());
        // From its fork to its exec it is called as we are.
        let comm = format!("/proc/{}/comm", child.id());
        let called = format!("{name}\n");
        until("it has its name", || (fs::read_to_string(&comm).unwrap() == called).then_some(()));
        Self { child }
    }

    /// What a hook below it writes down.
    pub(crate) fn ancestry(&self, namespaces: Namespaces) -> Vec<u8> {
        let mut room = vec![0; BLOCK_MAX_BYTES];
        let mut writer = Writer::new(&mut room, namespaces, u64::MAX);
        for pid in [self.child.id(), std::process::id()] {
            let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap();
            let (stat, arguments) = (read("stat"), read("cmdline"));
            let found = descent(&stat).unwrap();
            let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
            let executable = executable.as_os_str().as_bytes();
            let (start, name) = (found.start, found.name);
            assert!(writer.push(&Ancestor { pid, start, executable, name, arguments: &arguments }));
        }
        writer.finish().to_vec()
    }

    pub(crate) fn identity(&self) -> ProcessRef {
        identity::identify(self.child.id()).yes().unwrap()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
