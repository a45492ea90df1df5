//! What people who run coding agents report, as short stories; `docs/field-cases.md` lists them.

use crate::{
    at, process,
    rules::{ALIVE, silent},
    sleep::shut,
    world::*,
};
use watchkeeper_core::{
    AgentKind, BootId, DeadlineKind, Effect, Incarnation, Input, InputBody, Mark, ProcessRef, Settings,
    SignalBody, Verdict,
    core::{ENDED_MAX, SESSIONS_MAX},
    effect::Probe,
    input::WatchOutcome,
    signal::{AgentState, EndReason, Facts, Lineage, LockSubject, Source, StartCause, WorkItem, WorkKind},
    view::{
        SessionView,
        ShownState::{Background, Ended, Idle, Waiting, Working},
    },
};

const CLAUDE: AgentKind = AgentKind::Claude;
const CODEX: AgentKind = AgentKind::Codex;

const HOUR: u64 = 60 * MINUTE;

fn work_in(id: &str, what: WorkKind, process: ProcessRef) -> Say {
    say(SignalBody::WorkStarted { id: id.to_owned(), what, label: None, process: Some(process) })
}

fn unknown() -> Say {
    say(SignalBody::Unknown { event: "BrandNew".to_owned() })
}

fn session(world: &World, id: &str) -> SessionView {
    world.core.session(&world.key(id)).expect("the session is known")
}

fn live(world: &World, id: &str) -> Vec<String> {
    session(world, id).background.into_iter().map(|work| work.id).collect()
}

fn lineage(world: &World, id: &str) -> Vec<Lineage> {
    session(world, id).lineage
}

/// Everything that was said of a session, and the rule it fell under.
fn told(world: &World, id: &str) -> Vec<(String, String)> {
    let evidence = world.core.explain(&world.key(id)).expect("the session is known");
    evidence.into_iter().map(|e| (e.what, e.rule)).collect()
}

#[test]
fn a_turn_goes_on_though_nothing_of_it_is_to_be_seen() {
    for agent in [CLAUDE, CODEX] {
        let mut world = check(agent, vec![(prompt().turn("a").from(1), Working)]);
        // The model thinks; no title moves, no spinner turns, no hook fires.
        world.wait(11 * MINUTE);
        assert_eq!(world.state("s"), Some(Working));
        assert!(world.protects("s"));
    }
}

#[test]
fn what_no_adapter_knows_is_recorded_and_changes_nothing() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (unknown(), Working),
            (tool("t", "Bash").turn("a"), Working),
            (lock("permission_prompt", named("Bash")).turn("a"), Waiting),
            (unknown(), Waiting),
            (tool_done("t", "Bash").turn("a"), Working),
            (stop_with(Some(vec![shell("sh")])).turn("a"), Background),
            (unknown(), Background),
            (stop_with(Some(Vec::new())).turn("a"), Idle),
            (unknown(), Idle),
            (exited(1), Ended),
            (unknown().from(2), Ended),
        ],
    );
    assert_eq!(world.hear(unknown().of("x").from(3)), Verdict::Recorded);
    assert_eq!(world.state("x"), None, "nor does it begin a session");
}

#[test]
fn a_tool_whose_end_got_lost_is_believed_for_so_long_at_most() {
    let mut world = World::new(Settings::default());
    world.hear(prompt().turn("a").from(1));
    world.hear(tool("t", "Bash").turn("a"));
    let heard = world.ms;
    for _ in 0..200 {
        if world.state("s") != Some(Working) {
            break;
        }
        let due = world.next().expect("a working session has a deadline");
        world.run_to(&due);
        world.answer("s", Probe::Inactivity, ALIVE);
    }
    assert!(reached(&world, Mark::ExtendedByTool));
    assert_eq!(world.ms - heard, 6 * HOUR);
    assert_eq!(world.state("s"), Some(Waiting));
    assert!(!world.protects("s"));
    world.hear(output().turn("a"));
    assert_eq!(world.state("s"), Some(Working), "whatever it says next corrects that");

    // The stop of its turn ends it, too: it speaks for no later turn.
    let mut world = silent(vec![tool("t", "Bash").turn("a"), stop().turn("a"), prompt().turn("b")]);
    world.answer("s", Probe::Inactivity, ALIVE);
    assert_eq!(world.state("s"), Some(Waiting));
    assert!(!reached(&world, Mark::ExtendedByTool));
}

