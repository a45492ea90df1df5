use std::time::{Duration, Instant};

use crate::{
    holder::Holder,
    rig::{BOTH, Rig},
};

#[test]
fn the_hold_is_gone_within_a_second_of_sigkill() {
    let rig = Rig::take();
    let mut holder = Holder::start(&["idle", "handle-lid-switch"]);
    holder.line("held [idle handle-lid-switch]");
    assert_eq!(rig.listed(holder.pid()), BOTH);
    let pid = holder.pid();
    let begun = Instant::now();
    holder.child.kill().unwrap();
    rig.wait_listed(pid, &[]);
    let took = begun.elapsed();
    println!("hold gone {took:?} after SIGKILL");
    assert!(took < Duration::from_secs(1), "{took:?}");
}
