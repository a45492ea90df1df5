use super::*;
use crate::recordings::load::Label;
use watchkeeper_core::{AgentKind, Wall};

/// A recording of one session with these labels, in which nothing happens.
fn recording(labels: &[(f64, f64, ShownState)], protects_at_end: bool) -> Recording {
    let label = |(from, to, state): &(f64, f64, ShownState)| Label {
        from: *from,
        to: *to,
        session: "s".to_owned(),
        state: *state,
    };
    Recording {
        name: "claude/made-up".to_owned(),
        folder: "claude".to_owned(),
        agent: AgentKind::Claude,
        agent_version: "1".to_owned(),
        sessions: vec!["s".to_owned()],
        wall_zero: Wall(0),
        events: Vec::new(),
        labels: labels.iter().map(label).collect(),
        protects_at_end,
    }
}

/// Judges labels against a session that prompts at 1 s and stops at 5 s.
fn check(labels: &[(f64, f64, ShownState)], expected: (f64, u32, bool)) {
    use crate::recordings::load::{Event, EventKind};
    let hook = |t: f64, event: &str| Event {
        t,
        kind: EventKind::Hook {
            begun: t,
            delivery: 0,
            event: event.to_owned(),
            argv: Vec::new(),
            payload: format!(r#"{{"session_id":"s","prompt_id":"p","hook_event_name":"{event}"}}"#)
                .into_bytes(),
            ancestry: Vec::new(),
            answered: false,
        },
    };
    let recording = recording(labels, false);
    let mut replay = Replay::new(&recording).unwrap();
    replay.run(&[hook(1.0, "UserPromptSubmit"), hook(5.0, "Stop")], 10.0);
    let judged = judge(&recording, &replay);
    assert_eq!((judged.wrong_s, judged.late, judged.right()), expected, "{labels:?}: {:?}", judged.wrong);
}

#[test]
fn a_right_state_may_lag_by_a_second() {
    use ShownState::{Idle, Working};
    check(&[(1.0, 4.9, Working), (5.0, 9.0, Idle)], (0.0, 0, true));
    check(&[(0.1, 4.9, Working)], (0.0, 0, true));
    check(&[(4.2, 9.0, Idle)], (0.0, 0, true));
}

/// Working from 1 s to 5 s is shown.
#[test]
fn what_is_shown_must_be_true_of_a_label_near_it_however_short_they_are() {
    use ShownState::{Idle, Waiting, Working};
    check(&[(0.0, 2.8, Working), (2.8, 3.4, Idle), (3.4, 9.0, Working)], (4.0, 0, false));
    check(&[(0.0, 2.8, Working), (2.8, 3.4, Idle), (3.4, 4.9, Working)], (0.0, 0, true));
    check(&[(0.0, 1.5, Idle), (1.5, 2.4, Waiting), (2.4, 3.3, Idle), (3.3, 4.2, Waiting)], (3.2, 0, false));
    check(&[(0.0, 1.5, Idle), (1.5, 2.4, Waiting), (3.3, 4.2, Waiting)], (1.4, 0, false));
}

#[test]
fn wrong_and_late_time_is_counted() {
    use ShownState::{Idle, Waiting, Working};
    check(&[(1.0, 4.0, Waiting)], (2.0, 0, false));
    // Right only half a second after the tolerance.
    check(&[(3.5, 9.0, Idle)], (0.5, 1, false));
    // Nothing was known before the prompt.
    check(&[(-3.0, 1.0, Idle)], (3.0, 0, false));
    // Too short to judge.
    check(&[(2.0, 3.0, Idle)], (0.0, 0, true));
    check(&[(1.0, 7.0, Working)], (2.0, 0, false));
}

#[test]
fn the_end_verdict_is_the_machines() {
    let mut awake = recording(&[], true);
    let replay = Replay::new(&awake).unwrap();
    assert!(!judge(&awake, &replay).end_ok);
    awake.protects_at_end = false;
    assert!(judge(&awake, &replay).end_ok);
}

#[test]
fn recall_weighs_states_equally() {
    let seconds = BTreeMap::from([(ShownState::Idle, (100.0, 100.0)), (ShownState::Waiting, (0.5, 1.0))]);
    assert_eq!(recall(&seconds), Some(0.75));
    assert_eq!(recall(&BTreeMap::new()), None);
}
