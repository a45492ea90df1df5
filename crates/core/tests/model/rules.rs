//! Single rules of the model, each as a short story.

use crate::{at, process, sleep::shut, world::*};
use std::time::Duration;
use watchkeeper_core::{
    AgentKind, DeadlineKind, Effect, Input, InputBody, Mark, Settings, SignalBody, Verdict,
    effect::{HookAnswer, Probe, Webhook},
    input::{Known, ProbeAnswer, WatchOutcome},
    signal::{Activity, AgentState, EndReason, Lineage, LockSubject, Source, StartCause, WorkKind},
    view::ShownState::{Background, Ended, Idle, Waiting, Working},
};

const CLAUDE: AgentKind = AgentKind::Claude;
const CODEX: AgentKind = AgentKind::Codex;

#[test]
fn a_turn_begins_and_ends() {
    let world = check(
        CLAUDE,
        vec![
            (announced(StartCause::Startup).from(1), Idle),
            (prompt().turn("a").from(1), Working),
            (tool("t", "Bash").turn("a"), Working),
            (tool_done("t", "Bash").turn("a"), Working),
            (stop().turn("a"), Idle),
            (exited(1), Ended),
        ],
    );
    assert_eq!(world.core.session(&world.key("s")).unwrap().ended.as_deref(), Some("process_exited"));
    assert!(!world.core.machine().wanted);
}

#[test]
fn what_only_displays_changes_nothing() {
    let late = |say: Say| say.happened(1_003_500).source(Source::Transcript).turn("a");
    check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (output().turn("a"), Working),
            (displayed(), Working),
            // Stopped at 1 004 s.
            (stop().turn("a"), Idle),
            (displayed(), Idle),
            (late(output()), Idle),
            (late(tool("t", "Bash")), Idle),
            (late(tool_done("t", "Bash")), Idle),
            (doing(Activity::Progress).turn("a"), Idle),
            (prompt().turn("b"), Working),
            (lock("permission_prompt", named("Bash")).turn("b"), Waiting),
            (displayed(), Waiting),
            (tool_done("u", "Bash").turn("b"), Working),
            (stop_with(Some(vec![shell("sh")])).turn("b"), Background),
            (displayed(), Background),
        ],
    );
    // Nor is it a sign of work that begins the wait for one anew.
    let mut world = World::new(Settings::default());
    world.hear(prompt().turn("a").from(1));
    for _ in 0..11 {
        world.wait(MINUTE);
        world.hear(displayed());
    }
    world.wait(MINUTE);
    assert!(reached(&world, Mark::InactivityAsked));
}

#[test]
fn work_later_than_the_stop_goes_on_with_the_turn() {
    let world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (stop().turn("a"), Idle),
            // Another hook blocked the stop.
            (output().turn("a"), Working),
            (stop().turn("a"), Idle),
            (tool("t", "Bash").turn("b"), Working),
            (stop().turn("b"), Idle),
            // Of a turn that is over.
            (tool("u", "Bash").turn("a"), Idle),
        ],
    );
    assert!(reached(&world, Mark::ReopenedBySameTurn));
    assert!(reached(&world, Mark::ReopenedByNewerTurn));
    assert!(reached(&world, Mark::EarlierTurn));
}

#[test]
fn nothing_of_an_aborted_turn_opens_it_again() {
    check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (aborted().turn("a"), Idle),
            (output().turn("a"), Idle),
            (tool("t", "Bash").turn("a"), Idle),
            (output(), Idle),
            (prompt().turn("a"), Idle),
            (prompt().turn("b"), Working),
        ],
    );
}

#[test]
fn a_late_announcement_and_a_late_start_change_nothing() {
    let world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (announced(StartCause::Startup), Working),
            (stop().turn("a"), Idle),
            (prompt().turn("z").happened(1_002_500), Idle),
            (announced(StartCause::Resume), Idle),
            (prompt().turn("b"), Working),
            // A stop that a spool kept for long.
            (stop().happened(1_003_500).source(Source::Spool), Working),
        ],
    );
    assert!(reached(&world, Mark::LateSessionStart));
    assert!(reached(&world, Mark::EarlierIgnored));
    assert_eq!(world.core.sessions().len(), 1);
}

