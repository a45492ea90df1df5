//! The actor that sees what happens to the machine: lid, displays, mains, battery, sleep and resume.

use tokio::sync::mpsc;
use watchkeeper_core::InputBody;
use watchkeeper_os::power::observe::{Change, Observer};

use crate::event::Event;

/// Runs until the daemon is gone. Costs nothing while nothing changes.
pub(crate) async fn run(events: mpsc::Sender<Event>) {
    let observer = Observer::new();
    loop {
        let change = tokio::select! {
            change = observer.next() => change,
            () = events.closed() => return,
        };
        let about_to_sleep = matches!(change, Change::SleepBegan);
        if events.send(Event::Observed(input(change))).await.is_err() {
            return;
        }
        if about_to_sleep {
            observer.ready_to_sleep();
        }
    }
}

fn input(change: Change) -> InputBody {
    match change {
        Change::Lid { closed } => InputBody::Lid { state: closed },
        Change::Displays { external_on } => InputBody::Displays { external_on },
        Change::Power { on_battery, percent } => InputBody::Power { on_battery, percent },
        Change::SleepBegan => InputBody::SleepBegan,
        Change::SleepEnded { slept } => InputBody::SleepEnded { slept },
    }
}
