//! The Windows side on real children. Runs on Windows, and under Wine by `tests/cross/cross-check.sh windows-test`.
#![cfg(windows)]

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tokio::{runtime, time::timeout};
use watchkeeper_core::{
    identity::ProcessRef,
    time::{Boot, BootId},
};
use watchkeeper_os::{
    clock,
    power::inhibit::{Inhibitor, Keeper, Kind, Refused},
    process::{
        Probe, Sameness,
        ancestry::chain_of,
        exit_watch::{ExitWatch, Watch},
        identity::{identify, own, same},
        tree_cpu::{Root, sample},
    },
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a key that never comes. Killed on drop.
struct Pausing(Child);

impl Pausing {
    #[expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]
    fn start() -> (Self, ProcessRef) {
        let child = Command::new("cmd.exe")
            .args(["/c", "pause"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let process = identify(child.id()).yes().unwrap();
        (Self(child), process)
    }
}

impl Drop for Pausing {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    #[expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn a_living_process_is_itself_and_nobody_else() {
    let (mut child, process) = Pausing::start();
    assert_eq!(same(&process), Sameness::Same);
    assert_eq!(same(&ProcessRef { start: process.start + 1, ..process }), Sameness::Different);
    assert_eq!(same(&ProcessRef { boot: BootId(process.boot.0 ^ 1), ..process }), Sameness::Different);
    assert_eq!(same(&ProcessRef { boot: BootId(0), ..process }), Sameness::Unknown);
    assert_eq!(identify(process.pid + 1), Probe::No, "no rounding to the neighbour");
    assert_eq!(identify(0), Probe::No);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    // The handle of `child` is still open, so the process object and its pid are still there.
    assert_eq!(identify(process.pid), Probe::No);
    assert_eq!(same(&process), Sameness::Different);
}

#[test]
fn an_exit_is_told_once() {
    block_on(async {
        let watch = ExitWatch::new().unwrap();
        let (mut child, process) = Pausing::start();
        let (_other, silent) = Pausing::start();
        assert_eq!(watch.watch(process).unwrap(), Watch::Kernel);
        assert_eq!(watch.watch(silent).unwrap(), Watch::Kernel);
        assert_eq!(
            watch.watch(ProcessRef { start: process.start + 1, ..process }).unwrap(),
            Watch::AlreadyGone
        );
        child.0.kill().unwrap();
        assert_eq!(timeout(PATIENCE, watch.next()).await, Ok(process));
        assert_eq!(watch.watch(process).unwrap(), Watch::AlreadyGone);
        assert_eq!(watch.len(), 1);
        assert!(watch.unwatch(&silent));
        assert!(watch.is_empty());
    });
}

#[test]
fn a_chain_leads_from_a_child_to_us() {
    let (_child, process) = Pausing::start();
    let chain = chain_of(process.pid);
    let pids: Vec<u32> = chain.rows.iter().map(|row| row.pid).take(2).collect();
    assert_eq!(pids, [process.pid, std::process::id()], "{chain:?}");
    assert_eq!(chain.rows[0].start, process.start);
    assert!(chain.rows[0].exe.to_ascii_lowercase().ends_with("cmd.exe"), "{chain:?}");
    // Wine 8 answers STATUS_INVALID_INFO_CLASS when asked for a command line.
    let expected: &[&str] = if std::env::var_os("WK_CROSS_WINE").is_some() { &[] } else { &["/c", "pause"] };
    assert_eq!(chain.rows[0].argv.iter().skip(1).map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn a_tree_counts_its_members_and_names_its_young() {
    let (_child, process) = Pausing::start();
    let us = own().yes().unwrap();
    let tree = sample(&[Root { process: us, young_since: Some(Boot(0)) }]).remove(0).yes().unwrap();
    assert!(tree.processes >= 2, "{tree:?}");
    assert!(tree.young.iter().any(|young| young.process == process), "{tree:?}");
    assert_eq!(sample(&[Root { process: ProcessRef { start: 1, ..us }, young_since: None }]), [Probe::No]);
}

#[test]
fn clocks_run() {
    let first = clock::now();
    let until = Instant::now() + PATIENCE;
    loop {
        let now = clock::now();
        if now.mono > first.mono && now.boot > first.boot {
            break;
        }
        assert!(Instant::now() < until, "{now:?}");
    }
    assert_ne!(first.boot_id, BootId(0));
}

#[test]
fn idle_is_held_and_the_lid_is_not() {
    block_on(async {
        let mut keeper = Keeper::new(Inhibitor::new());
        let report = keeper.set(&[Kind::Idle, Kind::LidSwitch]).await;
        assert_eq!(report.held, [Kind::Idle], "{report:?}");
        assert!(
            matches!(report.refused.as_slice(), [(Kind::LidSwitch, Refused::Unsupported { .. })]),
            "{report:?}"
        );
        assert!(report.unconfirmed.is_some(), "Windows cannot be asked");
        assert!(keeper.set(&[]).await.held.is_empty());
    });
}

#[test]
fn a_private_file_is_a_file_of_this_user_and_no_longer_than_its_bound() {
    use watchkeeper_os::private_file::{PrivateFileError, read_private};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    assert!(matches!(read_private(&path, 4), Err(PrivateFileError::Io(_))));
    std::fs::write(&path, "1234").unwrap();
    assert_eq!(read_private(&path, 4).unwrap(), b"1234");
    std::fs::write(&path, "12345").unwrap();
    assert!(matches!(read_private(&path, 4), Err(PrivateFileError::TooLong { bytes_max: 4 })));
    assert!(read_private(folder.path(), 4).is_err(), "a folder");
    assert!(read_private(std::path::Path::new("NUL"), 4).is_err(), "a device");
}