#[test]
fn background_work_defers_the_stop() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (work("sh", WorkKind::Shell), Working),
            (stop_with(Some(vec![shell("sh")])).turn("a"), Background),
            (work_done("sh"), Background),
        ],
    );
    assert!(world.protects("s"), "the grace in which the agent may wake");
    world.wait(9_000);
    assert_eq!(world.state("s"), Some(Background));
    world.wait(2_000);
    assert_eq!(world.state("s"), Some(Idle));
    assert!(reached(&world, Mark::DueWakeGrace));

    let world = check(
        CODEX,
        vec![
            (prompt().turn("a"), Working),
            (work("sh", WorkKind::Terminal), Working),
            (stop().turn("a"), Background),
            (work_done("sh"), Idle),
        ],
    );
    assert!(reached(&world, Mark::DrainedAtOnce));
}

#[test]
fn an_agent_that_wakes_begins_a_turn_within_the_grace() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (stop_with(Some(vec![shell("sh")])).turn("a"), Background),
            (work_done("sh"), Background),
            (prompt().turn("b"), Working),
        ],
    );
    world.wait(60_000);
    assert_eq!(world.state("s"), Some(Working));
    world.hear(stop_with(Some(Vec::new())).turn("b"));
    assert_eq!(world.state("s"), Some(Idle));
}

#[test]
fn a_schedule_defers_nothing() {
    let world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (stop_with(Some(vec![item("c", WorkKind::Scheduled)])).turn("a"), Idle),
        ],
    );
    assert!(!world.protects("s"));
}

#[test]
fn a_finish_blocks_older_starts_and_a_later_start_opens_again() {
    let world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (work("x", WorkKind::Subagent), Working),
            (work_done("x"), Working),
            (work("x", WorkKind::Subagent).happened(1_002_500), Working),
            (stop().turn("a"), Idle),
            (work("x", WorkKind::Subagent), Background),
            // An older end of it.
            (work_done("x").happened(1_004_500), Background),
            (work_done("x"), Background),
        ],
    );
    for mark in [Mark::WorkStartBlocked, Mark::WorkReopened, Mark::IdleToBackground, Mark::Drained] {
        assert!(reached(&world, mark), "{mark:?}");
    }
}

#[test]
fn a_level_finishes_what_is_not_on_it_and_never_its_own_subject() {
    let level =
        |live, except: Option<&str>| say(SignalBody::WorkLevel { live, except: except.map(str::to_owned) });
    let live = |world: &World| -> Vec<String> {
        world.core.session(&world.key("s")).unwrap().background.into_iter().map(|w| w.id).collect()
    };
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (work("x", WorkKind::Subagent), Working),
            (work("y", WorkKind::Shell), Working),
            (stop_with(Some(vec![item("x", WorkKind::Subagent), shell("y")])), Background),
            (level(vec![shell("y")], Some("x")), Background),
        ],
    );
    assert_eq!(live(&world), ["x", "y"]);
    world.hear(work_done("x"));
    world.hear(level(vec![item("x", WorkKind::Subagent), shell("y"), shell("z")], Some("x")));
    assert_eq!(live(&world), ["y", "z"]);
    world.hear(level(vec![shell("y")], None));
    assert_eq!(live(&world), ["y"]);
    assert_eq!(world.state("s"), Some(Background));
    assert!(reached(&world, Mark::WorkReconciled));
}

#[test]
fn a_lock_is_cleared_by_its_own_subject_only() {
    let world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (tool("t1", "Bash").turn("a"), Working),
            (tool("t2", "Edit").turn("a"), Working),
            (lock("permission_prompt", named("Bash")).turn("a"), Waiting),
            // Beside it, of a subagent, only shown, or older.
            (tool_done("t2", "Edit").turn("a"), Waiting),
            (tool("t3", "Read").turn("a"), Waiting),
            (tool("sub", "Bash").subagent("x"), Waiting),
            (doing(Activity::Progress), Waiting),
            (displayed(), Waiting),
            (output().turn("a").happened(1_003_500).source(Source::Transcript), Waiting),
            (tool_done("t1", "Bash").turn("a"), Working),
        ],
    );
    assert!(reached(&world, Mark::LockClearedBySubject));
    assert!(reached(&world, Mark::LockKept));
}

