//! The way to sleep: debts, questions, joins, cancellations, each as a short story.

use crate::{at, rules::ALIVE, world::*};
use watchkeeper_core::{
    DeadlineKind, Effect, InputBody, Mark, Settings,
    effect::{HookAnswer, Probe, SuspendReason, Webhook},
    input::{Known, ProbeAnswer},
    signal::{LockSubject, Source},
    view::ShownState::{Idle, Waiting, Working},
};

/// A machine whose lid was shut while a session worked.
pub(crate) fn shut(settings: Settings) -> World {
    let mut world = World::new(settings);
    world.lid(false);
    world.displays(0);
    world.hear(prompt().turn("a").from(1));
    world.lid(true);
    assert!(reached(&world, Mark::Owed));
    world
}

#[test]
fn an_owed_sleep_follows_the_last_stop() {
    let mut world = shut(Settings { sound: Some("bell".to_owned()), ..suspending() });
    world.effects.clear();
    world.hear(stop().turn("a"));
    assert_eq!(world.next(), Some(DeadlineKind::SuspendDelay));
    assert!(world.core.machine().wanted, "held until the request is settled");
    world.wait(10_000);
    assert_eq!(world.next(), Some(DeadlineKind::Webhook));
    world.tell(InputBody::WebhookReported { accepted: true });
    assert_eq!(world.next(), Some(DeadlineKind::Sound));
    world.tell(InputBody::SoundEnded);
    assert_eq!(world.next(), Some(DeadlineKind::SuspendRequest));
    assert!(world.core.machine().wanted);
    world.tell(InputBody::SuspendReported { accepted: true, message: String::new() });
    assert!(!world.core.machine().wanted);
    let posts =
        world.effects.iter().any(|e| matches!(e, Effect::Webhook { event: Webhook::PostSessionEnd { .. } }));
    assert!(!posts, "the announcement of the suspend stands for it");
    let told = world.count(|e| {
        matches!(e, Effect::RecordSuspend { success: true, reason: SuspendReason::Completed, .. })
    });
    assert_eq!(told, 1);
    world.tell(InputBody::SleepEnded { slept: SECOND });
    world.hear(prompt().turn("b"));
    world.hear(stop().turn("b"));
    assert!(!reached(&world, Mark::SuspendFailed) && world.core.machine().suspend.is_none(), "no new debt");
}

#[test]
fn unknown_never_suspends() {
    for body in [
        InputBody::Lid { state: Known::Unknown },
        InputBody::Displays { external_on: Known::Unknown },
        InputBody::Displays { external_on: Known::Is(1) },
        InputBody::Lid { state: Known::Is(false) },
    ] {
        let mut world = shut(suspending());
        world.hear(stop().turn("a"));
        world.effects.clear();
        world.tell(body);
        assert_eq!(world.core.machine().suspend, None);
        assert_eq!(
            world.count(|e| matches!(e, Effect::Webhook { event: Webhook::PostSessionEnd { .. } })),
            1
        );
    }
}

#[test]
fn activity_cancels_and_a_record_of_the_stopped_turn_does_not() {
    let mut world = shut(suspending());
    world.hear(stop().turn("a"));
    world.hear(displayed());
    world.hear(output().turn("a").happened(1_001_500).source(Source::Transcript));
    assert!(world.core.machine().suspend.is_some());
    world.hear(prompt().turn("b"));
    assert!(world.core.machine().suspend.is_none());
    assert!(reached(&world, Mark::SuspendCancelled));
}

#[test]
fn a_later_stop_joins_and_the_delay_begins_again() {
    let mut world = shut(suspending());
    world.hear(prompt().of("u").turn("x").from(2));
    world.hear(lock("permission_prompt", LockSubject::Session).of("u").turn("x"));
    world.hear(stop().turn("a"));
    assert_eq!(world.core.machine().suspend.as_deref(), Some("SoftLocked, delay"));
    world.wait(3_000);
    world.hear(aborted().of("u").turn("x"));
    assert!(reached(&world, Mark::SuspendJoined));
    assert_eq!(world.core.machine().suspend.as_deref(), Some("Completed, delay"));
    assert_eq!(world.core.next_deadline().unwrap().0, at(world.ms + 10_000).mono);
    // One that was over already is no later stop.
    world.wait(3_000);
    world.hear(stop_with(Some(Vec::new())).turn("a"));
    assert_eq!(world.core.next_deadline().unwrap().0, at(world.ms + 6_000).mono);
}

