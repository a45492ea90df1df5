//! From nothing to listening, and back: the order in which a daemon comes and goes.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};
use watchkeeper_core::{
    AgentKind, AgentTrait, AgentTraits, Core, Incarnation, Input, InputBody, Now, ProcessRef, SessionKey,
    Settings, Signal, SignalBody,
    signal::{Facts, Source, Thread},
};
use watchkeeper_frame::{Place, spool::SPOOL_MAX_FILES};
use watchkeeper_os::{
    power::inhibit::{EndsAtOnce, HandOver, Inhibitor},
    process::{exit_watch::ExitWatch, open_files},
};
use watchkeeper_store::{Seq, Snapshot};

use crate::{
    RunError, actor,
    config_watch::Configuration,
    declared_files::DeclaredFiles,
    dispatcher::{Dispatcher, Parts},
    door::Listener,
    event::{EVENT_QUEUE, Event},
    exceptions,
    file_notices::FileNotices,
    follow::Follower,
    instance::InstanceLock,
    intake_hooks::{Drained, SPOOL_A_TURN},
    journal::{self, EventReader, Journal, Row},
    keep_awake::{self, Wish},
    observe, ready,
    signals::StopSignals,
    sources::{Sources, Touched},
    succession::{Custody, Origin, Successor},
};

/// Everything accepted is stored within this at the end, or the end is not waited for.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// Connections and actors get this long to end by themselves.
const TASKS_WITHIN: Duration = Duration::from_secs(2);
/// The longest teardown, with a second for what is not waited for.
pub(crate) const TEARDOWN_MAX: Duration = CLOSE_WITHIN
    .saturating_add(TASKS_WITHIN)
    .saturating_add(keep_awake::LEFT_WITHIN)
    .saturating_add(Duration::from_secs(1));
/// Rows left out of one fold because the core panics at them; with more of them the journal counts as unreadable.
const BAD_ROWS_MAX: usize = 16;
/// Turns in which the whole of a full spool is heard before the doors open; what comes later waits until they are.
const SPOOL_TURNS: usize = SPOOL_MAX_FILES.div_ceil(SPOOL_A_TURN);
/// The fact that says how the last run ended.
const CLEAN: &str = "clean";

/// How a daemon's life ended.
#[derive(Debug)]
pub(crate) enum End {
    Stopped,
    /// Everything is taken down, but for what the successor gets. Nobody listens for signals any more.
    Succeeded(Successor, HandOver, EndsAtOnce),
}

