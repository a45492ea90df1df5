use std::time::Instant;

use crate::rig::{BOTH, Holder, Rig};

#[test]
fn both_locks_are_listed_with_our_pid_until_released() {
    let rig = Rig::take();
    let mut holder = Holder::start(&["idle", "handle-lid-switch"]);
    println!("{}", holder.line("took"));
    assert_eq!(holder.line("held"), "held [idle handle-lid-switch] retaken [] unconfirmed None");
    assert_eq!(rig.listed(holder.pid()), BOTH);

    let begun = Instant::now();
    holder.say("release");
    assert_eq!(holder.line("released"), "released [] retaken [] unconfirmed None");
    let took = rig.wait_listed(holder.pid(), &[]);
    assert!(begun.elapsed().as_millis() < 1000, "gone after {took:?}");
}

#[test]
fn a_shut_lid_suspends_only_after_the_release() {
    let rig = Rig::take();
    let mut holder = Holder::start(&["idle", "handle-lid-switch"]);
    holder.line("held");
    rig.turn("SetLid", Some("true"));
    // logind has handled the lid once its property says so.
    let closed = [
        "get-property",
        "org.freedesktop.login1",
        "/org/freedesktop/login1",
        "org.freedesktop.login1.Manager",
        "LidClosed",
    ];
    while crate::rig::run(std::process::Command::new("busctl").args(closed)) != "b true\n" {}
    holder.say("verify");
    holder.line("verified [idle handle-lid-switch]");
    assert_eq!(rig.sleeps(), "as 0\n");

    holder.say("release");
    let begun = Instant::now();
    while rig.sleeps() == "as 0\n" {
        assert!(
            begun.elapsed() < crate::rig::PATIENCE,
            "the lid is shut, nobody holds, and the machine is awake"
        );
    }
    rig.turn("SetLid", Some("false"));
}
