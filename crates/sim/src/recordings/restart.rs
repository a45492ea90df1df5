//! What a daemon leaves when it is gone, and how the next one takes it up: the journal's rows over a snapshot, the cursors of
//! transcripts, and what hooks spooled meanwhile. In the order in which the real one does it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use watchkeeper_core::{Core, Input, InputBody, SessionKey, signal::Source};

use super::{
    load::{Event, EventKind},
    replay::{Replay, fresh},
};

/// What survives.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// Whether rows and cursors are kept: a replay that never restarts needs none.
    pub(super) keeps: bool,
    pub(super) rows: Vec<Input>,
    pub(super) cursors: BTreeMap<(SessionKey, String), Place>,
    /// Deliveries that the core was told.
    pub(super) known: BTreeSet<u128>,
    files: BTreeMap<String, usize>,
    states: BTreeMap<(String, Vec<u8>), usize>,
    told: u128,
}

/// How far a transcript was read, and its reader's memory.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) offset: usize,
    pub(super) reader: Value,
}

impl Disk {
    /// A delivery that has never been before.
    pub(super) fn told(&mut self) -> u128 {
        self.told += 1;
        self.told
    }

    pub(super) fn number_of_file(&mut self, path: &str) -> usize {
        let next = self.files.len();
        *self.files.entry(path.to_owned()).or_insert(next)
    }

    pub(super) fn number_of_state(&mut self, path: &str, content: &[u8]) -> usize {
        let next = self.states.len();
        *self.states.entry((path.to_owned(), content.to_owned())).or_insert(next)
    }
}

impl Replay {
    /// From now on, what a restart needs is kept.
    pub(crate) fn keep_journal(&mut self) {
        self.disk.keeps = true;
    }

    /// The daemon is gone: hooks spool, nobody looks at files and processes.
    pub(crate) fn kill(&mut self) {
        self.spool = Some(Vec::new());
        self.following.clear();
        self.stated.clear();
    }

    /// The next daemon: folds the journal, hears the spool, and only then does what the core asks for, as its effects wait for
    /// their rows.
    pub(crate) fn restart(&mut self, t: f64) {
        self.advance(t);
        let mut spooled = self.spool.take().unwrap_or_default();
        match self.folded() {
            Ok(core) if core == self.core => self.core = core,
            Ok(_) => self.violations.push(format!("t = {t}: the journal tells another state")),
            Err(error) => self.violations.push(format!("t = {t}: the journal cannot be read: {error}")),
        }
        self.effects_wait = true;
        self.handle(InputBody::RuntimeStarted { clean: false });
        spooled.sort_by(|a, b| begun(a).total_cmp(&begun(b)));
        for hook in &spooled {
            self.hook(hook, Source::Spool);
        }
        self.carry_out_all();
    }

    /// The state that the journal tells, half of it by a snapshot.
    fn folded(&self) -> serde_json::Result<Core> {
        let (before, behind) = self.disk.rows.split_at(self.disk.rows.len() / 2);
        let mut core = fresh(self.adapter);
        for row in before {
            _ = core.handle(row);
        }
        let mut core: Core = serde_json::from_slice(&serde_json::to_vec(&core)?)?;
        for row in behind {
            let row: Input = serde_json::from_slice(&serde_json::to_vec(row)?)?;
            _ = core.handle(&row);
        }
        Ok(core)
    }
}

fn begun(event: &Event) -> f64 {
    match &event.kind {
        EventKind::Hook { begun, .. } => *begun,
        EventKind::Transcript { .. }
        | EventKind::Registry { .. }
        | EventKind::Exit { .. }
        | EventKind::Other => event.t,
    }
}
