use std::time::Duration;

use tokio::{runtime, time::timeout};
use watchkeeper_core::input::Known;
use watchkeeper_os::power::observe::{Change, Observer};

use crate::{
    holder::Holder,
    rig::{NO_SLEEPS, PATIENCE, Rig},
};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The next change that `wanted` accepts; others are passed over.
async fn told(observer: &Observer, what: &str, wanted: impl Fn(&Change) -> bool) -> Change {
    let mut seen = Vec::new();
    let found = timeout(PATIENCE, async {
        loop {
            let change = observer.next().await;
            if wanted(&change) {
                return change;
            }
            seen.push(change);
        }
    });
    let found = found.await;
    found.unwrap_or_else(|_| panic!("{what} was not told, but {seen:?}"))
}

#[test]
fn lid_mains_and_battery_are_told() {
    let rig = Rig::take();
    rig.turn("SetAC", Some("true"));
    rig.turn("SetBattery", Some("80"));
    block_on(async {
        let observer = Observer::new();
        told(&observer, "an open lid", |c| *c == Change::Lid { closed: Known::Is(false) }).await;
        // The lid lock is not ours here: hold it, so that the shut lid suspends nothing.
        let _holder = {
            let holder = Holder::start(&["handle-lid-switch"]);
            holder.line("held [handle-lid-switch]");
            holder
        };
        rig.shut_lid();
        told(&observer, "a shut lid", |c| *c == Change::Lid { closed: Known::Is(true) }).await;
        rig.turn("SetAC", Some("false"));
        told(&observer, "battery", |c| matches!(c, Change::Power { on_battery: Known::Is(true), .. })).await;
        rig.turn("SetBattery", Some("12"));
        let low = |c: &Change| *c == Change::Power { on_battery: Known::Is(true), percent: Known::Is(12) };
        told(&observer, "12 %", low).await;
        assert_eq!(observer.seen().lid_closed, Known::Is(true));
        // Before the holder ends.
        rig.open_lid();
        told(&observer, "an open lid", |c| *c == Change::Lid { closed: Known::Is(false) }).await;
        rig.turn("SetAC", Some("true"));
        told(&observer, "mains", |c| matches!(c, Change::Power { on_battery: Known::Is(false), .. })).await;
    });
}

#[test]
fn a_sleep_waits_for_us_and_is_told_with_its_end() {
    let rig = Rig::take();
    block_on(async {
        let observer = Observer::new();
        told(&observer, "an open lid", |c| *c == Change::Lid { closed: Known::Is(false) }).await;
        for turn in 1..=2 {
            rig.turn("ResetSleeps", None);
            rig.suspend();
            told(&observer, "the begin of a sleep", |c| *c == Change::SleepBegan).await;
            assert_eq!(rig.sleeps(), NO_SLEEPS, "sleep {turn} did not wait for us");
            observer.ready_to_sleep();
            let ended = told(&observer, "its end", |c| matches!(c, Change::SleepEnded { .. })).await;
            assert!(matches!(ended, Change::SleepEnded { slept } if slept < PATIENCE), "{ended:?}");
            assert_eq!(rig.sleeps(), "as 1 \"suspend:rc=0:state=mem\"\n");
            // The look after the end takes the next delay lock; it is over when nothing more is told.
            let quiet = timeout(Duration::from_millis(500), observer.next()).await;
            assert!(quiet.is_err(), "{quiet:?}");
        }
    });
}
