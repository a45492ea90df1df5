//! After every recorded Stop the transcript and further hooks still come. None of them undoes a state, a lock or a
//! pending suspend: that takes a new turn, the end of work, or the end of the session.

use std::path::{Path, PathBuf};
use watchkeeper_agents::{Adapter, LineScanner, Observation, Parsed, adapter};
use watchkeeper_core::{
    InputBody, Settings, SignalBody, Wall,
    input::Known,
    signal::{Activity, Thread},
    view::{SessionView, ShownState},
};
use watchkeeper_sim::recordings::{Event, EventKind, Recording, Replay, find};

/// The corpus's folders.
const FOLDERS: [&str; 8] =
    ["acp", "claude", "codex", "codex-daemon", "copilot", "gemini", "opencode", "qwen"];

/// What must stay as it is.
#[derive(Debug, PartialEq)]
struct Shown {
    state: Option<ShownState>,
    waiting_for: Option<String>,
    suspend: Option<String>,
}

/// The latest stop of the recording that nothing has followed yet.
struct Stop {
    session: String,
    wall: Wall,
}

#[derive(Default)]
struct Counted {
    stops: u32,
    suspends: u32,
    hooks_after: u32,
    transcripts_after: u32,
}

fn view(replay: &Replay, session: &str) -> Option<SessionView> {
    replay.core().sessions().into_iter().find(|s| s.key.id == session)
}

/// What is shown of a session and of the machine. A suspend's text may name the time that is left.
fn shown(replay: &Replay, session: &str) -> Shown {
    let seen = view(replay, session);
    Shown {
        state: seen.as_ref().map(|s| s.state),
        waiting_for: seen.and_then(|s| s.waiting_for),
        suspend: replay.core().machine().suspend,
    }
}

/// What an event says, read by the adapter alone: of the transcripts only that of `session`, of which `replay` knows where it is.
fn said(adapter: &dyn Adapter, event: &Event, session: &str, replay: &Replay) -> Vec<Observation> {
    let followed = view(replay, session).and_then(|s| s.transcript);
    let mut parsed = Parsed::default();
    match &event.kind {
        EventKind::Hook { event, argv, payload, .. } => {
            let arguments: Vec<&[u8]> = argv.iter().map(String::as_bytes).collect();
            parsed = adapter.payload(Some(event), &arguments, payload);
        }
        EventKind::Transcript { path, append } if followed.as_ref() == Some(path) => {
            if let Some(mut reader) = adapter.transcript(session, None) {
                LineScanner::new().push(append, reader.as_mut(), &mut parsed);
            }
        }
        EventKind::Transcript { .. }
        | EventKind::Registry { .. }
        | EventKind::Exit { .. }
        | EventKind::Other => {}
    }
    parsed.observations
}

/// Whether this rightly changes what is shown after a stop.
fn goes_on(observation: &Observation, stop: &Stop) -> bool {
    let same = observation.session.as_deref() == Some(&stop.session);
    let later = observation.at.is_none_or(|at| at > stop.wall);
    match &observation.body {
        SignalBody::Started { .. } => same && later && observation.thread == Thread::Main,
        // Compaction between turns is work of its own.
        SignalBody::Activity { what: Activity::CompactionStarted } => same && later,
        SignalBody::SessionStarted { .. } | SignalBody::SessionEnded { .. } => true,
        SignalBody::WorkStarted { .. } | SignalBody::WorkFinished { .. } | SignalBody::WorkLevel { .. } => {
            later
        }
        SignalBody::Activity { .. }
        | SignalBody::Displayed { .. }
        | SignalBody::ToolStarted { .. }
        | SignalBody::ToolFinished { .. }
        | SignalBody::SoftLocked { .. }
        | SignalBody::LockResolved { .. }
        | SignalBody::Stopped { .. }
        | SignalBody::Aborted { .. }
        | SignalBody::Failed { .. }
        | SignalBody::IdleNoticed
        | SignalBody::AgentStated { .. }
        | SignalBody::ProcessExited { .. }
        | SignalBody::Orphaned
        | SignalBody::Removed
        | SignalBody::SoftLockCleared
        | SignalBody::Unknown { .. } => false,
    }
}

fn follow(recording: &Recording, counted: &mut Counted) {
    let adapter = adapter(recording.agent).expect("an adapter is built in");
    let mut replay = Replay::new(recording).expect("an adapter is built in");
    // The person shuts the lid in every turn, so that every last stop has a suspend to lose.
    let settings = Box::new(Settings { suspend: true, ..Settings::default() });
    replay.tell(InputBody::SettingsChanged { settings });
    replay.tell(InputBody::Displays { external_on: Known::Is(0) });
    let mut stop: Option<Stop> = None;
    for event in &recording.events {
        replay.advance(event.t);
        let Some(current) = &stop else {
            let works = replay.core().sessions().iter().any(|s| s.protects);
            replay.tell(InputBody::Lid { state: Known::Is(works) });
            replay.event(event);
            stop = stop_of(recording, adapter, event, counted, &replay);
            continue;
        };
        let observations = said(adapter, event, &current.session, &replay);
        let over = matches!(event.kind, EventKind::Exit { .. } | EventKind::Registry { .. })
            || observations.iter().any(|o| goes_on(o, current));
        let before = shown(&replay, &current.session);
        replay.event(event);
        if over {
            stop = stop_of(recording, adapter, event, counted, &replay);
            continue;
        }
        let after = shown(&replay, &current.session);
        assert_eq!(before, after, "{} at {:.3}: {observations:?}", recording.name, event.t);
        match event.kind {
            EventKind::Hook { .. } => counted.hooks_after += 1,
            EventKind::Transcript { .. } => counted.transcripts_after += 1,
            EventKind::Registry { .. } | EventKind::Exit { .. } | EventKind::Other => {}
        }
    }
}

/// The Stop that this event is, unless the recorded hook told the agent to go on.
fn stop_of(
    recording: &Recording,
    adapter: &dyn Adapter,
    event: &Event,
    counted: &mut Counted,
    replay: &Replay,
) -> Option<Stop> {
    let EventKind::Hook { answered: false, .. } = &event.kind else { return None };
    let stopped = said(adapter, event, "", replay).into_iter().find(|o| {
        o.thread == Thread::Main && matches!(&o.body, SignalBody::Stopped { can_continue: true, .. })
    })?;
    let session = stopped.session?;
    counted.stops += 1;
    counted.suspends += u32::from(replay.core().machine().suspend.is_some());
    #[expect(clippy::cast_possible_truncation, reason = "recordings last minutes")]
    let since = (event.t * 1000.0).round() as i64;
    Some(Stop { session, wall: Wall(recording.wall_zero.0 + since) })
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings")
}

#[test]
fn what_follows_a_stop_undoes_nothing() {
    let mut counted = Counted::default();
    for folder in FOLDERS {
        for path in find(&corpus().join(folder)).expect("the corpus is part of the repository") {
            let recording = Recording::load(&path).unwrap_or_else(|e| panic!("{}: {e:#}", path.display()));
            follow(&recording, &mut counted);
        }
    }
    let Counted { stops, suspends, hooks_after, transcripts_after } = counted;
    println!(
        "{stops} stops, {suspends} with a suspend pending, {hooks_after} hooks and {transcripts_after} appends after"
    );
    assert!(stops >= 165, "only {stops} stops");
    assert!(suspends >= 135, "only {suspends} stops had a suspend to lose");
    assert!(
        hooks_after >= 110 && transcripts_after >= 280,
        "{hooks_after} hooks, {transcripts_after} appends"
    );
}