#[test]
fn a_tool_that_begins_late_begins_the_wait_anew() {
    let mut world = World::new(Settings::default());
    world.hear(prompt().turn("a").from(1));
    world.wait(11 * MINUTE);
    world.hear(tool("t", "Bash").turn("a"));
    world.wait(12 * MINUTE - 1);
    assert!(!reached(&world, Mark::InactivityAsked), "its own time is not over");
    world.wait(1);
    assert!(reached(&world, Mark::InactivityAsked));
    world.answer("s", Probe::Inactivity, ALIVE);
    assert!(reached(&world, Mark::ExtendedByTool), "and it is in flight in a living agent");
    assert_eq!(world.state("s"), Some(Working));
}

#[test]
fn a_host_that_never_exits_keeps_no_conversation_working() {
    let mut world = World::new(Settings::default());
    world.agent = CODEX;
    world.hear(prompt().turn("a").shared(9));
    world.wait(6 * MINUTE + 500);
    world.answer("s", Probe::Inactivity, ALIVE);
    world.wait(6 * MINUTE);
    world.answer("s", Probe::Inactivity, ALIVE);
    assert_eq!(world.state("s"), Some(Waiting), "its host lives, and that proves nothing");
    assert!(!world.protects("s"));
    world.hear(output().turn("a").source(Source::Transcript));
    assert_eq!(world.state("s"), Some(Working), "new records correct it");
    world.hear(stop().turn("a").source(Source::Transcript));
    assert_eq!(world.state("s"), Some(Idle));
}

#[test]
fn work_ends_with_its_own_process_whatever_else_lives() {
    let mut world = check(
        AgentKind::Gemini,
        vec![
            (prompt().turn("a").from(1), Working),
            (work_in("one", WorkKind::Shell, process(50)), Working),
            (work_in("two", WorkKind::Shell, process(51)), Working),
            (stop().turn("a"), Background),
            (exited(50), Background),
        ],
    );
    assert_eq!(live(&world, "s"), ["two"]);
    world.hear(exited(51));
    assert_eq!(world.state("s"), Some(Idle));
    assert_eq!(session(&world, "s").processes, [process(1)], "the agent lives on");
}

#[test]
fn killed_work_is_never_called_completed() {
    let world = check(
        AgentKind::Gemini,
        vec![
            (prompt().turn("a").from(1), Working),
            (work_in("make", WorkKind::Shell, process(50)), Working),
            (stop().turn("a"), Background),
            (exited(50), Idle),
            // What the agent makes of it afterwards.
            (work_done("make"), Idle),
        ],
    );
    let told = told(&world, "s");
    assert!(told.contains(&("process_exited".into(), "its work item is over".into())), "{told:?}");
    assert!(!told.iter().any(|(what, _)| what.contains("completed")), "{told:?}");
}

#[test]
fn subagents_are_missed_one_by_one() {
    let agents =
        |ids: &[&str]| -> Vec<WorkItem> { ids.iter().map(|id| item(id, WorkKind::Subagent)).collect() };
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (work("x", WorkKind::Subagent), Working),
            (work("y", WorkKind::Subagent), Working),
            (work("z", WorkKind::Subagent), Working),
            (stop_with(Some(agents(&["x", "y", "z"]))).turn("a"), Background),
            // Two of them died without a word; the next list is one of the third's.
            (prompt().turn("b"), Working),
            (stop_with(Some(agents(&["z"]))).turn("b"), Background),
        ],
    );
    assert_eq!(live(&world, "s"), ["z"]);
    world.hear(work_done("z"));
    world.wait(MINUTE);
    assert_eq!(world.state("s"), Some(Idle));
}

#[test]
fn a_leaked_subagent_blocks_no_end_of_a_turn() {
    let leaked = || {
        vec![
            (prompt().turn("a").from(1), Working),
            (work("leaked", WorkKind::Subagent), Working),
            (work("leaked too", WorkKind::Subagent), Working),
        ]
    };
    // A complete list corrects what was missed, at the very stop.
    let mut script = leaked();
    script.push((stop_with(Some(Vec::new())).turn("a"), Idle));
    check(CLAUDE, script);
    // Without one, time does, and says so; and a person can at any time.
    let mut script = leaked();
    script.push((stop().turn("a"), Background));
    let mut world = check(CODEX, script);
    world.wait(7 * HOUR);
    assert!(!world.protects("s"));
    let flags = session(&world, "s").flags;
    assert!(flags.contains(&"abandoned".to_owned()), "{flags:?}");
    world.hear(say(SignalBody::Removed).source(Source::User));
    assert_eq!(world.state("s"), Some(Ended));
}

