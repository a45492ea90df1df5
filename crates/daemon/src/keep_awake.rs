//! The actor that holds the machine awake: told what is wished, it takes or lets go, reads back, and reports.

use std::time::Duration;

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::sleep,
};
use watchkeeper_api::method::{Check, CheckLevel};
use watchkeeper_core::{InputBody, input::Refused, view::MachineView};
use watchkeeper_os::power::inhibit::{HandOver, Held, Inhibitor, Keeper, Kind, Report};

use crate::event::Event;

/// What the hold consists of. Sleep that a person asks for is never prevented.
const KINDS: [Kind; 2] = [Kind::Idle, Kind::LidSwitch];

/// A question to the system that is on its way when the wishing side goes is waited for so long, since its answer may be a
/// lock. Then it is given up: what is held already is given away or let go all the same.
const LAST_ANSWER_WITHIN: Duration = Duration::from_millis(1500);
/// Within this after the last wish whoever waits for the locks has them; only a fault makes it longer.
pub(crate) const LEFT_WITHIN: Duration = LAST_ANSWER_WITHIN.saturating_add(Duration::from_secs(1));

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
    inhibitor: Inhibitor,
    mut wishes: watch::Receiver<Wish>,
    handed: Vec<Held>,
    events: mpsc::Sender<Event>,
    mut leave: oneshot::Sender<HandOver>,
) {
    let mut held_for = !handed.is_empty();
    let mut keeper = Keeper::with_handed(inhibitor, handed);
    let last_wish = wishes.clone();
    loop {
        let news = tokio::select! {
            changed = wishes.changed() => match changed {
                Ok(()) => News::Wish(*wishes.borrow_and_update()),
                Err(_) => News::Ended,
            },
            // Without a hold nobody needs to know what happens to the service.
            _ = keeper.notice(), if held_for => News::Notice,
        };
        let asking = async {
            match news {
                News::Ended => None,
                News::Wish(wish) => {
                    held_for = wish.wanted;
                    Some(keeper.set(if wish.wanted { &KINDS } else { &[] }).await)
                }
                News::Notice => Some(keeper.verify().await),
            }
        };
        // What is held stays so when the question is dropped: a lock goes only after its answer.
        let report = tokio::select! {
            report = asking => report,
            () = long_gone(last_wish.clone(), &mut leave) => None,
        };
        let Some(report) = report else { break };
        if events.send(Event::Observed(reported(&report))).await.is_err() {
            break;
        }
    }
    // Without a successor nobody waits there, and closing the locks is letting go.
    drop(leave.send(HandOver::new(keeper.into_held())));
}