/// Brings the daemon up, runs it, takes it down. The instance lock is held from first to last and then given back. `custody`
/// has what a predecessor handed over.
pub(crate) async fn run(
    place: Place,
    private: bool,
    origin: &Origin,
    custody: Custody,
    lock: InstanceLock,
) -> Result<(End, InstanceLock), RunError> {
    let limit = open_files::raise();
    tracing::info!(before = ?limit.before, after = ?limit.after, "open files");
    let opened = journal::open(&place.state)?;
    for note in &opened.recovery.notes {
        tracing::warn!(?note, "the journal was repaired");
        exceptions::record(&format!("journal: {note:?}"));
    }
    let store = opened.store;
    let reader = store.reader()?;
    let was_clean = reader.fact(CLEAN)?.as_deref() == Some(b"1");
    let cursors = reader.cursors()?.cursors;
    let deliveries = store.deliveries();
    let reader = EventReader::new(reader);

    let configuration = Configuration::load(&place.config);
    let snapshot = opened.recovery.snapshot;
    let declared = DeclaredFiles::load(&place.config);
    let settings = configuration.settings().clone();
    let core = fold(snapshot.as_ref(), &reader, &[], settings).ok_or(RunError::Journal)?;

    let (events, queue) = mpsc::channel(EVENT_QUEUE);
    let reports = events.clone();
    let writer = store.start_writer(move |committed| {
        // The writing thread waits for the dispatcher, never the other way round. Only gone when the daemon is.
        _ = reports.blocking_send(Event::Committed(committed));
    })?;
    let journal = Journal::new(writer, deliveries);
    journal.put_fact(CLEAN, b"0".to_vec());

    let touched = Arc::new(Touched::default());
    let touching = Arc::clone(&touched);
    let mut follower = Follower::new(FileNotices::new(move |paths| touching.add(paths)), cursors);
    follower.use_adapters(declared.adapters().clone());
    for folder in [&place.run, &place.config, &place.spool()] {
        follower.keep_watching(folder);
    }
    follower.keep_watching(declared.folder());
    let exits = Arc::new(ExitWatch::new()?);
    let (wish, wishes) = watch::channel(Wish::default());
    let mut tasks = JoinSet::new();
    let observing = events.clone();
    let observe = move || observe::run(observing.clone());
    let unseen = actor::nothing_seen();
    tasks.spawn({
        let events = events.clone();
        async move { actor::keep("observe", observe, &unseen, events).await }
    });

    let mut dispatcher = Dispatcher::new(Parts {
        place: place.clone(),
        private,
        core,
        journal,
        reader,
        follower,
        exits: Arc::clone(&exits),
        wish,
        configuration,
        declared,
        events: events.clone(),
        succeeds: origin.successor_program.is_some(),
        lock,
    });
    if origin.failed_restarts > 0 {
        dispatcher.counters.add_many("restart.failed", origin.failed_restarts);
    }
    // The living are adopted and the spool is heard before anybody is declared gone: effects wait for their rows.
    let settings = dispatcher.configuration.settings().clone();
    if dispatcher.core.settings() != &settings {
        dispatcher.change_settings(settings);
    }
    _ = dispatcher.apply(InputBody::RuntimeStarted { clean: was_clean });
    // All of it: an end in a long spool must be heard before its session is found gone.
    // But not what hooks add all the while: they would keep the doors closed for as long as they come.
    for _ in 0..SPOOL_TURNS {
        if dispatcher.drain_spool() != Drained::More {
            break;
        }
    }
    // Now it is known what is wanted: of what was handed over the rest is let go.
    let (leave, leaving) = oneshot::channel();
    let (mut leave, mut handed, reports) = (Some(leave), custody.take(), events.clone());
    let hold = move || {
        // The first one has what was handed over and can hand it on; one that follows a fault begins with nothing.
        let leave = leave.take().unwrap_or_else(|| oneshot::channel().0);
        keep_awake::run(Inhibitor::new(), wishes.clone(), std::mem::take(&mut handed), reports.clone(), leave)
    };
    tasks.spawn(async move { actor::keep("keep_awake", hold, &actor::nothing_held(), events).await });
    dispatcher.wish_as_decided();

    let mut sources = Sources {
        queue,
        hook_door: Listener::bind(&hook_path(&place))?,
        api_door: Listener::bind(&api_path(&place))?,
        exits,
        touched,
        signals: StopSignals::new(origin.owns_process).map_err(RunError::Signals)?,
        tasks,
        paused_until: None,
    };
    // Hooks that came between the first look and the open door used the spool.
    _ = dispatcher.drain_spool();
    ready::tell(origin.notify.as_deref());
    tracing::info!(pid = std::process::id(), run = %place.run.display(), "ready");

    let why = dispatcher.run(&mut sources).await;
    tracing::info!(why, "stopping");
    Ok(shut_down(dispatcher, sources, leaving).await)
}

/// Stop accepting, release the hooks, let go of power (or take it along for a successor), drain, close. The lock is given
/// up by the caller, last.
async fn shut_down(
    mut dispatcher: Dispatcher,
    sources: Sources,
    leaving: oneshot::Receiver<HandOver>,
) -> (End, InstanceLock) {
    let Sources { mut queue, hook_door, api_door, mut tasks, mut signals, .. } = sources;
    let successor = dispatcher.successor.take();
    hook_door.close();
    api_door.close();
    // From here on senders are refused; what waits is read away below, so that nobody is left waiting for room.
    queue.close();
    // With it the wishes end, and the locks are given away; with nobody to take them they are let go at once.
    let (journal, lock) = dispatcher.into_journal();
    let followed_by = match successor {
        Some(successor) => Some((successor, taken_along(leaving, &mut queue).await)),
        None => {
            drop(leaving);
            None
        }
    };
    let deadline = tokio::time::Instant::now() + TASKS_WITHIN;
    loop {
        tokio::select! {
            ended = tasks.join_next() => if ended.is_none() { break },
            Some(_) = queue.recv() => {}
            () = tokio::time::sleep_until(deadline) => {
                tasks.abort_all();
                break;
            }
        }
    }
    journal.put_fact(CLEAN, b"1".to_vec());
    // Blocks, bounded; nothing else is to be done any more.
    journal.close(CLOSE_WITHIN);
    let Some((successor, handed)) = followed_by else { return (End::Stopped, lock) };
    // What asks for an end from here on ends the process; what asked before was heard.
    let ends_at_once = EndsAtOnce::begin();
    let end = match signals.heard().await {
        Some(signal) => {
            tracing::info!(?signal, "told to stop while restarting");
            End::Stopped
        }
        None => End::Succeeded(successor, handed, ends_at_once),
    };
    (end, lock)
}

/// What the keeper of the locks gives away. It is waited for before any task is aborted: its end would be the locks' end.
async fn taken_along(
    mut leaving: oneshot::Receiver<HandOver>,
    queue: &mut mpsc::Receiver<Event>,
) -> HandOver {
    let deadline = tokio::time::Instant::now() + keep_awake::LEFT_WITHIN;
    let why = loop {
        tokio::select! {
            handed = &mut leaving => match handed {
                Ok(handed) => return handed,
                Err(_) => break "their keeper is gone",
            },
            // Nobody is left waiting for room.
            Some(_) = queue.recv() => {}
            () = tokio::time::sleep_until(deadline) => break "their keeper does not answer",
        }
    };
    tracing::error!(why, "the locks could not be taken along; the successor takes its own");
    HandOver::default()
}

