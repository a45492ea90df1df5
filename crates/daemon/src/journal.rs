//! The daemon's side of the journal: every input of the core becomes a row before its effects are carried out.

use std::{
    collections::VecDeque,
    fs::File,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use watchkeeper_api::method::{EventRow, Events, TransitionRow, source_name};
use watchkeeper_core::{
    DeliveryId, Effect, Incarnation, Input, InputBody, SessionKey, SignalBody, Wall, signal::Source,
};
use watchkeeper_store::{
    Cursor, Deliveries, Entry, EventQuery, JournalWriter, OpenError, Opened, Reader, Seq, Snapshot, Store,
    SubmitError, Urgency,
};

use crate::instance;

/// A snapshot is due after so many rows, so that a restart replays few.
pub(crate) const SNAPSHOT_EVERY_ROWS: u64 = 4000;

/// A former life of this process whose disk was too slow for its end holds the journal still: its writer gets so long to
/// end, then the start fails.
const FORMER_WRITER_WITHIN: Duration = Duration::from_secs(30);

/// Bodies in one answer; with the rest of its rows it stays below a frame of the interface, which is 1 MiB. The page ends
/// before the row that would cross this; a single larger row comes without its body.
const PAGE_BYTES: usize = 700 << 10;
/// What a row needs beside its body.
const ROW_BYTES: usize = 512;

/// What a row holds, as it is read back.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    pub input: Input,
    /// What became of it when it changed nothing.
    #[serde(default)]
    pub verdict: Option<String>,
    #[serde(default)]
    pub transitions: Vec<TransitionRow>,
}

/// Opens the journal in `state`. Waits for the writer of a former life of this process, but for nobody else.
///
/// # Errors
/// As [`Store::open`].
pub(crate) fn open(state: &Path) -> Result<Opened, OpenError> {
    open_within(FORMER_WRITER_WITHIN, state)
}

fn open_within(limit: Duration, state: &Path) -> Result<Opened, OpenError> {
    let opened = Store::open(state);
    let own = Some(std::process::id());
    if !matches!(&opened, Err(OpenError::Locked { holder, .. }) if *holder == own) {
        return opened;
    }
    tracing::warn!(?limit, "the journal of the life before is not closed yet");
    let path = Store::lock_file(state);
    let waited =
        File::options().write(true).open(&path).and_then(|file| instance::locked_within(limit, file));
    // Let go at once, for the journal to take it.
    drop(waited.map_err(|source| OpenError::File { doing: "wait for", path, source })?);
    Store::open(state)
}

#[derive(Serialize)]
struct RowToWrite<'a> {
    input: &'a Input,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    transitions: Vec<TransitionRow>,
}