/// Waits until nobody wishes any more and then, if somebody wants the locks, for the last answer.
async fn long_gone(mut wishes: watch::Receiver<Wish>, leave: &mut oneshot::Sender<HandOver>) {
    while wishes.changed().await.is_ok() {}
    tokio::select! {
        () = leave.closed() => {}
        () = sleep(LAST_ANSWER_WITHIN) => {}
    }
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

/// What `doctor` says of the hold: what is refused, what follows from it, and what to do.
pub(crate) fn check(machine: &MachineView) -> Check {
    let refused: Vec<String> = machine
        .refused
        .iter()
        .map(|refused| format!("{} is refused: {}", refused.kind, refused.why))
        .collect();
    let held = machine.held.join(", ");
    let (level, detail, fix) = match (machine.wanted, machine.held.is_empty(), refused.is_empty()) {
        (false, ..) => (CheckLevel::Ok, "nothing to hold at the moment".to_owned(), None),
        (true, false, true) => (CheckLevel::Ok, format!("held, as read back: {held}"), None),
        (true, false, false) => (
            CheckLevel::Warn,
            format!("only {held} held; {}", refused.join("; ")),
            Some(format!("{} Allow it in the system's policy: docs/power.md shows how.", consequence(machine))),
        ),
        (true, true, false) => (
            CheckLevel::Fail,
            format!("nothing is held; {}", refused.join("; ")),
            Some(
                "The machine sleeps although an agent works. Allow the locks in the system's policy, or run where \
                 the system's power service can be reached: docs/power.md shows both."
                    .to_owned(),
            ),
        ),
        (true, true, true) => (
            CheckLevel::Fail,
            "wanted, not held, and the system has not said why".to_owned(),
            Some("Look again in a moment; then `watchkeeper daemon restart`.".to_owned()),
        ),
    };
    Check { name: "inhibitor".to_owned(), level, detail, fix }
}

/// What still puts the machine to sleep although something is held.
fn consequence(machine: &MachineView) -> &'static str {
    let is_refused = |kind: Kind| machine.refused.iter().any(|refused| refused.kind == kind.name());
    match (is_refused(Kind::Idle), is_refused(Kind::LidSwitch)) {
        (true, _) => "The machine still sleeps by itself when nobody touches it.",
        (false, true) => "A closed lid still puts the machine to sleep.",
        (false, false) => "The machine may still sleep.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_level(wanted: bool, held: &[Kind], refused: &[Kind], level: CheckLevel, says: &str) {
        let mut machine = watchkeeper_core::Core::new(
            watchkeeper_core::Settings::default(),
            watchkeeper_core::AgentTraits::default(),
        )
        .machine();
        machine.wanted = wanted;
        machine.held = held.iter().map(|kind| kind.name().to_owned()).collect();
        let why = |kind: &Kind| Refused { kind: kind.name().to_owned(), why: "logind denies it".to_owned() };
        machine.refused = refused.iter().map(why).collect();
        let found = check(&machine);
        assert_eq!(found.level, level, "{found:?}");
        assert_eq!(found.fix.is_some(), level != CheckLevel::Ok, "{found:?}");
        assert!(format!("{} {:?}", found.detail, found.fix).contains(says), "{found:?}");
    }

    #[test]
    fn a_hold_that_is_refused_is_worse_than_one_that_is_refused_in_part() {
        use Kind::{Idle, LidSwitch};
        check_level(false, &[], &[], CheckLevel::Ok, "nothing to hold");
        check_level(true, &KINDS, &[], CheckLevel::Ok, "idle, handle-lid-switch");
        check_level(true, &[Idle], &[LidSwitch], CheckLevel::Warn, "closed lid");
        check_level(true, &[LidSwitch], &[Idle], CheckLevel::Warn, "by itself");
        check_level(
            true,
            &[],
            &KINDS,
            CheckLevel::Fail,
            "idle is refused: logind denies it; handle-lid-switch is",
        );
        check_level(true, &[], &[], CheckLevel::Fail, "has not said why");
    }

    /// A keeper with a lock that another process took, so that an own one is asked for, on a bus that does not answer: what
    /// goes to a successor, if there is one, and how long after the last wish. The pipe's other end sees the lock's release.
    #[cfg(target_os = "linux")]
    async fn end_unanswered(has_successor: bool) -> (Vec<(Kind, u32)>, Duration) {
        use std::io::Read as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bus");
        let _silent = tokio::net::UnixListener::bind(&path).unwrap();
        let bus = Inhibitor::at(&format!("unix:path={}", path.display()));
        let (mut release, lock) = std::io::pipe().unwrap();
        let handed = HandOver::from_parts(vec![(Kind::LidSwitch, lock.into(), 1)]).unwrap().into_held();
        let (wish, wishes) = watch::channel(Wish::default());
        let (events, _queue) = mpsc::channel(1);
        let (leave, leaving) = oneshot::channel();
        let actor = tokio::spawn(run(bus, wishes, handed, events, leave));
        wish.send(Wish { wanted: true, verify: 1 }).unwrap();
        let begun = tokio::time::Instant::now();
        drop(wish);
        let handed = if has_successor {
            leaving.await.unwrap().into_parts()
        } else {
            drop(leaving);
            Vec::new()
        };
        actor.await.unwrap();
        let took = begun.elapsed();
        let seen = handed.iter().map(|part| (part.0, part.2)).collect();
        drop(handed);
        assert_eq!(release.read(&mut [0]).unwrap(), 0, "only who got it held it");
        (seen, took)
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(start_paused = true)]
    async fn a_question_without_an_answer_keeps_no_lock_from_the_successor() {
        let (handed, took) = end_unanswered(true).await;
        assert_eq!(handed, [(Kind::LidSwitch, 1)]);
        assert!(took < LEFT_WITHIN, "{took:?}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(start_paused = true)]
    async fn without_a_successor_no_answer_is_waited_for() {
        let (_, took) = end_unanswered(false).await;
        assert!(took < LAST_ANSWER_WITHIN, "{took:?}");
    }
}
