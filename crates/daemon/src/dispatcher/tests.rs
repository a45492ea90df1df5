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

/// The core panicked while rows wait in the writer's queue and before it, and the writer waits for us: what it knew is made
/// anew from what is stored and what is not yet.
#[tokio::test]
async fn the_state_is_made_anew_while_the_journal_is_behind_and_our_queue_is_full() {
    let home = tempfile::tempdir().unwrap();
    let Life { mut dispatcher, sources: _sources, events, .. } =
        Life::begin(home.path(), FileNotices::new(|_| {}));
    while events.try_send(Event::ObserverLeft).is_ok() {}
    let mut lid = false;
    while !dispatcher.journal.is_behind() {
        lid = !lid;
        assert!(dispatcher.apply(InputBody::Lid { state: Known::Is(lid) }).is_some());
    }
    for external_on in [Known::Is(2), Known::Is(1)] {
        assert!(dispatcher.apply(InputBody::Displays { external_on }).is_some());
    }
    let before =
        std::mem::replace(&mut dispatcher.core, Core::new(Settings::default(), crate::boot::traits()));
    dispatcher.rebuild();
    assert!(dispatcher.core == before, "{:?}\n{:?}", dispatcher.core.machine(), before.machine());
    assert!(events.try_send(Event::ObserverLeft).is_err() && dispatcher.journal.is_behind(), "still stuck");
}