/// An input with what the core made of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handled<'a> {
    pub input: &'a Input,
    pub resolved: Option<&'a (SessionKey, Incarnation)>,
    pub verdict: Option<&'a str>,
    pub effects: &'a [Effect],
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    /// The writer is gone or refuses this row for good.
    #[error("cannot append to the journal")]
    Submit(#[source] SubmitError),
    #[error("cannot write a row as JSON")]
    Encode(#[source] serde_json::Error),
}

impl AppendError {
    /// Nothing will ever be stored again by this process.
    #[must_use]
    pub(crate) const fn is_end_of_writer(&self) -> bool {
        matches!(self, Self::Submit(SubmitError::Stopped))
    }
}

/// Appends rows and knows deliveries.
#[derive(Debug)]
pub(crate) struct Journal {
    writer: JournalWriter,
    deliveries: Deliveries,
    last: Seq,
    /// Rows that wait for room in the writer's queue. While there are any, hooks are sent to the spool, transcripts are not
    /// read and clients are told to come back, so that only what the machine itself reports is added.
    overflow: VecDeque<(Seq, Entry, Urgency)>,
}

impl Journal {
    #[must_use]
    pub(crate) fn new(writer: JournalWriter, deliveries: Deliveries) -> Self {
        Self { last: writer.last_submitted(), writer, deliveries, overflow: VecDeque::new() }
    }

    /// Queues the row of an input. Does not block.
    ///
    /// # Errors
    /// Only when the row can never be stored.
    pub(crate) fn append(&mut self, handled: Handled<'_>) -> Result<Seq, AppendError> {
        let transitions = handled.effects.iter().filter_map(transition).collect();
        let row = RowToWrite { input: handled.input, verdict: handled.verdict, transitions };
        let (kind, key) = name_and_key(&handled.input.body);
        let entry = Entry {
            delivery: delivery_of(&handled.input.body),
            key: handled.resolved.map(|(key, _)| key.clone()).or(key),
            incarnation: handled.resolved.map(|(_, incarnation)| *incarnation),
            kind: kind.to_owned(),
            wall: handled.input.now.wall,
            body: serde_json::to_vec(&row).map_err(AppendError::Encode)?,
        };
        let seq = self.last.next();
        let urgency = urgency(&handled.input.body);
        if self.overflow.is_empty() {
            match self.writer.submit(seq, entry.clone(), urgency) {
                Ok(()) => {}
                Err(SubmitError::Full { .. }) => self.overflow.push_back((seq, entry, urgency)),
                Err(error) => return Err(AppendError::Submit(error)),
            }
        } else {
            self.overflow.push_back((seq, entry, urgency));
        }
        self.last = seq;
        Ok(seq)
    }

    /// Offers waiting rows to the writer again.
    ///
    /// # Errors
    /// When the writer takes no more rows, ever; those that wait stay.
    pub(crate) fn flush_overflow(&mut self) -> Result<(), AppendError> {
        while let Some((seq, entry, urgency)) = self.overflow.front() {
            match self.writer.submit(*seq, entry.clone(), *urgency) {
                Ok(()) => _ = self.overflow.pop_front(),
                Err(SubmitError::Full { .. }) => break,
                Err(error) => return Err(AppendError::Submit(error)),
            }
        }
        Ok(())
    }

    /// Whether hooks should rather use the spool.
    #[must_use]
    pub(crate) fn is_behind(&self) -> bool {
        !self.overflow.is_empty()
    }

    #[must_use]
    pub(crate) const fn last(&self) -> Seq {
        self.last
    }

    /// Whether this delivery was applied before. Answered from memory.
    #[must_use]
    pub(crate) fn is_known(&self, delivery: DeliveryId) -> bool {
        self.deliveries.known(delivery)
    }

    /// Stores the core's state as of the last appended row, unless rows are waiting for room.
    pub(crate) fn save_snapshot(&self, core: &watchkeeper_core::Core) {
        if self.is_behind() {
            return;
        }
        match serde_json::to_vec(core) {
            Ok(bytes) => {
                if let Err(error) = self.writer.save_snapshot(self.last, bytes) {
                    tracing::warn!(%error, "no snapshot this time; more rows are replayed after a restart");
                }
            }
            Err(error) => tracing::error!(%error, "the state cannot be written as JSON"),
        }
    }

    pub(crate) fn save_cursor(&self, cursor: Cursor) {
        if let Err(error) = self.writer.save_cursor(cursor) {
            tracing::debug!(%error, "a transcript's cursor was not stored; a restart reads it again, once");
        }
    }

    pub(crate) fn delete_cursors(&self, key: &SessionKey) {
        if let Err(error) = self.writer.delete_cursors(key, None) {
            tracing::debug!(%error, "cursors were not deleted");
        }
    }

    pub(crate) fn put_fact(&self, name: &'static str, value: Vec<u8>) {
        if let Err(error) = self.writer.put_fact(name, value) {
            tracing::debug!(%error, name, "a fact was not stored");
        }
    }

    /// Whether the journal is still where the next daemon looks for it.
    #[must_use]
    pub(crate) fn is_in_place(&self) -> bool {
        self.writer.is_in_place()
    }

    /// Ends the writing thread; everything accepted is stored first, within `limit`.
    pub(crate) fn close(self, limit: Duration) {
        if let Err(error) = self.writer.close(limit) {
            crate::exceptions::record_error("journal", &error);
        }
    }
}

/// Reads rows for people; cheap to clone, one query at a time.
#[derive(Debug, Clone)]
pub(crate) struct EventReader(Arc<Mutex<Reader>>);

impl EventReader {
    #[must_use]
    pub(crate) fn new(reader: Reader) -> Self {
        Self(Arc::new(Mutex::new(reader)))
    }

    /// Gives every row's body behind `after` to `apply`; `None` when the journal cannot be read. Blocks.
    pub(crate) fn replay(
        &self,
        after: Seq,
        apply: impl FnMut(Seq, &[u8]),
    ) -> Option<watchkeeper_store::Replayed> {
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader
            .replay(after, apply)
            .inspect_err(|error| tracing::error!(%error, "cannot read the journal"))
            .ok()
    }

    /// The newest snapshot; `None` when there is none or the journal cannot be read. Blocks.
    #[must_use]
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader
            .snapshot()
            .inspect_err(|error| tracing::error!(%error, "cannot read the snapshot"))
            .ok()
            .flatten()
    }

    /// At most `limit` rows after `after`, none written before `since`; `None` when the journal cannot be read. Blocks for the read.
    #[must_use]
    pub(crate) fn rows(
        &self,
        after: u64,
        session: Option<&SessionKey>,
        since: Option<Wall>,
        limit: usize,
    ) -> Option<Events> {
        let asked = u32::try_from(limit).unwrap_or(u32::MAX);
        let query = EventQuery { after: Seq(after), key: session.cloned(), since, limit: asked };
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match reader.events(&query) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "cannot read the journal");
                return None;
            }
        };
        let read = found.len();
        let (mut rows, mut bytes, mut next) = (Vec::new(), 0, after);
        for row in found {
            bytes += row.entry.body.len() + ROW_BYTES;
            if bytes > PAGE_BYTES && !rows.is_empty() {
                break;
            }
            next = row.seq.0;
            rows.push(row_for_people(row));
        }
        // The store ends a page by size, too: only an empty answer to the next question means the end.
        let more = read >= limit || rows.len() < read || bytes > PAGE_BYTES;
        Some(Events { rows, next, more })
    }
}