#[test]
fn an_agent_that_dies_takes_its_work_along() {
    for kind in [WorkKind::Subagent, WorkKind::Shell, WorkKind::Task, WorkKind::Monitor] {
        let world = check(
            CLAUDE,
            vec![
                (prompt().turn("a").from(1), Working),
                (work("w", kind), Working),
                (stop_with(Some(vec![item("w", kind)])).turn("a"), Background),
                (exited(1), Ended),
            ],
        );
        assert_eq!(live(&world, "s"), Vec::<String>::new(), "{kind:?}");
        assert!(!world.core.machine().wanted);
    }
}

#[test]
fn a_session_with_live_work_is_never_given_up() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop_with(Some(vec![item("x", WorkKind::Subagent)])).turn("a"), Background),
        ],
    );
    let make_room_for = |world: &mut World, other: Say| {
        let mut signal = other.signal;
        signal.happened = None;
        let body = InputBody::Signal { signal: Box::new(signal), held: None };
        assert_eq!(world.core.handle(&Input { now: at(world.ms), body }).verdict, Verdict::Applied);
    };
    for n in 0..ENDED_MAX + 3 {
        make_room_for(&mut world, ended(EndReason::Reported).of(&format!("over {n}")));
    }
    // Nobody could look at its processes all that time.
    world.wait(5 * HOUR);
    assert_eq!(world.state("s"), Some(Background));
    assert!(world.protects("s"));
    // Nor for as many that are idle as there is room for.
    for n in 0..SESSIONS_MAX + 3 {
        make_room_for(&mut world, announced(StartCause::Startup).of(&format!("idle {n}")));
    }
    assert_eq!((world.state("idle 0"), world.state("s")), (None, Some(Background)));
    assert_eq!(world.count(|e| matches!(e, Effect::ExitRuntime)), 0);
}

#[test]
fn what_begins_before_the_sleep_cancels_it_at_every_step() {
    let begins: [fn() -> Say; 4] = [
        || prompt().turn("b"),
        || work("sh", WorkKind::Shell),
        || tool("t", "Bash").turn("a"),
        || prompt().of("other").turn("x").from(2),
    ];
    for begin in begins {
        for stage in [DeadlineKind::SuspendDelay, DeadlineKind::Webhook, DeadlineKind::Sound] {
            let mut world = shut(Settings { sound: Some("bell".to_owned()), ..suspending() });
            world.hear(stop().turn("a"));
            if stage != DeadlineKind::SuspendDelay {
                world.wait(10_000);
            }
            if stage == DeadlineKind::Sound {
                world.tell(InputBody::WebhookReported { accepted: true });
            }
            assert_eq!(world.next(), Some(stage.clone()));
            world.hear(begin());
            assert_eq!(world.core.machine().suspend, None, "{stage:?}");
            world.wait(MINUTE);
            assert_eq!(world.count(|e| matches!(e, Effect::RequestSuspend { .. })), 0, "{stage:?}");
        }
    }
}

#[test]
fn a_schedule_is_listed_and_outlives_the_daemon() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop_with(Some(vec![item("cron", WorkKind::Scheduled)])).turn("a"), Idle),
        ],
    );
    assert_eq!(live(&world, "s"), ["cron"]);
    assert!(!world.protects("s"), "until it runs");
    // A snapshot, and a daemon that begins with it.
    world.core = serde_json::from_str(&serde_json::to_string(&world.core).unwrap()).unwrap();
    world.tell(InputBody::RuntimeStarted { clean: false });
    world.wait(3 * 24 * HOUR);
    assert_eq!(live(&world, "s"), ["cron"], "days later it is still to come");
    world.hear(prompt().turn("b"));
    assert_eq!(world.state("s"), Some(Working));
}

