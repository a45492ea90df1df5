//! Whatever comes in, in whatever order: nothing panics, every invariant holds after every step, a snapshot continues
//! as the original does, and a replay from empty gives the same state.

mod common;

use common::{Act, Run, act, core, settings};
use proptest::{collection::vec, prelude::*, test_runner::Config};
use std::collections::BTreeMap;
use watchkeeper_core::{Core, Effect, InputBody, effect::Webhook};

fn cases(n: u32) -> Config {
    Config { cases: n, failure_persistence: None, ..Config::default() }
}

/// Runs the acts with every check after every step.
fn check(acts: &[Act], start: Core) -> Result<Run, TestCaseError> {
    let mut run = Run::new(start);
    let mut answered: BTreeMap<u128, u32> = BTreeMap::new();
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    for act in acts {
        let Some(input) = run.input_of(act) else { continue };
        if let InputBody::Signal { held: Some(held), .. } = &input.body {
            *answered.entry(held.delivery.0).or_default() += 1;
        }
        let at_deadline =
            matches!(&input.body, InputBody::DeadlineReached { .. }) && matches!(act, Act::Wait);
        let before = run.core.next_deadline();
        let outcome = run.handle(input);
        let violations = run.core.check_invariants();
        prop_assert!(violations.is_empty(), "{violations:?} after {:?}", run.inputs.last());
        if at_deadline {
            // A deadline that was reached is gone or moved on; otherwise the shell would spin.
            prop_assert_ne!(&run.core.next_deadline(), &before, "after {:?}", run.inputs.last());
        }
        for effect in &outcome.effects {
            match effect {
                Effect::AnswerHook { delivery, .. } => {
                    let left = answered.entry(delivery.0).or_default();
                    prop_assert!(*left > 0, "a hook was answered twice");
                    *left -= 1;
                }
                Effect::Webhook { event: Webhook::PostSessionEnd { key, incarnation } } => {
                    let session = run.core.session(key);
                    let turn = session.map(|s| format!("{key} {incarnation:?} {:?}", s.started_at));
                    *ends.entry(turn.unwrap_or_default()).or_default() += 1;
                }
                _ => {}
            }
        }
    }
    // Views are total too.
    drop((run.core.machine(), run.core.why()));
    for session in run.core.sessions() {
        prop_assert!(run.core.explain(&session.key).is_some());
        prop_assert_eq!(run.core.protects(&session.key), session.protects);
    }
    Ok(run)
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn invariants_hold_after_every_step(acts in vec(act(), 1..80), settings in settings()) {
        check(&acts, Core::new(settings, common::traits()))?;
    }

    #[test]
    fn replay_and_snapshot_give_the_same_state(acts in vec(act(), 1..60), cut in 0usize..60) {
        let run = check(&acts, core())?;
        let mut again = core();
        let mut resumed = core();
        for (n, input) in run.inputs.iter().enumerate() {
            if n == cut {
                let text = serde_json::to_string(&resumed).unwrap();
                resumed = serde_json::from_str(&text).unwrap();
            }
            let one = again.handle(input);
            let two = resumed.handle(input);
            prop_assert_eq!(one, two);
        }
        prop_assert_eq!(&again, &run.core);
        prop_assert_eq!(&resumed, &run.core);
    }

    /// The deadlines alone bring every session to rest: nothing keeps a machine awake for ever without a word.
    #[test]
    fn time_alone_brings_rest(acts in vec(act(), 1..60)) {
        let mut run = check(&acts, core())?;
        for _ in 0..2_000 {
            let Some(input) = run.input_of(&Act::Wait) else { break };
            drop(run.handle(input));
            let violations = run.core.check_invariants();
            prop_assert!(violations.is_empty(), "{:?}", violations);
        }
        let leases_or_forced = run.core.machine().reasons.iter().all(|r| r.session.is_none());
        prop_assert!(leases_or_forced, "still protecting: {:?}", run.core.machine().reasons);
    }
}
