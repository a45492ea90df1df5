use crate::{
    holder::Holder,
    rig::{BOTH, Rig},
};

#[test]
fn locks_that_a_crashed_logind_lost_are_taken_again() {
    let rig = Rig::take();
    let holder = Holder::start(&["idle", "handle-lid-switch"]);
    holder.line("held [idle handle-lid-switch]");
    rig.turn("StopLogind", None);
    holder.line("notice ServiceGone");
    // Its next life would restore locks from here; a real crash may leave nothing, so nothing is left.
    let mounted = format!("/proc/{}/root/run/systemd/inhibit", rig_pid());
    for entry in std::fs::read_dir(mounted).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    rig.turn("StartLogind", None);
    holder.line("notice ServiceBack");
    assert_eq!(
        holder.line("upkeep"),
        "upkeep [idle handle-lid-switch] retaken [idle handle-lid-switch] unconfirmed None"
    );
    assert_eq!(rig.listed(holder.pid()), BOTH);
}

#[test]
fn locks_that_logind_restored_stay_as_they_are() {
    let rig = Rig::take();
    let mut holder = Holder::start(&["idle", "handle-lid-switch"]);
    holder.line("held [idle handle-lid-switch]");
    rig.turn("StopLogind", None);
    holder.line("notice ServiceGone");
    rig.turn("StartLogind", None);
    holder.line("notice ServiceBack");
    let upkeep = holder.line("upkeep [idle handle-lid-switch]");
    println!("after logind's restart: {upkeep}");
    assert_eq!(rig.listed(holder.pid()), BOTH);
    holder.say("release");
    rig.wait_listed(holder.pid(), &[]);
}

fn rig_pid() -> u32 {
    let path = format!("{}/rig.pid", std::env::var("RIG_RUN").unwrap());
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}