#[test]
fn a_resume_that_dies_is_told_and_the_next_is_as_good_as_the_first() {
    const FAILED: u32 = 8;
    let mut script = vec![(prompt().turn("a").from(1), Working), (exited(1), Ended)];
    for pid in 2..2 + FAILED {
        script.push((announced(StartCause::Resume).from(pid), Idle));
        script.push((exited(pid), Ended));
    }
    script.push((announced(StartCause::Resume).from(50), Idle));
    script.push((prompt().turn("b").from(50), Working));
    let world = check(CLAUDE, script);
    assert_eq!(session(&world, "s").incarnation, Incarnation(FAILED + 2));
    let explained = world.core.explain(&world.key("s")).unwrap();
    let times = |what: &str, rule: &str| -> Vec<i64> {
        explained.iter().filter(|e| e.what == what && e.rule == rule).map(|e| e.at.0).collect()
    };
    let (lives, ends) =
        (times("session_started", "it lives again"), times("process_exited", "the session is over"));
    assert_eq!((lives.len(), ends.len()), (FAILED as usize + 1, FAILED as usize + 1));
    // How long each of them took to die can be read off.
    assert!(lives.iter().zip(&ends[1..]).all(|(began, died)| died - began == 1_000), "{lives:?} {ends:?}");
}

#[test]
fn what_a_resume_needs_outlives_a_reboot() {
    let mut world = World::new(Settings::default());
    let mut begun = prompt().turn("a").from(1);
    begun.signal.facts = Facts {
        cwd: Some("/home/dev/project".to_owned()),
        transcript: Some("/home/dev/s.jsonl".to_owned()),
        ..Facts::default()
    };
    world.hear(begun);
    // The agent had no time for a word; another boot.
    let now = |ms| watchkeeper_core::Now { boot_id: BootId(8), ..at(ms) };
    let key = world.key("s");
    let gone = InputBody::WatchReported {
        key: key.clone(),
        incarnation: Incarnation(1),
        process: process(1),
        outcome: WatchOutcome::AlreadyGone,
    };
    for (ms, body) in [(5, InputBody::RuntimeStarted { clean: false }), (6, gone)] {
        let outcome = world.core.handle(&Input { now: now(ms), body });
        assert_eq!(outcome.verdict, Verdict::Applied);
    }
    let session = session(&world, "s");
    assert_eq!(session.ended.as_deref(), Some("orphaned"));
    assert_eq!(session.key.id, "s");
    assert_eq!(session.cwd.as_deref(), Some("/home/dev/project"));
    assert_eq!(session.transcript.as_deref(), Some("/home/dev/s.jsonl"));
}

#[test]
fn a_new_id_is_linked_to_the_one_before() {
    let moved = |successor: &str| {
        say(SignalBody::SessionEnded { reason: EndReason::Moved, successor: Some(successor.to_owned()) })
    };
    // A clear, and a resume within the same process: nobody names the other one.
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop().turn("a").from(1), Idle),
            (ended(EndReason::Cleared).from(1), Ended),
            (announced(StartCause::Clear).of("n").from(1), Idle),
            (ended(EndReason::Cleared).of("n").from(1), Ended),
            (announced(StartCause::Resume).from(1), Idle),
        ],
    );
    assert_eq!(lineage(&world, "n"), [Lineage::ClearedFrom("s".into()), Lineage::ClearedTo("s".into())]);
    assert_eq!(lineage(&world, "s"), [Lineage::ClearedTo("n".into()), Lineage::ClearedFrom("n".into())]);
    // The one it was cleared to first is no heir of what it leaves the second time.
    world.hear(prompt().turn("b").from(1));
    world.hear(stop_with(Some(vec![shell("sh")])).turn("b").from(1));
    world.hear(ended(EndReason::Cleared).from(1));
    world.hear(announced(StartCause::Clear).of("third").from(1));
    assert_eq!(live(&world, "third"), ["sh"]);

    // Moved to another process: named by the transcript, after the hook said that it is over or before.
    for named_late in [true, false] {
        let mut script = vec![(prompt().turn("a").from(1), Working), (stop().turn("a").from(1), Idle)];
        script.extend(named_late.then(|| (ended(EndReason::Reported).from(1), Ended)));
        script.push((moved("n").source(Source::Transcript), Ended));
        script.push((announced(StartCause::Fork).of("n").from(2), Idle));
        let world = check(CLAUDE, script);
        assert_eq!(lineage(&world, "s"), [Lineage::ContinuedIn("n".into())], "{named_late}");
        assert_eq!(lineage(&world, "n"), [Lineage::ForkedFrom("s".into())], "{named_late}");
    }
}

