//! Single steps of the dispatcher, with real files and a real journal.

use std::sync::mpsc::channel;

use watchkeeper_core::SessionKey;

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
    let (projects, registry) = (home.path().join("projects/p"), home.path().join("sessions"));
    for folder in [&projects, &registry] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let (key, transcript) = (SessionKey::new(AgentKind::Claude, "s"), projects.join("s.jsonl"));
    std::fs::write(&transcript, "").unwrap();
    dispatcher.follow_transcript(&key, &transcript);
    dispatcher.announce();
    assert!(dispatcher.follower.is_blind() && dispatcher.next_reconcile.is_some());

    std::fs::write(&transcript, format!("{INTERRUPT}\n")).unwrap();
    std::fs::write(registry.join("1.json"), r#"{"pid":1,"sessionId":"s","procStart":"1","status":"busy"}"#)
        .unwrap();
    std::fs::remove_file(crate::boot::hook_path(&dispatcher.place)).unwrap();
    let config = dispatcher.place.config.join("config.toml");
    std::fs::write(&config, "keep_awake = \"off\"\n").unwrap();
    dispatcher.next_reconcile = Some(Instant::now());
    dispatcher.handle(Event::ReconcileDue, &mut sources);

    let read = dispatcher.follower.cursor(&key).map(|cursor| cursor.offset);
    assert_eq!(read, Some(INTERRUPT.len() as u64 + 1), "the transcript of a session that does not work");
    assert_eq!(dispatcher.counters.get("agent_state.stale"), 1, "the state files");
    assert_eq!(dispatcher.counters.get("door.stolen"), 1);
    assert!(sources.hook_door.is_ours());
    assert_eq!(dispatcher.configuration.settings().keep_awake, watchkeeper_core::settings::KeepAwake::Off);
    assert!(!dispatcher.follower.is_blind(), "a new watcher");
    dispatcher.announce();
    assert!(dispatcher.next_reconcile.is_none(), "nobody looks any more");
}
