//! The actor that holds the machine awake: told what is wished, it takes or lets go, reads back, and reports.

use tokio::sync::{mpsc, oneshot, watch};
use watchkeeper_core::{InputBody, input::Refused};
use watchkeeper_os::power::inhibit::{HandOver, Held, Inhibitor, Keeper, Kind, Report};

use crate::event::Event;

/// What the hold consists of. Sleep that a person asks for is never prevented.
const KINDS: [Kind; 2] = [Kind::Idle, Kind::LidSwitch];

/// The latest wish; only the latest counts. `verify` changes when the hold is to be looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wish {
    pub wanted: bool,
    pub verify: u64,
}

enum News {
    Wish(Wish),
    Notice,
    Ended,
}

/// Runs until the wishing side is gone; what is held then goes to whoever waits at `leave`, or is let go when nobody does.
/// Locks that a predecessor handed over stand until the first wish.
pub(crate) async fn run(
    mut wishes: watch::Receiver<Wish>,
    handed: Vec<Held>,
    events: mpsc::Sender<Event>,
    leave: oneshot::Sender<HandOver>,
) {
    let mut held_for = !handed.is_empty();
    let mut keeper = Keeper::with_handed(Inhibitor::new(), handed);
    loop {
        let news = tokio::select! {
            changed = wishes.changed() => match changed {
                Ok(()) => News::Wish(*wishes.borrow_and_update()),
                Err(_) => News::Ended,
            },
            // Without a hold nobody needs to know what happens to the service.
            _ = keeper.notice(), if held_for => News::Notice,
        };
        let report = match news {
            News::Ended => break,
            News::Wish(wish) => {
                held_for = wish.wanted;
                keeper.set(if wish.wanted { &KINDS } else { &[] }).await
            }
            News::Notice => keeper.verify().await,
        };
        if events.send(Event::Observed(reported(&report))).await.is_err() {
            break;
        }
    }
    // Without a successor nobody waits there, and closing the locks is letting go.
    drop(leave.send(HandOver::new(keeper.into_held())));
}

fn reported(report: &Report) -> InputBody {
    for kind in &report.retaken {
        tracing::warn!(%kind, "a lost lock was taken again");
    }
    let refused = report.refused.iter().map(|(kind, refused)| Refused {
        kind: kind.name().to_owned(),
        why: match refused.fix() {
            Some(fix) => format!("{refused}; {fix}"),
            None => refused.to_string(),
        },
    });
    InputBody::HoldReported {
        held: report.held.iter().map(|kind| kind.name().to_owned()).collect(),
        refused: refused.collect(),
    }
}