#[test]
fn a_lock_protects_nothing_and_later_work_clears_it() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (tool("t1", "Bash").turn("a"), Working),
            (lock("permission_prompt", named("Bash")).turn("a"), Waiting),
        ],
    );
    assert!(!world.protects("s") && !world.core.machine().wanted);
    world.hear(output().turn("a"));
    assert_eq!(world.state("s"), Some(Working));
    assert!(world.protects("s"));
    assert!(reached(&world, Mark::LockClearedByWork));
}

#[test]
fn a_lock_on_idle_or_where_nobody_can_be_asked_is_recorded_only() {
    let world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (stop().turn("a"), Idle),
            (lock("permission_prompt", LockSubject::Session).turn("a"), Idle),
            (prompt().turn("b").print_mode(), Working),
            (lock("permission_prompt", named("Bash")).turn("b"), Working),
            (stated(AgentState::Waiting), Working),
        ],
    );
    assert!(reached(&world, Mark::LockRefused));
}

#[test]
fn a_locked_session_with_live_work_protects() {
    let world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (work("sh", WorkKind::Shell), Working),
            (lock("question", LockSubject::Session).turn("a"), Waiting),
        ],
    );
    assert!(world.protects("s"));
}

#[test]
fn the_agents_own_state_corrects_what_is_older() {
    let world = check(
        CLAUDE,
        vec![
            (announced(StartCause::Startup), Idle),
            (stated(AgentState::Busy), Working),
            // The prompt's hook comes a moment after.
            (prompt().turn("a"), Working),
            // Escape before the first byte.
            (stated(AgentState::Idle), Idle),
            (output().turn("a"), Idle),
            (prompt().turn("b"), Working),
            (stated(AgentState::Idle).happened(1_005_500), Working),
            (stated(AgentState::Waiting), Waiting),
            (stated(AgentState::Dialog), Waiting),
            (stated(AgentState::Busy), Working),
            (stated(AgentState::Shell), Background),
            (stated(AgentState::Dialog), Background),
            (stated(AgentState::Gone), Background),
        ],
    );
    for mark in [Mark::StatedOlder, Mark::StatedShell, Mark::LockClearedByState, Mark::PathAbnormal] {
        assert!(reached(&world, mark), "{mark:?}");
    }
}

#[test]
fn compaction_between_turns_is_work_without_a_stop_path() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a"), Working),
            (stop().turn("a"), Idle),
            (doing(Activity::CompactionStarted), Working),
            (doing(Activity::CompactionFinished), Idle),
            (announced(StartCause::Compact), Idle),
            (doing(Activity::CompactionStarted), Working),
        ],
    );
    world.wait(11 * MINUTE);
    assert_eq!(world.state("s"), Some(Idle));
    assert!(reached(&world, Mark::DueCompaction));
    assert_eq!(world.core.sessions().len(), 1);
}

/// The hook that told of its start comes behind the record of its end.
#[test]
fn a_compaction_that_is_over_does_not_begin_again() {
    let ended = || doing(Activity::CompactionFinished).source(Source::Transcript);
    let late = || doing(Activity::CompactionStarted).happened(1_002_500);
    let script = vec![(prompt(), Working), (stop(), Idle), (ended(), Idle), (late(), Idle)];
    check(CLAUDE, script);
    let again = doing(Activity::CompactionStarted);
    check(CLAUDE, vec![(prompt(), Working), (stop(), Idle), (ended(), Idle), (again, Working)]);
}

#[test]
fn an_unknown_key_with_a_living_agent_begins_in_the_middle() {
    let mut world = check(CLAUDE, vec![(tool("t", "Bash").turn("a").from(4), Working)]);
    let session = world.core.session(&world.key("s")).unwrap();
    assert!(session.flags.contains(&"first_seen_mid_turn".to_owned()), "{:?}", session.flags);
    assert_eq!(session.processes, [process(4)]);
    // Without a process, or by what says nothing of work: recorded only.
    for say in [tool("t", "Bash").of("x"), stop().of("x").from(5), tool_done("t", "Bash").of("x").from(5)] {
        assert_eq!(world.hear(say), Verdict::Recorded);
    }
    assert_eq!(world.state("x"), None);
    world.hear(stop_with(Some(vec![shell("sh")])).of("y").from(6));
    assert_eq!(world.state("y"), Some(Background));
    world.hear(ended(EndReason::Reported).of("z"));
    assert_eq!(world.state("z"), Some(Ended));
}