#[test]
fn a_question_before_the_sleep_can_be_answered() {
    let mut world = shut(Settings { ask_before_sleep: true, ..suspending() });
    world.effects.clear();
    world.hear(stop().turn("a").held());
    assert_eq!(world.count(|e| matches!(e, Effect::HoldHook { .. })), 1);
    world.wait(10_000);
    assert_eq!(world.state("s"), Some(Waiting));
    assert_eq!(world.core.session(&world.key("s")).unwrap().waiting_for.as_deref(), Some("ask_before_sleep"));
    assert!(!world.protects("s"));
    world.effects.clear();
    let key = world.key("s");
    world.tell(InputBody::ReplyReceived {
        key,
        incarnation: watchkeeper_core::Incarnation(1),
        message: Some("go on".to_owned()),
    });
    assert_eq!(world.state("s"), Some(Working));
    assert!(reached(&world, Mark::PathContinuation));
    let answers =
        world.count(|e| matches!(e, Effect::AnswerHook { answer: HookAnswer::Continue { message }, .. } if message == "go on"));
    assert_eq!(answers, 1);
}

#[test]
fn an_unanswered_question_lets_the_machine_sleep() {
    let mut world = shut(Settings { ask_before_sleep: true, webhooks: false, ..suspending() });
    world.hear(stop().turn("a").held());
    world.wait(10_000);
    assert_eq!(world.core.machine().suspend.as_deref(), Some("Completed, asking"));
    world.effects.clear();
    world.wait(5 * MINUTE);
    assert_eq!(world.state("s"), Some(Idle));
    let nothing = |e: &Effect| matches!(e, Effect::AnswerHook { answer: HookAnswer::Nothing, .. });
    assert_eq!(world.effects.iter().filter(|e| nothing(e)).count(), 1);
    assert_eq!(world.count(|e| matches!(e, Effect::RequestSuspend { .. })), 1);
}

#[test]
fn a_held_hook_is_answered_at_its_own_deadline() {
    let mut world = shut(Settings { ask_before_sleep: true, ..suspending() });
    world.hear(prompt().of("u").turn("x").from(2));
    world.hear(lock("permission_prompt", LockSubject::Session).of("u").turn("x"));
    world.effects.clear();
    world.hear(stop().turn("a").held());
    // Nobody can tell whether the other one was answered, again and again; then it was not.
    world.wait(341_000);
    world.answer("u", Probe::YoungerChild, ALIVE);
    assert_eq!(world.core.machine().suspend.as_deref(), Some("SoftLocked, asking"));
    world.wait(31_000);
    assert!(reached(&world, Mark::DueHeldHook));
    let answers = world.count(|e| matches!(e, Effect::AnswerHook { answer: HookAnswer::Nothing, .. }));
    assert_eq!(answers, 1);
    assert_eq!(world.state("s"), Some(Idle));
}

#[test]
fn a_waiting_session_is_looked_at_before_the_machine_sleeps() {
    let waiting = |answer: ProbeAnswer| {
        let mut world = shut(Settings { webhooks: false, ..suspending() });
        world.hear(tool("t", "Bash").turn("a"));
        world.hear(lock("permission_prompt", named("Bash")).turn("a"));
        assert_eq!(world.next(), Some(DeadlineKind::SuspendDelay));
        world.wait(60_000);
        world.answer("s", Probe::YoungerChild, answer);
        world
    };
    let mut world = waiting(ALIVE);
    assert_eq!(
        world.count(|e| matches!(e, Effect::RequestSuspend { reason: SuspendReason::SoftLocked, .. })),
        1
    );
    let world = waiting(ProbeAnswer { younger_child: Known::Is(true), ..ALIVE });
    assert_eq!(world.state("s"), Some(Working));
    assert!(world.core.machine().suspend.is_none());
    let mut world = waiting(ProbeAnswer::default());
    assert_eq!(world.count(|e| matches!(e, Effect::RequestSuspend { .. })), 0);
    assert!(reached(&world, Mark::SuspendUnknown));
}

#[test]
fn an_exit_suspends_silently_and_a_failed_request_ends() {
    let mut world = shut(suspending());
    world.effects.clear();
    world.hear(exited(1));
    world.wait(10_000);
    assert_eq!(world.effects.iter().filter(|e| matches!(e, Effect::Webhook { .. })).count(), 0);
    for _ in 0..3 {
        assert_eq!(world.next(), Some(DeadlineKind::SuspendRequest));
        world.tell(InputBody::SuspendReported { accepted: false, message: "refused".to_owned() });
        if world.core.machine().suspend.is_some() {
            world.run_to(&DeadlineKind::SuspendDelay);
        }
    }
    assert_eq!(world.count(|e| matches!(e, Effect::RequestSuspend { reason: SuspendReason::Silent, .. })), 3);
    assert!(!world.core.machine().wanted);
}

#[test]
fn a_prompt_from_just_before_the_question_leaves_no_plan() {
    let mut world = shut(Settings { ask_before_sleep: true, ..suspending() });
    world.hear(stop().turn("a").held());
    world.wait(10_000);
    assert_eq!(world.core.machine().suspend.as_deref(), Some("Completed, asking"));
    // Its hook was slow: the question's lock is later than the prompt, and only the cancel takes it away.
    let before = world.ms - 1;
    world.hear(prompt().turn("b").happened(before));
    assert_eq!(world.state("s"), Some(Working));
    assert_eq!(world.core.machine().suspend, None);
    assert_eq!(world.core.check_invariants(), Vec::new());
}
