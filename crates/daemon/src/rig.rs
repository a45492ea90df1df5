//! The parts of a daemon as a test wants them: over a real journal, real sockets and real files, with nobody at its power.

use std::{path::Path, sync::Arc};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use watchkeeper_core::Core;
use watchkeeper_frame::Place;
use watchkeeper_os::process::exit_watch::ExitWatch;
use watchkeeper_store::Store;

use crate::{
    boot,
    config_watch::Configuration,
    declared_files::DeclaredFiles,
    dispatcher::{Dispatcher, Parts},
    door::Listener,
    event::{EVENT_QUEUE, Event},
    file_notices::FileNotices,
    follow::Follower,
    instance::InstanceLock,
    journal::{EventReader, Journal},
    keep_awake::Wish,
    signals::StopSignals,
    sources::{Sources, Touched},
};

/// A line of a transcript of Claude Code's that says something.
pub(crate) const INTERRUPT: &str = concat!(
    r#"{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","isSidechain":false,"#,
    r#""message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#
);

/// A daemon of which each step is a call.
pub(crate) struct Life {
    pub dispatcher: Dispatcher,
    pub sources: Sources,
    /// Where other parts say what happened.
    pub events: mpsc::Sender<Event>,
    /// Wishes need somebody who could hear them.
    _wishes: watch::Receiver<Wish>,
}

impl Life {
    /// Begins in `home`, within a runtime. File notices come by `notices`.
    pub(crate) fn begin(home: &Path, notices: FileNotices) -> Self {
        let place = Place::of_home(home);
        boot::prepare(&place).unwrap();
        let lock = InstanceLock::take_now(&place.run).unwrap();
        let store = Store::open(&place.state).unwrap().store;
        let reader = EventReader::new(store.reader().unwrap());
        let (events, queue) = mpsc::channel(EVENT_QUEUE);
        let reports = events.clone();
        let deliveries = store.deliveries();
        let writer =
            store.start_writer(move |said| _ = reports.blocking_send(Event::Committed(said))).unwrap();
        let mut follower = Follower::new(notices, Vec::new());
        for folder in [&place.run, &place.config, &place.spool()] {
            follower.keep_watching(folder);
        }
        let configuration = Configuration::load(&place.config);
        let declared = DeclaredFiles::load(&place.config);
        let exits = Arc::new(ExitWatch::new().unwrap());
        let (wish, wishes) = watch::channel(Wish::default());
        let sources = Sources {
            queue,
            hook_door: Listener::bind(&boot::hook_path(&place)).unwrap(),
            api_door: Listener::bind(&boot::api_path(&place)).unwrap(),
            exits: Arc::clone(&exits),
            touched: Arc::new(Touched::default()),
            signals: StopSignals::new(false).unwrap(),
            tasks: JoinSet::new(),
            paused_until: None,
        };
        let dispatcher = Dispatcher::new(Parts {
            place,
            private: false,
            core: Core::new(configuration.settings().clone(), boot::traits()),
            journal: Journal::new(writer, deliveries),
            reader,
            follower,
            exits,
            wish,
            configuration,
            declared,
            events: events.clone(),
            succeeds: false,
            lock,
        });
        Self { dispatcher, sources, events, _wishes: wishes }
    }
}