#[test]
fn the_first_end_counts_and_a_start_begins_the_next_life() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (ended(EndReason::Reported), Ended),
            (exited(1), Ended),
            (output().turn("a").from(1).happened(1_001_500), Ended),
            (announced(StartCause::Resume).from(2), Idle),
            (prompt().turn("b").from(2), Working),
            // Of the first life: its process is of no other.
            (stop().turn("a").from(1), Working),
        ],
    );
    assert!(reached(&world, Mark::StaleIncarnation) || reached(&world, Mark::EarlierTurn));
    let session = world.core.session(&world.key("s")).unwrap();
    assert_eq!(session.incarnation.0, 2);
    world.hear(say(SignalBody::Removed));
    assert_eq!(world.state("s"), Some(Ended));
    world.hear(output().turn("c").from(3));
    world.hear(announced(StartCause::Resume).from(3));
    assert_eq!(world.state("s"), Some(Ended), "removed by a person: only a start brings it back");
    world.hear(prompt().turn("d").from(3));
    assert_eq!(world.state("s"), Some(Working));
}

#[test]
fn two_processes_of_one_session_end_one_by_one() {
    let mut world = check(
        CLAUDE,
        vec![
            (announced(StartCause::Startup).from(1), Idle),
            (prompt().turn("a").from(1), Working),
            (announced(StartCause::Resume).from(2), Working),
            (stop().turn("a").from(1), Idle),
            (ended(EndReason::Reported).from(1), Idle),
            (exited(1), Idle),
            (exited(2), Ended),
        ],
    );
    assert!(reached(&world, Mark::OneProcessLess));
    let unwatched = world.count(|e| matches!(e, Effect::UnwatchProcess { process: p } if *p == process(1)));
    assert_eq!(unwatched, 1);
}

#[test]
fn an_exit_of_a_shared_host_ends_all_its_sessions() {
    let world = check(
        CODEX,
        vec![
            (prompt().of("a").shared(9), Working),
            (prompt().of("b").shared(9), Working),
            (stop().of("b").shared(9), Idle),
            (exited(9).of("a"), Ended),
        ],
    );
    assert_eq!(world.state("b"), Some(Ended));
}

#[test]
fn an_end_with_live_work_is_deferred_and_stays_a_reported_one() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop_with(Some(vec![shell("sh")])).turn("a"), Background),
            (ended(EndReason::Reported).from(1), Background),
        ],
    );
    let key = world.key("s");
    world.tell(InputBody::WatchReported {
        key: key.clone(),
        incarnation: watchkeeper_core::Incarnation(1),
        process: process(1),
        outcome: WatchOutcome::AlreadyGone,
    });
    assert_eq!(world.core.session(&key).unwrap().ended.as_deref(), Some("reported"));
}

#[test]
fn a_replaced_session_leaves_its_work_to_the_next_of_its_process() {
    let world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop_with(Some(vec![shell("sh")])).turn("a").from(1), Background),
            (ended(EndReason::Cleared).from(1), Ended),
            (announced(StartCause::Clear).of("n").from(1), Background),
            (work_done("sh").of("n"), Background),
        ],
    );
    assert!(reached(&world, Mark::WorkBequeathed));
    let heir = world.core.session(&world.key("n")).unwrap();
    assert_eq!(heir.lineage, [Lineage::ClearedFrom("s".to_owned())]);

    // Codex says nothing of the old one.
    let world = check(
        CODEX,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop().turn("a").from(1), Idle),
            (announced(StartCause::Clear).of("n").from(1), Idle),
        ],
    );
    assert_eq!(world.core.session(&world.key("s")).unwrap().ended.as_deref(), Some("cleared"));
}

#[test]
fn a_subagent_is_never_a_session() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (work("child", WorkKind::Subagent), Working),
            (stop_with(Some(vec![item("child", WorkKind::Subagent)])).turn("a"), Background),
        ],
    );
    world.hear(prompt().of("child").from(1));
    world.hear(tool("t", "Bash").of("child").from(1));
    world.hear(stop().of("child"));
    assert_eq!(world.core.sessions().len(), 1);
    assert_eq!(world.state("s"), Some(Background));
    // A stop of the subagent under its parent's id is none of the session's.
    world.hear(prompt().turn("b"));
    world.hear(stop().turn("b").subagent("child"));
    assert_eq!(world.state("s"), Some(Working));
}

