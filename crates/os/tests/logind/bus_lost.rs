use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use tokio::{runtime, time::timeout};
use watchkeeper_os::power::inhibit::{Inhibitor, Kind, Notice, Refused};

use crate::rig::{PATIENCE, Rig};

/// A bare bus: no logind on it.
struct Bus(Child);

impl Bus {
    fn start(socket: &Path) -> Self {
        let mut child = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .arg(format!("--address=unix:path={}", socket.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("unix:"), "{ready}");
        Self(child)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn is_unsupported<T>(result: Result<T, Refused>, about: &str) {
    match result {
        Err(Refused::Unsupported { why }) => assert!(why.contains(about), "{why}"),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("{about}: accepted"),
    }
}

#[test]
fn a_lost_bus_is_told_and_found_again() {
    let _turn = Rig::take();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("bus");
    let inhibitor = Inhibitor::at(&format!("unix:path={}", socket.display()));
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        is_unsupported(inhibitor.connect().await, "no D-Bus system bus");
        let (kind, result) = inhibitor.take(&[Kind::Idle]).await.remove(0);
        assert_eq!(kind, Kind::Idle);
        is_unsupported(result, "no D-Bus system bus");

        let bus = Bus::start(&socket);
        is_unsupported(inhibitor.connect().await, "no logind on the system bus");
        drop(bus);
        assert_eq!(timeout(PATIENCE, inhibitor.next()).await, Ok(Notice::BusLost));
        let _bus = Bus::start(&socket);
        assert_eq!(timeout(PATIENCE, inhibitor.next()).await, Ok(Notice::BusBack));
        is_unsupported(inhibitor.connect().await, "no logind on the system bus");
    });
}