#[test]
fn after_a_clear_what_still_names_the_old_id_changes_nothing() {
    let with_transcript = |mut say: Say, path: &str| {
        say.signal.facts.transcript = Some(path.to_owned());
        say
    };
    let mut world = check(
        CLAUDE,
        vec![
            (with_transcript(prompt().turn("a").from(1), "/old"), Working),
            (stop().turn("a").from(1), Idle),
            (ended(EndReason::Cleared).from(1), Ended),
            (with_transcript(announced(StartCause::Clear).of("n").from(1), "/new"), Idle),
            // The state file of the process, and the end of the old transcript.
            (stated(AgentState::Busy).from(1), Ended),
            (output().turn("a").source(Source::Transcript), Ended),
            (prompt().of("n").turn("b").from(1), Working),
        ],
    );
    let followed = |e: &Effect| matches!(e, Effect::FollowTranscript { path, .. } if path == "/new");
    assert_eq!(world.effects.iter().filter(|e| followed(e)).count(), 1);
    let old = world.key("s");
    assert_eq!(world.count(|e| matches!(e, Effect::UnfollowTranscript { key } if *key == old)), 1);
    world.hear(exited(1).of("n"));
    assert_eq!(world.state("n"), Some(Ended), "the process is the new one's");
}

#[test]
fn the_conversation_after_a_clear_is_nobodys_subagent() {
    // Copilot's subagents speak under ids of their own.
    for agent in [CLAUDE, AgentKind::Copilot] {
        let mut world = check(
            agent,
            vec![
                (prompt().turn("a").from(1), Working),
                (work("child", WorkKind::Subagent), Working),
                (stop_with(Some(vec![item("child", WorkKind::Subagent)])).turn("a").from(1), Background),
                (ended(EndReason::Cleared).from(1), Ended),
                (announced(StartCause::Clear).of("n").from(1), Background),
                (prompt().of("n").turn("b").from(1), Working),
                (lock("question", LockSubject::Session).of("n").turn("b").from(1), Waiting),
            ],
        );
        world.hear(output().of("n").turn("b").from(1));
        assert_eq!(world.state("n"), Some(Working));
        assert_eq!(world.state("s"), Some(Ended), "nothing brings back the talk before the clear");
        assert_eq!(live(&world, "n"), ["child"]);
    }
}

#[test]
fn a_fork_and_what_it_was_forked_from_name_each_other() {
    let mut world = check(
        CLAUDE,
        vec![
            (prompt().turn("a").from(1), Working),
            (stop().turn("a").from(1), Idle),
            (announced(StartCause::Fork).of("fork").from(2), Idle),
        ],
    );
    for _ in 0..2 {
        let mut copied = output().of("fork").source(Source::Transcript).happened(1_000_500);
        copied.signal.facts.lineage = Some(Lineage::ForkedFrom("s".to_owned()));
        world.hear(copied);
    }
    assert_eq!(lineage(&world, "fork"), [Lineage::ForkedFrom("s".to_owned())]);
    assert_eq!(lineage(&world, "s"), [Lineage::ForkedTo("fork".to_owned())]);
    assert_eq!(
        (world.state("fork"), world.state("s")),
        (Some(Idle), Some(Idle)),
        "both are conversations of their own"
    );
}

/// A resumed `codex exec` that lasts half a second: the hook of its end overtakes those of its beginning, on a machine under load.
#[test]
fn a_life_whose_end_was_heard_first_does_not_begin_behind_it() {
    let mut world = check(
        AgentKind::Codex,
        vec![
            (announced(StartCause::Startup).from(1), Idle),
            (ended(EndReason::Reported).from(1), Ended),
            (ended(EndReason::Reported).happened(1_003_000), Ended),
            (announced(StartCause::Resume).happened(1_002_500), Ended),
            (prompt().turn("b").happened(1_002_600), Ended),
            (prompt().turn("c").from(2), Working),
        ],
    );
    // What the former life's own process says late is no end of the next one.
    world.hear(exited(2));
    world.hear(ended(EndReason::Reported).from(2));
    world.hear(announced(StartCause::Resume).from(3).happened(1_007_500));
    assert_eq!(world.state("s"), Some(Idle));
}