#[test]
fn a_subagent_that_spoke_before_it_was_announced_is_no_session_any_more() {
    let mut world = check(
        AgentKind::Copilot,
        vec![
            (prompt().turn("a").from(1), Working),
            (prompt().of("child").from(1), Working),
            (work("child", WorkKind::Subagent), Working),
        ],
    );
    assert_eq!(world.state("child"), None);
    // Another one that nobody announced, while a subagent of the same process lives.
    world.hear(tool("t", "Bash").of("other").from(1));
    assert_eq!(world.state("other"), None);
    // One that announces itself is a session.
    world.hear(announced(StartCause::Startup).of("new").from(1));
    assert_eq!(world.state("new"), Some(Idle));
    // One whose parent is not known is recorded only.
    let mut orphan = prompt().of("lost").from(3);
    orphan.signal.facts.lineage = Some(Lineage::Parent("nobody".to_owned()));
    assert_eq!(world.hear(orphan), Verdict::Recorded);
    assert_eq!(world.core.sessions().len(), 2);
}

#[test]
fn a_sleep_that_nobody_requested_settles_everything_at_the_resume() {
    let mut world = shut(Settings { ask_before_sleep: true, ..suspending() });
    world.hear(stop().turn("a").held());
    world.effects.clear();
    world.tell(InputBody::SleepBegan);
    assert_eq!(world.effects, Vec::new());
    world.tell(InputBody::SleepEnded { slept: SECOND });
    assert!(
        world.effects.iter().any(|e| matches!(e, Effect::AnswerHook { answer: HookAnswer::Nothing, .. }))
    );
    assert_eq!(world.count(|e| matches!(e, Effect::Webhook { event: Webhook::PostSessionEnd { .. } })), 1);
    assert_eq!(world.core.machine().suspend, None, "no suspend until a new debt");
    assert!(!world.core.machine().wanted);
}

#[test]
fn what_a_subagent_began_before_it_was_announced_is_its_parents() {
    let mut world = check(
        AgentKind::Copilot,
        vec![
            (prompt().turn("a").from(1), Working),
            (prompt().of("child").from(1), Working),
            (work("shell", WorkKind::Shell).of("child").from(1), Working),
        ],
    );
    world.hear(lock("permission_prompt", LockSubject::Session).of("child").from(1));
    assert_eq!(world.state("child"), Some(Waiting));
    world.hear(work("child", WorkKind::Subagent));
    assert_eq!(world.state("child"), None);
    assert_eq!(world.state("s"), Some(Waiting), "what it waits for its parent waits for");
    world.hear(work_done("child"));
    world.hear(stop().turn("a"));
    assert_eq!(world.state("s"), Some(Background), "its shell runs on");
    world.hear(work_done("shell"));
    world.wait(60_000);
    assert_eq!(world.state("s"), Some(Idle));
}

#[test]
fn a_session_that_ends_with_the_same_word_takes_over_nothing() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (prompt().of("child").from(1), Working),
            (work("shell", WorkKind::Shell).of("child").from(1), Working),
        ],
    );
    world.hear(say(SignalBody::Orphaned).subagent("child"));
    assert_eq!(world.state("s"), Some(Ended));
    assert_eq!(
        world.state("child"),
        Some(Working),
        "whose subagent it is was never said to a living session"
    );
    assert_eq!(world.core.check_invariants(), Vec::new());
}

#[test]
fn a_sleep_that_was_announced_and_did_not_come_is_owed_still() {
    let mut world = shut(suspending());
    world.hear(stop().turn("a"));
    world.tell(InputBody::SleepBegan);
    assert_eq!(world.next(), Some(DeadlineKind::SuspendRequest));
    world.effects.clear();
    world.wait(61_000);
    assert_eq!(world.next(), Some(DeadlineKind::SuspendDelay), "{:?}", world.core.machine().suspend);
    world.wait(30_000);
    assert_eq!(world.count(|e| matches!(e, Effect::RequestSuspend { .. })), 1);
}