fn row_for_people(row: watchkeeper_store::EventRow) -> EventRow {
    let fits = row.entry.body.len() <= PAGE_BYTES;
    let body = if fits { serde_json::from_slice(&row.entry.body).ok() } else { None };
    let parsed: Option<Row> = serde_json::from_slice(&row.entry.body).ok();
    let source = parsed.as_ref().and_then(|r| {
        let InputBody::Signal { signal, .. } = &r.input.body else { return None };
        Some(source_name(signal.source).to_owned())
    });
    let what = parsed.as_ref().map_or_else(|| row.entry.kind.clone(), |r| describe(&r.input.body));
    let (verdict, transitions) = parsed.map_or((None, Vec::new()), |r| (r.verdict, r.transitions));
    EventRow {
        seq: row.seq.0,
        at: row.entry.wall.into(),
        input: row.entry.kind,
        session: row.entry.key.map(|k| k.to_string()),
        incarnation: row.entry.incarnation.map(|i| i.0),
        source,
        what,
        verdict,
        transitions,
        body,
    }
}

fn transition(effect: &Effect) -> Option<TransitionRow> {
    let Effect::Transitioned { key, from, to, evidence, .. } = effect else { return None };
    Some(TransitionRow { session: key.to_string(), from: *from, to: *to, evidence: evidence.clone() })
}

fn delivery_of(body: &InputBody) -> Option<DeliveryId> {
    let InputBody::Signal { signal, .. } = body else { return None };
    Some(signal.delivery)
}

/// Starts and ends are synced before they are acknowledged, and so is what a sleep of the machine waits for; everything else
/// within a second.
fn urgency(body: &InputBody) -> Urgency {
    if matches!(body, InputBody::SleepBegan) {
        return Urgency::SyncFirst;
    }
    let InputBody::Signal { signal, .. } = body else { return Urgency::Normal };
    let from_hook = matches!(signal.source, Source::Hook | Source::Spool);
    let starts_or_ends =
        matches!(signal.body, SignalBody::SessionStarted { .. } | SignalBody::SessionEnded { .. });
    if from_hook && starts_or_ends { Urgency::SyncFirst } else { Urgency::Normal }
}

/// The input's name as people filter by it, and the session that it speaks of.
fn name_and_key(body: &InputBody) -> (&'static str, Option<SessionKey>) {
    match body {
        InputBody::Signal { signal, .. } => ("signal", Some(signal.key.clone())),
        InputBody::DeadlineReached { .. } => ("deadline_reached", None),
        InputBody::SettingsChanged { .. } => ("settings_changed", None),
        InputBody::LeaseTaken { .. } => ("lease_taken", None),
        InputBody::LeaseReleased { .. } => ("lease_released", None),
        InputBody::Lid { .. } => ("lid", None),
        InputBody::Displays { .. } => ("displays", None),
        InputBody::Power { .. } => ("power", None),
        InputBody::SleepBegan => ("sleep_began", None),
        InputBody::SleepEnded { .. } => ("sleep_ended", None),
        InputBody::HoldReported { .. } => ("hold_reported", None),
        InputBody::WatchReported { key, .. } => ("watch_reported", Some(key.clone())),
        InputBody::ProbeAnswered { key, .. } => ("probe_answered", Some(key.clone())),
        InputBody::SuspendReported { .. } => ("suspend_reported", None),
        InputBody::WebhookReported { .. } => ("webhook_reported", None),
        InputBody::SoundEnded => ("sound_ended", None),
        InputBody::ReplyReceived { key, .. } => ("reply_received", Some(key.clone())),
        InputBody::HookGone { .. } => ("hook_gone", None),
        InputBody::RuntimeStarted { .. } => ("runtime_started", None),
        InputBody::Observers { .. } => ("observers", None),
    }
}

