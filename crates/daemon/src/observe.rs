//! The actor that sees what happens to the machine: lid, displays, mains, battery, sleep and resume.

use std::time::Duration;

use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use watchkeeper_core::InputBody;
use watchkeeper_os::power::observe::{Change, Observer};

use crate::event::Event;

/// So long a sleep of the machine waits for its row in the journal; then it goes on, and the row is stored at the resume.
/// Below logind's own limit for whoever delays a sleep (`InhibitDelayMaxSec`, 5 s by default).
const SLEEP_ROW_WITHIN: Duration = Duration::from_secs(3);

/// Runs until the daemon is gone. Costs nothing while nothing changes.
pub(crate) async fn run(events: mpsc::Sender<Event>) {
    let observer = Observer::new();
    loop {
        let change = tokio::select! {
            change = observer.next() => change,
            () = events.closed() => return,
        };
        let (event, stored) = event(change);
        if events.send(event).await.is_err() {
            return;
        }
        if let Some(stored) = stored {
            match timeout(SLEEP_ROW_WITHIN, stored).await {
                // An end of the daemon lets the machine sleep, too.
                Ok(Ok(()) | Err(_)) => {}
                Err(_) => tracing::warn!("the machine sleeps before the journal could say so"),
            }
            observer.ready_to_sleep();
        }
    }
}

/// The event for a change, and for the begin of a sleep what it waits for.
fn event(change: Change) -> (Event, Option<oneshot::Receiver<()>>) {
    let body = match change {
        Change::Lid { closed } => InputBody::Lid { state: closed },
        Change::Displays { external_on } => InputBody::Displays { external_on },
        Change::Power { on_battery, percent } => InputBody::Power { on_battery, percent },
        Change::SleepBegan => {
            let (stored, waiting) = oneshot::channel();
            return (Event::SleepBegan { stored }, Some(waiting));
        }
        Change::SleepEnded { slept } => InputBody::SleepEnded { slept },
    };
    (Event::Observed(body), None)
}
