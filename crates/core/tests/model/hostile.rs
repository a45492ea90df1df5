//! Whatever comes in, in whatever order: nothing panics, every invariant holds after every step, a snapshot continues
//! as the original does, and a replay from empty gives the same state.

use crate::{
    core,
    pools::{Act, Run, act, quiet_act, settings, shut, signal},
    traits,
};
use proptest::{
    collection::vec,
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, TestRunner},
};
use std::collections::BTreeMap;
use watchkeeper_core::{ALL_MARKS, Core, Effect, InputBody, Mark, Marks, Settings};

/// `PROPTEST_CASES` overrides the number (`cargo xtask explore`).
#[expect(clippy::disallowed_methods, reason = "the test's own size, not the core's")]
fn cases(n: u32) -> Config {
    let wanted = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { wanted.cases } else { n };
    Config { cases, failure_persistence: None, ..wanted }
}

/// Runs the acts with every check after every step.
fn check(acts: &[Act], start: Core) -> Result<Run, TestCaseError> {
    let mut run = Run::new(start);
    let mut answered: BTreeMap<u128, u32> = BTreeMap::new();
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
            if let Effect::AnswerHook { delivery, .. } = effect {
                let left = answered.entry(delivery.0).or_default();
                prop_assert!(*left > 0, "a hook was answered twice");
                *left -= 1;
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
        check(&acts, Core::new(settings, traits()))?;
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

    #[test]
    fn invariants_hold_on_the_way_to_sleep(acts in sleepy(), settings in settings()) {
        check(&acts, Core::new(Settings { suspend: true, ..settings }, traits()))?;
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

/// What no input can reach is a dead rule.
#[test]
fn every_mark_can_be_reached() {
    // The first two need more than the pools hold, the last one more patience: there are stories for them.
    const ELSEWHERE: [Mark; 3] = [Mark::LimitReached, Mark::EndedDropped, Mark::DueHeldHook];
    let mut runner = TestRunner::deterministic();
    let mut reached = Marks::default();
    let busy = (vec(act(), 100).boxed(), settings().boxed());
    let sleepy = (sleepy().boxed(), settings().prop_map(|s| Settings { suspend: true, ..s }).boxed());
    for n in 0..RUNS {
        let (acts, settings) = if n % 2 == 0 { &busy } else { &sleepy };
        let acts = acts.new_tree(&mut runner).unwrap().current();
        let mut run = Run::new(Core::new(settings.new_tree(&mut runner).unwrap().current(), traits()));
        for act in &acts {
            if let Some(input) = run.input_of(act) {
                let outcome = run.handle(input);
                reached = reached.union(outcome.marks);
            }
        }
    }
    let elsewhere: Vec<&str> = ELSEWHERE.iter().map(|m| ALL_MARKS[*m as usize]).collect();
    let missing: Vec<&str> = ALL_MARKS
        .iter()
        .copied()
        .filter(|name| !elsewhere.contains(name) && !reached.names().any(|r| r == *name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Enough for every mark with room to spare; the seed is fixed.
const RUNS: usize = 1_000;

/// A machine that may go to sleep, one way or another.
fn sleepy() -> impl Strategy<Value = Vec<Act>> {
    (signal(), any::<bool>(), vec(quiet_act(), 1..40)).prop_map(|((ending, _), waiting, rest)| {
        let mut acts = shut(ending, waiting);
        acts.extend(rest);
        acts
    })
}
