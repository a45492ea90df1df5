use std::time::Instant;

use crate::{
    holder::Holder,
    rig::{BOTH, NO_SLEEPS, Rig},
};

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
    rig.shut_lid();
    holder.say("verify");
    holder.line("verified [idle handle-lid-switch]");
    assert_eq!(rig.sleeps(), NO_SLEEPS);

    holder.say("release");
    holder.line("released []");
    rig.sleep_by_lid();
}