#[test]
fn a_repeated_delivery_counts_once() {
    let mut world = check(CLAUDE, vec![(prompt().turn("a"), Working)]);
    let mut signal = prompt().turn("b").signal;
    signal.delivery = watchkeeper_core::DeliveryId(77);
    let input = Input { now: at(world.ms), body: InputBody::Signal { signal: Box::new(signal), held: None } };
    assert_eq!(world.core.handle(&input).verdict, Verdict::Applied);
    let before = world.core.sessions();
    assert_eq!(world.core.handle(&input).verdict, Verdict::Duplicate);
    assert_eq!(world.core.sessions(), before);
}

pub(crate) const ALIVE: ProbeAnswer = ProbeAnswer {
    tree_cpu_ms: Known::Is(1_000),
    stopped: Known::Is(false),
    agent_alive: Known::Is(true),
    background_alive: Known::Is(false),
    younger_child: Known::Is(false),
    background_moved: Known::Is(false),
};

/// Twelve minutes after a prompt with a process; the first figure was answered with `ALIVE`.
pub(crate) fn silent(say: Vec<Say>) -> World {
    let mut world = World::new(Settings::default());
    world.hear(prompt().turn("a").from(1));
    for say in say {
        world.hear(say);
    }
    world.wait(6 * MINUTE + 500);
    world.answer("s", Probe::Inactivity, ALIVE);
    world.wait(6 * MINUTE);
    world
}

#[test]
fn silence_locks_only_if_nothing_says_that_it_works() {
    let mut world = silent(vec![]);
    assert_eq!(world.state("s"), Some(Working), "the answer decides");
    world.answer("s", Probe::Inactivity, ALIVE);
    assert_eq!(world.core.session(&world.key("s")).unwrap().waiting_for.as_deref(), Some("inactive:12m"));
    assert!(!world.core.machine().wanted);
    world.hear(doing(Activity::Progress));
    assert_eq!(world.state("s"), Some(Working), "any work clears it");

    let stopped = ProbeAnswer { stopped: Known::Is(true), tree_cpu_ms: Known::Is(900_000), ..ALIVE };
    for (say, answer, mark, state) in [
        (vec![], ProbeAnswer { tree_cpu_ms: Known::Is(11_000), ..ALIVE }, Mark::ExtendedByCpu, Working),
        (vec![], ProbeAnswer { tree_cpu_ms: Known::Is(1_500), ..ALIVE }, Mark::InactivityLocked, Waiting),
        (vec![], stopped, Mark::InactivityLocked, Waiting),
        (vec![], ProbeAnswer::default(), Mark::ExtendedUnknown, Working),
        (vec![tool("t", "Bash").turn("a")], ALIVE, Mark::ExtendedByTool, Working),
        (vec![tool("t", "Bash").turn("a")], stopped, Mark::InactivityLocked, Waiting),
        (vec![], ProbeAnswer { agent_alive: Known::Is(false), ..ALIVE }, Mark::EndedOrphaned, Ended),
    ] {
        let mut world = silent(say);
        world.answer("s", Probe::Inactivity, answer);
        assert!(reached(&world, mark), "{answer:?}: {mark:?}");
        assert_eq!(world.state("s"), Some(state), "{answer:?}");
    }
}

#[test]
fn the_agents_word_extends_and_an_unanswered_look_is_unknown() {
    let mut world = World::new(Settings::default());
    world.hear(prompt().turn("a").from(1));
    world.hear(stated(AgentState::Busy));
    world.wait(13 * MINUTE);
    assert!(reached(&world, Mark::ExtendedByState));
    assert_eq!(world.state("s"), Some(Working));

    let mut world = World::new(Settings::default());
    world.hear(prompt().turn("a").from(1));
    world.wait(13 * MINUTE);
    assert!(reached(&world, Mark::ExtendedUnknown));
    assert_eq!(world.state("s"), Some(Working));
    world.wait(6 * 60 * MINUTE);
    assert_eq!(world.state("s"), Some(Waiting), "all extensions together end at work_max");
    assert!(reached(&world, Mark::DueWorkMax));
}

