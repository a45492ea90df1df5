//! Recordings while something goes wrong. The whole corpus is `watchkeeper-sim perturb`, which the stage `sim` runs; here is the
//! part of it that is quick without optimisation, and that the judge finds what is wrong.

use std::path::Path;
use watchkeeper_sim::{
    perturb::{Kind, Outcome, Verdict, beyond, verdicts},
    recordings::{Recording, find},
};

fn recordings(folder: &str) -> Vec<Recording> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let found = find(&corpus.join(folder)).expect("the corpus is part of the repository");
    found.iter().map(|path| Recording::load(path).unwrap_or_else(|e| panic!("{e:#}"))).collect()
}

fn count(verdicts: &[Verdict], outcome: Outcome) -> usize {
    verdicts.iter().filter(|verdict| verdict.outcome == outcome).count()
}

#[test]
fn what_goes_wrong_costs_its_bound_at_most() {
    let verdicts = verdicts(&recordings("acp"), &Kind::ALL).expect("an adapter is built in");
    let wrong: Vec<&Verdict> = verdicts.iter().filter(|v| v.outcome == Outcome::Wrong).collect();
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
    for kind in Kind::ALL {
        assert!(verdicts.iter().any(|v| v.kind == kind), "nothing was {}", kind.name());
    }
    assert!(verdicts.len() >= 430, "only {} runs", verdicts.len());
    assert_eq!(beyond(&verdicts), Vec::<String>::new());
}

/// One run more than is known, of the kind and agent that it is known of or of any other, is a loss.
#[test]
fn more_cost_than_is_known_is_found() {
    let all =
        verdicts(&recordings("acp"), &[Kind::Dropped, Kind::Restarted]).expect("an adapter is built in");
    for outcome in [Outcome::Untold, Outcome::Unheld, Outcome::Inactivity] {
        for kind in [Kind::Dropped, Kind::Restarted] {
            let mut more = all.clone();
            let right = more.iter_mut().find(|v| v.kind == kind && v.outcome == Outcome::Right);
            right.expect("some run is right").outcome = outcome;
            assert_eq!(beyond(&more).len(), 1, "{} {outcome:?}", kind.name());
        }
    }
}

/// The judge itself: with another truth nothing is right.
#[test]
fn a_wrong_end_is_found() {
    let mut recordings = recordings("acp");
    recordings.truncate(2);
    for recording in &mut recordings {
        recording.protects_at_end = !recording.protects_at_end;
    }
    let verdicts = verdicts(&recordings, &Kind::ALL).expect("an adapter is built in");
    assert_eq!(count(&verdicts, Outcome::Wrong), verdicts.len());
}

/// And so do states that come too late.
#[test]
fn a_wrong_state_is_found() {
    let mut recordings = recordings("acp");
    for label in recordings.iter_mut().flat_map(|recording| &mut recording.labels) {
        // Nobody tells it so early.
        label.from -= 10.0;
        label.to -= 10.0;
    }
    let verdicts = verdicts(&recordings, &[Kind::Repeated, Kind::Away]).expect("an adapter is built in");
    assert!(count(&verdicts, Outcome::Wrong) * 2 > verdicts.len(), "{}", count(&verdicts, Outcome::Wrong));
}
