use crate::{
    holder::Holder,
    rig::{BOTH, NO_SLEEPS, Rig},
};

const ADOPTED: &str = "inherited [idle handle-lid-switch]";

#[test]
fn an_exec_keeps_the_hold_while_the_lid_is_shut() {
    let rig = Rig::take();
    let mut holder = Holder::start(&["idle", "handle-lid-switch"]);
    assert_eq!(holder.line("pid"), format!("pid {} inherited []", holder.pid()));
    holder.line("held [idle handle-lid-switch]");
    rig.shut_lid();
    holder.say("exec");
    assert_eq!(holder.line("pid"), format!("pid {} {ADOPTED}", holder.pid()));
    assert_eq!(holder.line("held"), "held [idle handle-lid-switch] retaken [] unconfirmed None");
    assert_eq!(rig.listed(holder.pid()), BOTH);
    assert_eq!(rig.sleeps(), NO_SLEEPS, "a gap with the lid shut would have suspended");
    holder.say("release");
    rig.wait_listed(holder.pid(), &[]);
    rig.sleep_by_lid();
}

#[test]
fn a_successor_with_another_pid_takes_its_own_locks_before_it_drops_the_handed_ones() {
    let rig = Rig::take();
    let mut holder = Holder::start(&["idle", "handle-lid-switch"]);
    assert_eq!(holder.line("pid"), format!("pid {} inherited []", holder.pid()));
    holder.line("held [idle handle-lid-switch]");
    rig.shut_lid();
    holder.say("spawn");
    let greeting = holder.line("pid");
    let successor = greeting.strip_suffix(ADOPTED).and_then(|rest| rest.strip_prefix("pid ")).unwrap();
    let successor: u32 = successor.trim().parse().unwrap();
    assert_ne!(successor, holder.pid());
    holder.line("held [idle handle-lid-switch]");
    assert_eq!(rig.listed(successor), BOTH);
    rig.wait_listed(holder.pid(), &[]);
    assert_eq!(rig.sleeps(), NO_SLEEPS, "a gap with the lid shut would have suspended");
    holder.say("release");
    holder.line("released []");
    rig.wait_listed(successor, &[]);
    rig.sleep_by_lid();
}