#[test]
fn work_past_its_bound_is_abandoned_and_stays() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop_with(Some(vec![item("x", WorkKind::Subagent)])).turn("a"), Background),
        ],
    );
    world.wait(7 * 60 * MINUTE);
    let session = world.core.session(&world.key("s")).unwrap();
    assert_eq!((session.state, session.protects), (Background, false));
    assert!(session.flags.contains(&"abandoned".to_owned()));
    assert_eq!(session.background.len(), 1);
    assert_eq!(world.next(), None, "nothing is left that time could change");
}

#[test]
fn a_quiet_shell_stops_protecting() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop_with(Some(vec![shell("sh")])).turn("a"), Background),
        ],
    );
    let quiet = ProbeAnswer { background_alive: Known::Is(true), ..ALIVE };
    world.wait(30 * MINUTE);
    world.answer("s", Probe::BackgroundQuiet, ProbeAnswer { background_moved: Known::Unknown, ..quiet });
    assert!(world.protects("s"));
    world.wait(30 * MINUTE);
    world.answer("s", Probe::BackgroundQuiet, quiet);
    assert!(!world.protects("s"));
    let session = world.core.session(&world.key("s")).unwrap();
    assert_eq!(session.state, Background);
    assert!(session.flags.contains(&"quiet".to_owned()));
}

#[test]
fn a_resume_renews_the_graces() {
    let mut world = World::new(Settings::default());
    world.hear(prompt().turn("a"));
    world.wait(11 * MINUTE);
    world.tell(InputBody::SleepBegan);
    world.tell(InputBody::SleepEnded { slept: Duration::from_secs(3600) });
    world.wait(11 * MINUTE);
    assert_eq!(world.state("s"), Some(Working));
    world.wait(2 * MINUTE);
    assert_eq!(world.state("s"), Some(Waiting));
    let session = world.core.session(&world.key("s")).unwrap();
    assert!(session.flags.contains(&"stalled_after_wake".to_owned()), "{:?}", session.flags);
}

#[test]
fn a_restart_asks_for_everything_again() {
    let mut world = check(CLAUDE, vec![(prompt().turn("a").from(1), Working)]);
    world.effects.clear();
    let left = world.core.next_deadline().unwrap().0.since(at(world.ms).mono);
    // A new boot: the clock begins again.
    let mut now = at(5);
    now.boot_id = watchkeeper_core::BootId(8);
    let outcome = world.core.handle(&Input { now, body: InputBody::RuntimeStarted { clean: false } });
    assert!(
        outcome
            .effects
            .iter()
            .any(|e| matches!(e, Effect::WatchProcess { process: p, .. } if *p == process(1)))
    );
    assert!(outcome.effects.iter().any(|e| matches!(e, Effect::SetHold { wanted: true, .. })));
    let (due, _) = world.core.next_deadline().unwrap();
    assert!(due.since(now.mono) <= Duration::from_secs(12 * 60), "{due:?}, before {left:?}");
    assert_eq!(world.core.check_invariants(), Vec::new());
}

#[test]
fn posts_go_out_once_a_turn_and_never_for_an_abort() {
    let mut world = World::new(Settings { webhooks: true, ..Settings::default() });
    let posts =
        |w: &mut World| w.count(|e| matches!(e, Effect::Webhook { event: Webhook::PostSessionEnd { .. } }));
    world.hear(prompt().turn("a").from(1));
    world.hear(stop().turn("a"));
    assert_eq!(posts(&mut world), 1);
    world.hear(output().turn("a"));
    world.hear(stop().turn("a"));
    assert_eq!(posts(&mut world), 0, "the same turn");
    world.hear(prompt().turn("b"));
    world.hear(aborted().turn("b"));
    world.hear(prompt().turn("c"));
    world.hear(exited(1));
    assert_eq!(posts(&mut world), 0);
    world.hear(prompt().turn("d").from(2));
    world.hear(ended(EndReason::Reported));
    assert_eq!(posts(&mut world), 1);
}

#[test]
fn leases_hold_and_the_runtime_ends_when_nothing_needs_it() {
    let mut world = World::new(Settings::default());
    world.tell(InputBody::LeaseTaken {
        id: "l".to_owned(),
        owner: "me".to_owned(),
        reason: "build".to_owned(),
        length: Duration::from_secs(60),
    });
    assert!(world.core.machine().wanted);
    assert!(world.core.why().contains("me: build"), "{}", world.core.why());
    world.wait(61_000);
    assert!(reached(&world, Mark::DueLeaseExpiry));
    assert!(!world.core.machine().wanted);
    world.wait(10 * MINUTE);
    assert_eq!(world.count(|e| matches!(e, Effect::ExitRuntime)), 1);
    assert_eq!(world.next(), None);
}