/// The state that the journal tells: the snapshot, every row behind it, and those that are `on_their_way` to it still. A row
/// at which the core panics (a fault that an update brought) is left out instead of stopping every start. `None`: the journal
/// cannot be read.
pub(crate) fn fold(
    snapshot: Option<&Snapshot>,
    reader: &EventReader,
    on_their_way: &[(Seq, &Input)],
    settings: Settings,
) -> Option<Core> {
    let mut left_out = BTreeSet::new();
    while left_out.len() <= BAD_ROWS_MAX {
        match fold_without(&left_out, snapshot, reader, on_their_way, settings.clone())? {
            Ok(core) => return Some(core),
            Err(culprit) => {
                exceptions::record(&format!("journal: the core panics at row {}; it is left out", culprit.0));
                left_out.insert(culprit);
            }
        }
    }
    None
}

/// One fold; the row at which the core panicked, whose state is then worth nothing.
fn fold_without(
    left_out: &BTreeSet<Seq>,
    snapshot: Option<&Snapshot>,
    reader: &EventReader,
    on_their_way: &[(Seq, &Input)],
    settings: Settings,
) -> Option<Result<Core, Seq>> {
    let mut through = Seq(0);
    let mut core = Core::new(settings, traits());
    if let Some(snapshot) = snapshot {
        match serde_json::from_slice::<Core>(&snapshot.bytes) {
            Ok(restored) => {
                core = restored;
                through = snapshot.through;
            }
            Err(error) => {
                tracing::error!(%error, "the snapshot cannot be read; what rows there are must do");
                exceptions::record_error("snapshot", &error);
            }
        }
    }
    let (mut unreadable, mut culprit) = (0_u64, None);
    let mut handle = |seq: Seq, input: &Input| {
        // Their effects were carried out, wait for their rows, or are asked for again by `RuntimeStarted`.
        let handled = catch_unwind(AssertUnwindSafe(|| drop(core.handle(input))));
        culprit = culprit.or(handled.is_err().then_some(seq));
        culprit.is_none()
    };
    let mut goes_on = true;
    let replayed = reader.replay(through, |seq, body| {
        if !goes_on || left_out.contains(&seq) {
            return;
        }
        match serde_json::from_slice::<Row>(body) {
            Ok(row) => goes_on = handle(seq, &row.input),
            Err(_) => unreadable += 1,
        }
    })?;
    for (seq, input) in on_their_way {
        if goes_on && *seq > replayed.last && !left_out.contains(seq) {
            goes_on = handle(*seq, input);
        }
    }
    if let Some(culprit) = culprit {
        return Some(Err(culprit));
    }
    let (left_out, unstored) = (left_out.len(), on_their_way.len());
    tracing::info!(
        rows = replayed.rows,
        unstored,
        damaged = replayed.damaged,
        unreadable,
        left_out,
        "journal folded"
    );
    Some(Ok(core))
}

/// What the core must know of each agent.
pub(crate) fn traits() -> AgentTraits {
    AgentKind::ALL
        .into_iter()
        .map(|kind| {
            let wakes_model =
                watchkeeper_agents::adapter(kind).is_none_or(watchkeeper_agents::Adapter::wakes_model);
            (kind, AgentTrait { wakes_model })
        })
        .collect()
}

/// A watched process is gone: said of one session that it belonged to.
pub(crate) fn exit_signal(
    key: SessionKey,
    incarnation: Incarnation,
    process: ProcessRef,
    now: &Now,
) -> Signal {
    Signal {
        key,
        incarnation: Some(incarnation),
        turn: None,
        thread: Thread::Main,
        delivery: crate::answer::random_delivery(),
        source: Source::Process,
        happened: Some(now.stamp()),
        process: None,
        facts: Facts::default(),
        body: SignalBody::ProcessExited { process },
    }
}

pub(crate) fn hook_path(place: &Place) -> PathBuf {
    door_path(place.hook_socket(), place.hook_pipe())
}

pub(crate) fn api_path(place: &Place) -> PathBuf {
    door_path(place.api_socket(), place.api_pipe())
}

fn door_path(socket: PathBuf, pipe: String) -> PathBuf {
    if cfg!(windows) { PathBuf::from(pipe) } else { socket }
}

/// Creates the folders of an instance for the owner only.
pub(crate) fn prepare(place: &Place) -> Result<(), RunError> {
    for folder in [place.run.as_path(), &place.state, &place.config, &place.spool()] {
        create_private(folder).map_err(|source| RunError::Folder { path: folder.to_owned(), source })?;
    }
    place.check().map_err(RunError::Place)
}

fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
