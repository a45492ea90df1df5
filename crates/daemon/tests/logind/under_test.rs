//! A daemon in a process of its own, told what to do over its local interface.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, net::UnixDatagram, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use watchkeeper_api::{
    Client, Method,
    client::ClientOptions,
    method::{
        DaemonRestart, DaemonStatus, DaemonStop, GetDaemonStatus, GetWhy, Nothing, RestartParams,
        SessionStart, SessionStartParams,
    },
};
use watchkeeper_core::AgentKind;
use watchkeeper_daemon::Place;

use crate::rig::PATIENCE;

pub(crate) struct UnderTest {
    home: TempDir,
    child: Child,
    place: Place,
}

impl UnderTest {
    /// Starts it and waits until it listens.
    pub(crate) fn start() -> Self {
        // A socket's path is short.
        let home = tempfile::Builder::new().prefix("wk").tempdir().unwrap();
        let place = Place::of_home(home.path());
        let ready = Ready::at(&home.path().join("ready"));
        let child = Command::new(env!("CARGO_BIN_EXE_wk-daemon-under-test"))
            .arg(home.path())
            .env("NOTIFY_SOCKET", &ready.path)
            .spawn()
            .unwrap();
        ready.wait();
        Self { home, child, place }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn ask<M: Method>(&self, params: &M::Params) -> M::Output {
        let mut client = Client::connect(&self.place.api_socket(), &ClientOptions::new("test")).unwrap();
        client.call::<M>(params).unwrap()
    }

    pub(crate) fn status(&self) -> DaemonStatus {
        self.ask::<GetDaemonStatus>(&Nothing {})
    }

    /// Whether it says that the machine is kept awake.
    pub(crate) fn awake(&self) -> bool {
        self.ask::<GetWhy>(&Nothing {}).awake == Some(true)
    }

    /// A session that works from here on.
    pub(crate) fn work(&self) {
        let params = SessionStartParams {
            agent: AgentKind::Mcp,
            namespace: Some("n".into()),
            id: Some("s".into()),
            prompt: Some("p".into()),
            title: None,
            cwd: None,
            transcript: None,
            pid: Some(std::process::id()),
        };
        self.ask::<SessionStart>(&params);
    }

    /// Asks for a restart as `program` (`None`: as what it is). The socket tells when the successor listens.
    pub(crate) fn restart(&self, program: Option<&Path>) -> Ready {
        let ready = Ready::at(&self.home.path().join("again"));
        let params = RestartParams {
            program: program.map(|path| path.to_str().unwrap().to_owned()),
            notify: Some(ready.path.to_str().unwrap().to_owned()),
        };
        assert_eq!(self.ask::<DaemonRestart>(&params).pid, self.pid());
        ready
    }

    /// A program that does something and then becomes what is under test.
    pub(crate) fn script(&self, first: &str) -> PathBuf {
        let path = self.home.path().join("script");
        let program = env!("CARGO_BIN_EXE_wk-daemon-under-test");
        fs::write(&path, format!("#!/bin/sh\n{first}\nexec '{program}' \"$@\"\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    /// Open descriptors past the standard ones, with their flags as the kernel shows them, in octal.
    pub(crate) fn descriptors(&self) -> Vec<(i32, i32)> {
        let folder = format!("/proc/{}/fdinfo", self.pid());
        let flags = |path: &Path| {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
            i32::from_str_radix(line.trim(), 8).ok()
        };
        let mut found: Vec<(i32, i32)> = fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let number = entry.file_name().to_str()?.parse().ok()?;
                Some((number, flags(&entry.path())?))
            })
            .filter(|(number, _)| *number > 2)
            .collect();
        found.sort_unstable();
        found
    }

    /// Waits for its end; what `how` says of it.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), None);
        status.code()
    }

    /// Tells it to end, as the system does.
    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits for its end, in order or by the signal TERM.
    pub(crate) fn ended_as_told(&mut self) {
        let pid = self.pid();
        let mut status = None;
        until(&format!("the end of {pid}"), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let status = status.unwrap();
        let by_signal = status.signal() == Some(rustix::process::Signal::TERM.as_raw());
        assert!(by_signal || status.code() == Some(0), "{status}");
    }

    pub(crate) fn stop(mut self) {
        self.ask::<DaemonStop>(&Nothing {});
        assert_eq!(self.ended(), Some(0));
    }
}

impl Drop for UnderTest {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Somebody who waits until a daemon listens.
pub(crate) struct Ready {
    path: PathBuf,
    socket: UnixDatagram,
}

impl Ready {
    fn at(path: &Path) -> Self {
        drop(fs::remove_file(path)); // of the restart before
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { path: path.to_owned(), socket }
    }

    pub(crate) fn wait(&self) {
        let mut word = [0; 64];
        let length = self.socket.recv(&mut word).unwrap();
        assert_eq!(&word[..length], b"READY=1");
    }
}

/// Looks again until something is there.
#[track_caller]
pub(crate) fn until(what: &str, mut look: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !look() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::yield_now();
    }
    begun.elapsed()
}
