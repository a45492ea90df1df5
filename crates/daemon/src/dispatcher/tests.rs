//! Single steps of the dispatcher, with real files and a real journal.

use std::sync::mpsc::channel;

use watchkeeper_core::{SessionKey, input::Known};

use super::*;
use crate::{
    file_notices::FileNotices,
    rig::{INTERRUPT, Life},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// Notices whose watcher has ended, as one does whose thread could not be started.
fn blind_notices() -> FileNotices {
    let (told, heard) = channel();
    let broken = std::sync::atomic::AtomicBool::new(true);
    let mut notices = FileNotices::new(move |_| {
        _ = told.send(());
        assert!(!broken.swap(false, std::sync::atomic::Ordering::Relaxed), "a planted panic");
    });
    let dir = tempfile::tempdir().unwrap();
    notices.watch(dir.path());
    std::fs::write(dir.path().join("x"), "x").unwrap();
    heard.recv_timeout(PATIENCE).unwrap();
    let begun = std::time::Instant::now();
    while !notices.is_blind() {
        assert!(begun.elapsed() < PATIENCE, "the thread ends");
        notices.watch(dir.path());
    }
    notices.unwatch(dir.path());
    notices
}

/// Whatever happened unnoticed is found by the slow look, also while every session is idle, and notices come again.
#[tokio::test]
async fn while_blind_everything_is_looked_at() {
    let home = tempfile::tempdir().unwrap();
    let Life { mut dispatcher, mut sources, .. } = Life::begin(home.path(), blind_notices());
    let (projects, registry) = (home.path().join("projects").join("p"), home.path().join("sessions"));
    for folder in [&projects, &registry] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let (key, transcript) = (SessionKey::new(AgentKind::Claude, "s"), projects.join("s.jsonl"));
    std::fs::write(&transcript, "").unwrap();
    dispatcher.follow_transcript(&key, &transcript);
    assert!(dispatcher.follower.is_blind());

    std::fs::write(&transcript, format!("{INTERRUPT}\n")).unwrap();
    std::fs::write(registry.join("1.json"), r#"{"pid":1,"sessionId":"s","procStart":"1","status":"busy"}"#)
        .unwrap();
    #[cfg(unix)] // elsewhere nobody can take a door away: a pipe's name is no file
    std::fs::remove_file(crate::boot::hook_path(&dispatcher.place)).unwrap();
    let config = dispatcher.place.config.join("config.toml");
    std::fs::write(&config, "keep_awake = \"off\"\n").unwrap();
    dispatcher.look_soon();
    dispatcher.handle(Event::ReconcileDue, &mut sources);

    let read = dispatcher.follower.cursor(&key).map(|cursor| cursor.offset);
    assert_eq!(read, Some(INTERRUPT.len() as u64 + 1), "the transcript of a session that does not work");
    assert_eq!(dispatcher.counters.get("agent_state.stale"), 1, "the state files");
    assert_eq!(dispatcher.counters.get("door.stolen"), u64::from(cfg!(unix)));
    assert!(sources.hook_door.is_ours());
    assert_eq!(dispatcher.configuration.settings().keep_awake, watchkeeper_core::settings::KeepAwake::Off);
    assert!(!dispatcher.follower.is_blind(), "a new watcher");
    dispatcher.announce();
    assert!(dispatcher.next_reconcile.is_none(), "nobody looks any more");
}

/// A hook that was killed while it wrote leaves a file that is nobody's.
#[tokio::test]
async fn what_a_killed_hook_left_half_written_goes_when_it_is_old() {
    let home = tempfile::tempdir().unwrap();
    let Life { mut dispatcher, sources: _sources, .. } = Life::begin(home.path(), FileNotices::new(|_| {}));
    let spool = dispatcher.place.spool();
    std::fs::create_dir_all(&spool).unwrap();
    let [old, young] = ["old", "young"]
        .map(|name| spool.join(format!("{}{name}", watchkeeper_frame::spool::TEMPORARY_PREFIX)));
    for file in [&old, &young] {
        std::fs::write(file, "half").unwrap();
    }
    let written = std::time::SystemTime::now() - 2 * watchkeeper_frame::spool::TEMPORARY_MAX_AGE;
    std::fs::File::options().write(true).open(&old).unwrap().set_modified(written).unwrap();
    dispatcher.spool_swept = None;
    assert_eq!(dispatcher.drain_spool(), crate::intake_hooks::Drained::All);
    assert!(!old.exists() && young.exists());
    assert_eq!(dispatcher.counters.get("spool.swept"), 1);
}

/// Asks as the person at the machine does.
fn ask(dispatcher: &mut Dispatcher, method: &str) -> Result<serde_json::Value, watchkeeper_api::Failure> {
    let params = serde_json::json!({ "owner": "person", "reason": "r", "agent": "claude", "session": "s" });
    let (reply, mut answered) = tokio::sync::oneshot::channel();
    let call = watchkeeper_api::Call::parse(method, params)?;
    let grant = Some(crate::grant::Grant::Scope(watchkeeper_api::Scope::Machine));
    dispatcher.answer(crate::event::ApiCall { caller: Caller { pid: None }, grant, call, reply });
    let unanswered = |_| watchkeeper_api::Failure::new(watchkeeper_api::ErrorCode::Internal, "not at once");
    answered.try_recv().map_err(unanswered)?.map(|answer| answer.value)
}

/// Brings the writer to wait for us, and rows to wait for the writer.
fn fall_behind(dispatcher: &mut Dispatcher, events: &mpsc::Sender<Event>) {
    while events.try_send(Event::ObserverLeft).is_ok() {}
    let mut lid = false;
    while !dispatcher.journal.is_behind() {
        lid = !lid;
        assert!(dispatcher.apply(InputBody::Lid { state: Known::Is(lid) }).is_some());
    }
}

/// A disk that takes nothing is when a person looks, and ends the daemon.
#[tokio::test]
async fn whoever_only_looks_is_answered_while_the_journal_is_behind() {
    let home = tempfile::tempdir().unwrap();
    let Life { mut dispatcher, sources: _sources, events, .. } =
        Life::begin(home.path(), FileNotices::new(|_| {}));
    fall_behind(&mut dispatcher, &events);
    for adds in ["hold.take", "session.start", "subscribe"] {
        let code = ask(&mut dispatcher, adds).unwrap_err().code;
        assert_eq!(code, watchkeeper_api::ErrorCode::Busy, "{adds}");
    }
    let status = ask(&mut dispatcher, "status").unwrap();
    assert!(status["notices"][0].as_str().unwrap().starts_with("the journal is behind"), "{status}");
    for looks in ["doctor", "daemon.status", "hold.list", "config.get", "daemon.stop"] {
        assert!(ask(&mut dispatcher, looks).is_ok(), "{looks}");
    }
    assert!(dispatcher.is_stopping());
}

/// The core panicked while rows wait in the writer's queue and before it, and the writer waits for us: what it knew is made
/// anew from what is stored and what is not yet.
#[tokio::test]
async fn the_state_is_made_anew_while_the_journal_is_behind_and_our_queue_is_full() {
    let home = tempfile::tempdir().unwrap();
    let Life { mut dispatcher, sources: _sources, events, .. } =
        Life::begin(home.path(), FileNotices::new(|_| {}));
    fall_behind(&mut dispatcher, &events);
    for external_on in [Known::Is(2), Known::Is(1)] {
        assert!(dispatcher.apply(InputBody::Displays { external_on }).is_some());
    }
    let before =
        std::mem::replace(&mut dispatcher.core, Core::new(Settings::default(), crate::boot::traits()));
    dispatcher.rebuild();
    assert!(dispatcher.core == before, "{:?}\n{:?}", dispatcher.core.machine(), before.machine());
    assert!(events.try_send(Event::ObserverLeft).is_err() && dispatcher.journal.is_behind(), "still stuck");
}

/// What a hook of Claude Code's says, as its connection hands it over.
fn said(delivery: u128, event: &str, more: &str) -> Event {
    let payload = format!(r#"{{"session_id":"s","hook_event_name":"{event}"{more}}}"#);
    let now = clock::now();
    let head = watchkeeper_frame::Head {
        delivery,
        started_boot_ns: now.boot.0,
        boot_id: now.boot_id.0,
        wall_ms: now.wall.0,
        ..watchkeeper_frame::Head::default()
    };
    let mut room = vec![0; watchkeeper_frame::wire::PREFIX_MAX_BYTES + payload.len()];
    let mut draft = watchkeeper_frame::wire::draft(&mut room, head, b"claude", event.as_bytes(), []).unwrap();
    draft.payload_room()[..payload.len()].copy_from_slice(payload.as_bytes());
    let request = watchkeeper_frame::Request::from_frame(draft.seal(payload.len()).to_vec()).unwrap();
    let call = crate::event::HookCall { request, caller: Caller { pid: None }, reply: mpsc::channel(2).0 };
    Event::Hook(Box::new(call))
}

/// How the session `s` ended.
fn ended(dispatcher: &Dispatcher) -> Option<String> {
    dispatcher.core.session(&SessionKey::new(AgentKind::Claude, "s"))?.ended
}

fn gone_process() -> watchkeeper_core::ProcessRef {
    watchkeeper_core::ProcessRef { pid: 1, start: u64::MAX, boot: clock::now().boot_id }
}

/// A hook of `agent` says this of its session `id`; it belongs to the process that is gone.
fn say(
    dispatcher: &mut Dispatcher,
    agent: AgentKind,
    id: &str,
    delivery: u128,
    body: watchkeeper_core::SignalBody,
) {
    let signal = watchkeeper_core::Signal {
        key: SessionKey::new(agent, id),
        incarnation: None,
        turn: None,
        thread: watchkeeper_core::signal::Thread::Main,
        delivery: DeliveryId(delivery),
        source: watchkeeper_core::signal::Source::Hook,
        happened: None,
        process: Some(watchkeeper_core::signal::AgentProcess {
            process: gone_process(),
            shared: agent != AgentKind::Claude,
            declared: false,
        }),
        facts: watchkeeper_core::signal::Facts::default(),
        body,
    };
    assert!(dispatcher.apply(InputBody::Signal { signal: Box::new(signal), held: None }).is_some());
}

/// A session of a process that is gone, whose exit was just noticed.
fn begin_of_the_gone(home: &std::path::Path) -> (Life, watchkeeper_core::ProcessRef) {
    let mut life = Life::begin(home, FileNotices::new(|_| {}));
    let started = watchkeeper_core::SignalBody::Started { prompt: None };
    say(&mut life.dispatcher, AgentKind::Claude, "s", 1, started);
    (life, gone_process())
}

/// Turns until no exit waits any more; what is stored meanwhile may bring further ones. Time is the test's own.
async fn settle(dispatcher: &mut Dispatcher, sources: &mut Sources) {
    for _ in 0..100 {
        while let Ok(event) = sources.queue.try_recv() {
            dispatcher.handle(event, sources);
        }
        let Some(due) = dispatcher.next_settling() else { return };
        tokio::time::advance(due.saturating_duration_since(Instant::now())).await;
        dispatcher.handle(Event::ReconcileDue, sources);
    }
    panic!("an exit waits for ever");
}

#[tokio::test(start_paused = true)]
async fn an_exit_takes_its_place_behind_what_hooks_said_before() {
    let home = tempfile::tempdir().unwrap();
    let (Life { mut dispatcher, mut sources, events, .. }, process) = begin_of_the_gone(home.path());
    // One is in the queue, another one is still on its way.
    events.try_send(said(2, "PreToolUse", r#","tool_name":"Bash","tool_use_id":"t""#)).unwrap();
    let on_its_way = dispatcher.readers.begin();
    dispatcher.handle(Event::ProcessExited(process), &mut sources);
    while let Ok(event) = sources.queue.try_recv() {
        dispatcher.handle(event, &mut sources);
    }
    dispatcher.handle(Event::ReconcileDue, &mut sources);
    assert_eq!(ended(&dispatcher), None);

    events.try_send(said(3, "SessionEnd", r#","reason":"other""#)).unwrap();
    drop(on_its_way);
    assert!(dispatcher.next_look().is_some_and(|due| due <= Instant::now()));
    settle(&mut dispatcher, &mut sources).await;
    assert_eq!(ended(&dispatcher).as_deref(), Some("reported"));
}

#[tokio::test(start_paused = true)]
async fn an_exit_does_not_wait_for_a_hook_that_says_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (Life { mut dispatcher, mut sources, .. }, process) = begin_of_the_gone(home.path());
    let _silent = dispatcher.readers.begin();
    dispatcher.handle(Event::ProcessExited(process), &mut sources);
    let due = dispatcher.next_settling().unwrap();
    assert!(due > Instant::now());
    settle(&mut dispatcher, &mut sources).await;
    assert_eq!(ended(&dispatcher).as_deref(), Some("process_exited"));
}

/// An app server has several conversations: a tool in one of them must not read another one.
#[tokio::test]
async fn a_process_of_several_sessions_gives_none_of_them_to_its_callers() {
    use watchkeeper_core::{SignalBody, signal::EndReason};
    let home = tempfile::tempdir().unwrap();
    let Life { mut dispatcher, sources: _sources, .. } = Life::begin(home.path(), FileNotices::new(|_| {}));
    let (process, agent) = (gone_process(), AgentKind::Codex);
    let key = |id: &str| Some(SessionKey::new(agent, id));
    let end = || SignalBody::SessionEnded { reason: EndReason::Stopped, successor: None };
    assert_eq!(dispatcher.only_session_of(&process), None);
    say(&mut dispatcher, agent, "a", 1, SignalBody::Started { prompt: None });
    assert_eq!(dispatcher.only_session_of(&process), key("a"));
    say(&mut dispatcher, agent, "b", 2, SignalBody::Started { prompt: None });
    assert_eq!(dispatcher.only_session_of(&process), None);
    say(&mut dispatcher, agent, "a", 3, end());
    assert_eq!(dispatcher.only_session_of(&process), key("b"), "the live one");
    say(&mut dispatcher, agent, "b", 4, end());
    assert_eq!(dispatcher.only_session_of(&process), None, "two that have ended");
}
