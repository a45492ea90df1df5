use crate::{
    holder::Holder,
    rig::{BOTH, Rig},
};

#[test]
fn a_user_without_a_session_gets_idle_and_is_told_what_the_lid_lock_needs() {
    let rig = Rig::take();
    let holder = Holder::start_as("rig-denied", &["idle", "handle-lid-switch", "sleep"]);
    assert_eq!(holder.line("held"), "held [idle] retaken [] unconfirmed None");
    for kind in ["handle-lid-switch", "sleep"] {
        let line = holder.line(&format!("refused {kind}: logind denies the {kind} lock to this user"));
        let (_, fix) = line.split_once(" FIX ").unwrap();
        let action = if kind == "sleep" { "inhibit-block-sleep" } else { "inhibit-handle-lid-switch" };
        assert!(fix.contains("/etc/polkit-1/rules.d/50-watchkeeper.rules"), "{fix}");
        assert!(fix.contains(&format!("action.id == \"org.freedesktop.login1.{action}\"")), "{fix}");
        assert!(fix.contains("subject.user == \"rig-denied\""), "{fix}");
    }
    assert_eq!(rig.listed(holder.pid()), ["Watchkeeper idle block"]);
}

#[test]
fn a_user_whom_polkit_lets_gets_both() {
    let rig = Rig::take();
    let holder = Holder::start_as("rig-allowed", &["idle", "handle-lid-switch"]);
    assert_eq!(holder.line("held"), "held [idle handle-lid-switch] retaken [] unconfirmed None");
    assert_eq!(rig.listed(holder.pid()), BOTH);
}