/// An input in a few words.
fn describe(body: &InputBody) -> String {
    match body {
        InputBody::Signal { signal, .. } => describe_signal(&signal.body),
        InputBody::DeadlineReached { deadline } => deadline.name().to_owned(),
        InputBody::LeaseTaken { owner, reason, .. } => format!("hold by {owner}: {reason}"),
        InputBody::HoldReported { held, refused } => {
            format!("held {}, refused {}", held.join(" "), refused.len())
        }
        other @ (InputBody::SettingsChanged { .. }
        | InputBody::LeaseReleased { .. }
        | InputBody::Lid { .. }
        | InputBody::Displays { .. }
        | InputBody::Power { .. }
        | InputBody::SleepBegan
        | InputBody::SleepEnded { .. }
        | InputBody::WatchReported { .. }
        | InputBody::ProbeAnswered { .. }
        | InputBody::SuspendReported { .. }
        | InputBody::WebhookReported { .. }
        | InputBody::SoundEnded
        | InputBody::ReplyReceived { .. }
        | InputBody::HookGone { .. }
        | InputBody::RuntimeStarted { .. }
        | InputBody::Observers { .. }) => name_and_key(other).0.to_owned(),
    }
}

fn describe_signal(body: &SignalBody) -> String {
    let named = |what: &str, name: &str| format!("{what} {name}");
    match body {
        SignalBody::Started { .. } => "start".into(),
        SignalBody::SessionStarted { cause } => format!("session_started {cause:?}").to_lowercase(),
        SignalBody::Activity { what } => format!("activity {what:?}").to_lowercase(),
        SignalBody::Displayed { what } => named("displayed", what),
        SignalBody::ToolStarted { name, .. } => named("tool_started", name),
        SignalBody::ToolFinished { name, .. } => named("tool_finished", name),
        SignalBody::SoftLocked { reason, .. } => named("soft_lock", reason),
        SignalBody::LockResolved { .. } => "lock_resolved".into(),
        SignalBody::WorkStarted { id, .. } => named("work_started", id),
        SignalBody::WorkFinished { id, .. } => named("work_finished", id),
        SignalBody::WorkLevel { live, .. } => format!("work_level {}", live.len()),
        SignalBody::Stopped { .. } => "stop".into(),
        SignalBody::Aborted { .. } => "aborted".into(),
        SignalBody::Failed { .. } => "failed".into(),
        SignalBody::IdleNoticed => "idle_notice".into(),
        SignalBody::SessionEnded { reason, .. } => format!("session_end {reason:?}").to_lowercase(),
        SignalBody::AgentStated { state, .. } => format!("agent_state {state:?}").to_lowercase(),
        SignalBody::ProcessExited { process } => format!("process_exited {}", process.pid),
        SignalBody::Orphaned => "orphaned".into(),
        SignalBody::Removed => "removed".into(),
        SignalBody::SoftLockCleared => "soft_lock_cleared".into(),
        SignalBody::Unknown { event } => named("unknown", event),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// How long a test waits for a busy machine.
    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn the_writer_of_a_former_life_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let former = open(dir.path()).unwrap().store;
        let path = dir.path().to_owned();
        let next = std::thread::spawn(move || open_within(PATIENCE, &path));
        let file = std::fs::metadata(Store::lock_file(dir.path())).unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&file);
        let is_wait = |line: &str| line.contains("-> FLOCK") && line.contains(&format!(":{inode} "));
        let begun = std::time::Instant::now();
        while !std::fs::read_to_string("/proc/locks").unwrap().lines().any(is_wait) {
            assert!(begun.elapsed() < PATIENCE, "it waits");
            std::thread::yield_now();
        }
        drop(former);
        next.join().unwrap().unwrap();
    }
}