#[test]
fn commands_of_an_interrupted_codex_turn_go_on() {
    let interrupt = || say(SignalBody::Aborted { tools_to_work: true, call: None }).turn("a");
    let mut world = check(
        CODEX,
        vec![
            (prompt().turn("a").from(1), Working),
            (tool("c1", "Bash").turn("a"), Working),
            (tool("q", "request_user_input").turn("a"), Working),
            (interrupt(), Background),
            (work_done("c1"), Idle),
        ],
    );
    assert!(reached(&world, Mark::ToolsToWork));
    world.hear(prompt().turn("b"));
    world.hear(tool("c2", "Bash").turn("b"));
    world.hear(lock("permission_prompt", named("Bash")).turn("b"));
    world.hear(say(SignalBody::Aborted { tools_to_work: true, call: None }).turn("b"));
    assert_eq!(world.state("s"), Some(Idle), "its command never began");
}

#[test]
fn a_cancelled_call_interrupts_the_turn_that_it_began_in_and_no_other() {
    let cancelled = |call: &str| say(SignalBody::Aborted { tools_to_work: false, call: Some(call.into()) });
    check(CLAUDE, vec![(prompt(), Working), (tool("c", "Bash"), Working), (cancelled("c"), Idle)]);
    let world = check(
        CLAUDE,
        vec![
            (prompt(), Working),
            (tool("c", "Bash"), Working),
            (prompt(), Working),
            (cancelled("c"), Working),
            (cancelled("never heard of"), Working),
        ],
    );
    assert!(reached(&world, Mark::EarlierTurn));
}

#[test]
fn leases_are_bounded() {
    let mut world = World::new(Settings::default());
    let take = |n: usize| InputBody::LeaseTaken {
        id: n.to_string(),
        owner: String::new(),
        reason: String::new(),
        length: Duration::MAX,
    };
    for n in 0..watchkeeper_core::lease::LEASES_MAX {
        assert_eq!(world.tell(take(n)), Verdict::Applied);
    }
    assert_eq!(world.tell(take(usize::MAX)), Verdict::Refused);
    assert_eq!(world.tell(take(0)), Verdict::Applied, "a renewal needs no room");
    assert!(reached(&world, Mark::LimitReached));
}

#[test]
fn ended_sessions_are_bounded() {
    let mut world = World::new(Settings::default());
    let max = watchkeeper_core::core::ENDED_MAX;
    for n in 0..max + 3 {
        let mut signal = ended(EndReason::Reported).of(&format!("k{n}")).signal;
        signal.happened = None;
        let body = InputBody::Signal { signal: Box::new(signal), held: None };
        let _outcome = world.core.handle(&Input { now: at(world.ms), body });
    }
    assert_eq!(world.core.sessions().len(), max);
    assert_eq!(world.state("k0"), None);
    assert_eq!(world.core.check_invariants(), Vec::new());
}

/// A transcript that was resumed tells of turns and work that an earlier process was killed in.
#[test]
fn what_a_transcript_says_of_the_time_before_this_life_is_history() {
    let old = |say: Say| say.happened(900_000).source(Source::Transcript);
    for agent in [CLAUDE, CODEX] {
        check(
            agent,
            vec![
                (announced(StartCause::Resume).from(1), Idle),
                (old(prompt().turn("killed")), Idle),
                (old(output().turn("killed")), Idle),
                (old(tool("t", "Bash").turn("killed")), Idle),
                (old(work("b", WorkKind::Shell)), Idle),
                (old(lock("permission_prompt", named("Bash")).turn("killed")), Idle),
                (prompt().turn("new"), Working),
                (stop().turn("new"), Idle),
            ],
        );
    }
}

/// Codex announces a session after the first records of its first turn (0.171).
#[test]
fn a_session_that_starts_up_has_no_history() {
    let first = prompt().turn("a").happened(1_000_900).source(Source::Transcript);
    check(CODEX, vec![(announced(StartCause::Startup).from(1), Idle), (first, Working)]);
}
