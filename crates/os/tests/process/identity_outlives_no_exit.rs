use watchkeeper_core::{identity::ProcessRef, time::BootId};
use watchkeeper_os::process::{
    Probe, Sameness,
    identity::{identify, own, same},
};

use crate::child::Cat;

#[track_caller]
fn check(process: ProcessRef, expected: Sameness) {
    assert_eq!(same(&process), expected, "{process:?}");
}

#[test]
fn a_living_process_is_itself_and_nobody_else() {
    let cat = Cat::start();
    let process = cat.process();
    assert_eq!(process.pid, cat.pid());
    check(process, Sameness::Same);
    check(ProcessRef { start: process.start + 1, ..process }, Sameness::Different);
    check(ProcessRef { boot: BootId(process.boot.0 ^ 1), ..process }, Sameness::Different);
    check(ProcessRef { boot: BootId(0), ..process }, Sameness::Unknown);
    check(ProcessRef { start: 0, ..process }, Sameness::Unknown);
    assert_eq!(identify(std::process::id()), own());
}

#[test]
fn a_zombie_has_exited() {
    let mut cat = Cat::start();
    let process = cat.process();
    cat.become_zombie();
    assert_eq!(identify(cat.pid()), Probe::No);
    check(process, Sameness::Different);
    cat.reap();
    assert_eq!(identify(cat.pid()), Probe::No);
    check(process, Sameness::Different);
}

#[test]
fn numbers_that_are_no_process_are_none() {
    for pid in [0, u32::MAX, i32::MAX as u32] {
        assert_eq!(identify(pid), Probe::No, "{pid}");
    }
}

#[test]
fn a_thread_is_not_a_process() {
    let own_thread = rustix::thread::gettid().as_raw_nonzero().get();
    // A test runs on a thread of its own, which lives while it looks at itself.
    assert_ne!(u32::try_from(own_thread).unwrap(), std::process::id());
    assert_eq!(identify(u32::try_from(own_thread).unwrap()), Probe::No);
}

#[test]
fn another_users_process_has_an_identity() {
    let first = identify(1).yes().unwrap();
    check(first, Sameness::Same);
}
