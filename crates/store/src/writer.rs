//! The one thread that writes: takes what is queued, commits it together, reports, syncs, tidies up.

use rusqlite::Connection;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use watchkeeper_core::SessionKey;

use crate::{
    apply::{Applied, Command, Extent, Statements, Trimmed},
    entry::{Committed, Cursor, Entry, Failure, Seq, Snapshot, Urgency, key_text, path_text},
    error::{CloseError, DatabaseError, FailureKind, FlushError, OpenError, ReadError, SubmitError},
    files::{Lock, Paths},
    limits::{
        BATCH_BYTES_MAX, BATCH_COMMANDS_MAX, BODY_BYTES_MAX, CHECKPOINT_FRAMES, CHECKPOINT_FRAMES_LATE,
        Limits, RETRY_FIRST, RETRY_LONGEST, SNAPSHOT_BYTES_MAX, SYNC_WITHIN, TEXT_BYTES_MAX,
    },
    queue::{Outcome, Queue},
    read::Reader,
    store::reader,
    sync::{Checkpoint, LogSync, SyncFailure, checkpoint},
};

/// Hands commands to the writing thread. All submits return at once. Dropping it stores what is queued and waits for
/// that; [`JournalWriter::close`] does so with a limit and tells how it went.
pub struct JournalWriter {
    paths: Paths,
    lock_identity: Option<(u64, u64)>,
    queue: Arc<Queue>,
    /// In a mutex only so that the handle can be shared; used by `close` alone.
    ended: Mutex<Receiver<usize>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for JournalWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalWriter").field("depth", &self.queue.depth()).finish_non_exhaustive()
    }
}

impl JournalWriter {
    /// Starts the thread. `report` runs on it, in order, and must not block for long: nothing is stored meanwhile.
    pub(crate) fn start(
        paths: Paths,
        lock: Lock,
        connection: Connection,
        extent: Extent,
        limits: Limits,
        queue: Arc<Queue>,
        report: impl Fn(Committed) + Send + 'static,
    ) -> Result<Self, OpenError> {
        let (tell_end, ended) = sync_channel(1);
        let (directory, own_paths) = (paths.dir.clone(), paths.clone());
        let shared = Arc::clone(&queue);
        let lock_identity = lock.identity();
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                // Held until the connection is closed: whoever opens next finds no trace of us.
                let _lock = lock;
                let guard = StopOnExit { queue: &shared };
                let left = run(&paths, connection, extent, limits, &shared, &report);
                drop(guard);
                // Nobody may be waiting for the end any more.
                let _ = tell_end.send(left);
            })
            .map_err(|source| OpenError::File { doing: "start the writer for", path: directory, source })?;
        Ok(Self { paths: own_paths, lock_identity, queue, ended: Mutex::new(ended), thread: Some(thread) })
    }

    /// Queues an entry at a position after all earlier ones.
    ///
    /// # Errors
    /// [`SubmitError::Full`] at the limits of the queue: nothing waited and nothing was taken. `TooLarge`,
    /// `OutOfOrder` and `Stopped` cannot be cured by trying again.
    pub fn submit(&self, seq: Seq, entry: Entry, urgency: Urgency) -> Result<(), SubmitError> {
        within("a body", entry.body.len(), BODY_BYTES_MAX)?;
        within("a kind", entry.kind.len(), TEXT_BYTES_MAX)?;
        within("a session key", entry.key.as_ref().map_or(0, |k| key_text(k).len()), TEXT_BYTES_MAX)?;
        self.queue.submit(Command::Append { seq, entry, urgency, duplicate: false })
    }

    /// Queues the state after the input at `through`; it is stored after every entry submitted before it, and two are
    /// kept. Rows that both cover may be trimmed from then on.
    ///
    /// # Errors
    /// As [`Self::submit`]; `OutOfOrder` when `through` was not submitted yet.
    pub fn save_snapshot(&self, through: Seq, bytes: Vec<u8>) -> Result<(), SubmitError> {
        within("a snapshot", bytes.len(), SNAPSHOT_BYTES_MAX)?;
        let last = self.queue.last();
        if through > last {
            return Err(SubmitError::OutOfOrder { given: through.0, last: last.0 });
        }
        self.queue.submit(Command::SaveSnapshot(Snapshot { through, bytes }))
    }

    /// Queues how far a transcript was read, replacing what was known of that session and path.
    ///
    /// # Errors
    /// As [`Self::submit`], and `PathNotText`.
    pub fn save_cursor(&self, cursor: Cursor) -> Result<(), SubmitError> {
        let path = path_text(&cursor.path).ok_or(SubmitError::PathNotText)?;
        within("a transcript's path", path.len(), TEXT_BYTES_MAX)?;
        within("a session key", key_text(&cursor.key).len(), TEXT_BYTES_MAX)?;
        within("a cursor's state", cursor.state_json.len(), BODY_BYTES_MAX)?;
        self.queue.submit(Command::SaveCursor(cursor))
    }

    /// Queues the removal of a session's cursors: of all its transcripts, or of the one at `path`.
    ///
    /// # Errors
    /// As [`Self::save_cursor`].
    pub fn delete_cursors(
        &self,
        key: &SessionKey,
        path: Option<&std::path::Path>,
    ) -> Result<(), SubmitError> {
        let path =
            path.map(|p| path_text(p).map(str::to_owned).ok_or(SubmitError::PathNotText)).transpose()?;
        self.queue.submit(Command::DeleteCursors { session: key_text(key), path })
    }

    /// Queues a small fact of the daemon's. Names are fixed in code, so their number is bounded.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub fn put_fact(&self, name: &'static str, value: Vec<u8>) -> Result<(), SubmitError> {
        within("a fact", value.len(), TEXT_BYTES_MAX)?;
        self.queue.submit(Command::PutFact { name, value })
    }

    /// Whether whoever opens the journal's directory finds this journal, locked: somebody may have removed or replaced it. Then
    /// nobody will read what is stored here.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.paths.has_lock(self.lock_identity)
    }

    /// Waits until everything submitted so far is stored and synced. Blocks; not for a dispatcher.
    ///
    /// # Errors
    /// Not done within `limit` (it may still happen later), or the queue did not take the request.
    pub fn flush(&self, limit: Duration) -> Result<(), FlushError> {
        let (done, wait) = sync_channel(1);
        self.queue.submit(Command::Flush(done))?;
        match wait.recv_timeout(limit) {
            Ok(()) => Ok(()),
            Err(RecvTimeoutError::Timeout) => Err(FlushError::TimedOut(limit)),
            Err(RecvTimeoutError::Disconnected) => Err(SubmitError::Stopped.into()),
        }
    }

    /// A further connection for queries.
    ///
    /// # Errors
    /// The database could not be opened.
    pub fn reader(&self) -> Result<Reader, ReadError> {
        reader(&self.paths)
    }

    /// Commands accepted and not yet stored.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.queue.depth()
    }

    /// The last position accepted, or the last of the journal before the first submit.
    #[must_use]
    pub fn last_submitted(&self) -> Seq {
        self.queue.last()
    }

    /// Stores and syncs what is queued, copies the log into the database, ends the thread.
    ///
    /// # Errors
    /// It took longer than `limit`, something could not be stored, or the thread had died.
    pub fn close(mut self, limit: Duration) -> Result<(), CloseError> {
        self.queue.close();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let left = match ended.recv_timeout(limit) {
            Ok(left) => left,
            Err(RecvTimeoutError::Timeout) => {
                // A disk that hangs cannot be interrupted; the thread goes on and ends by itself or with the process.
                self.thread = None;
                return Err(CloseError::TimedOut(limit));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(CloseError::Died),
        };
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(CloseError::Died),
            Some(Ok(())) | None if left > 0 => Err(CloseError::NotStored(left)),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the journal's writer died");
        }
    }
}

fn within(what: &'static str, bytes: usize, limit: usize) -> Result<(), SubmitError> {
    if bytes > limit { Err(SubmitError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

/// Takes the positions up to `through`; what is behind waits with the entries around it.
fn take_through(ascending: &mut Vec<Seq>, through: Seq) -> Vec<Seq> {
    let rest = ascending.split_off(ascending.partition_point(|seq| *seq <= through));
    std::mem::replace(ascending, rest)
}

/// Lets submitters know that nobody listens any more, also after a panic.
struct StopOnExit<'q> {
    queue: &'q Queue,
}

impl Drop for StopOnExit<'_> {
    fn drop(&mut self) {
        self.queue.stop();
    }
}

/// The thread's body; gives the number of commands that could not be stored.
fn run(
    paths: &Paths,
    mut connection: Connection,
    extent: Extent,
    limits: Limits,
    queue: &Queue,
    report: &dyn Fn(Committed),
) -> usize {
    let frames = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&frames);
    let hooked = connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
        counted.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }));
    let left = match hooked {
        Ok(()) => write_until_closed(paths, &connection, &frames, extent, limits, queue, report),
        Err(error) => Err(error.into()),
    };
    let left = left.unwrap_or_else(|error| {
        tracing::error!(%error, "the journal's writer could not start");
        queue.depth()
    });
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "the journal was not closed cleanly");
    }
    left
}

fn write_until_closed(
    paths: &Paths,
    connection: &Connection,
    frames: &AtomicU32,
    extent: Extent,
    limits: Limits,
    queue: &Queue,
    report: &dyn Fn(Committed),
) -> Result<usize, DatabaseError> {
    let writer = Writer {
        paths,
        connection,
        statements: Statements::prepare(connection)?,
        log: LogSync::new(&Paths::log_of(&paths.database)),
        frames,
        limits,
        queue,
        report,
        stored: extent.stored(),
        reported: extent.stored(),
        first: extent.first,
        trim_through: None,
        extent,
        backlog: VecDeque::new(),
        batch_commands: BATCH_COMMANDS_MAX,
        unsynced_since: None,
        urgent: None,
        flushes: Vec::new(),
        duplicates: Vec::new(),
        rejected: Vec::new(),
        retry: None,
        failures: 0,
    };
    Ok(writer.run())
}

struct Writer<'a> {
    paths: &'a Paths,
    connection: &'a Connection,
    statements: Statements<'a>,
    log: LogSync,
    /// Frames in the log after the last commit.
    frames: &'a AtomicU32,
    limits: Limits,
    queue: &'a Queue,
    report: &'a dyn Fn(Committed),
    extent: Extent,
    /// Everything up to here is committed, or was a duplicate.
    stored: Seq,
    reported: Seq,
    /// The first position that may have a row.
    first: Option<Seq>,
    trim_through: Option<Seq>,
    /// Taken from the queue, not stored.
    backlog: VecDeque<Command>,
    /// Normally the limit; one command at a time after a failure that may lie in a command itself.
    batch_commands: usize,
    /// When the first commit that is not synced was made.
    unsynced_since: Option<Instant>,
    /// The first entry that is stored and must be synced before it is reported.
    urgent: Option<Seq>,
    flushes: Vec<SyncSender<()>>,
    duplicates: Vec<Seq>,
    rejected: Vec<Seq>,
    retry: Option<Retry>,
    failures: u64,
}

#[derive(Debug, Clone, Copy)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl Writer<'_> {
    fn run(mut self) -> usize {
        loop {
            let arrivals = self.queue.take(self.wake_at());
            let arrived = !arrivals.commands.is_empty();
            self.backlog.extend(arrivals.commands);
            let due = self.retry.is_none_or(|r| arrived || arrivals.closing || r.at <= Instant::now());
            if due && !self.backlog.is_empty() {
                self.store_batch();
            }
            if due && (self.urgent.is_some() || !self.flushes.is_empty() || self.sync_is_due()) {
                self.sync();
            }
            self.checkpoint();
            self.trim();
            if arrivals.closing && (self.backlog.is_empty() || self.retry.is_some()) {
                return self.finish();
            }
        }
    }

    /// When to wake without an arrival; never while everything is stored, synced and trimmed.
    fn wake_at(&self) -> Option<Instant> {
        if let Some(retry) = self.retry {
            return Some(retry.at);
        }
        if !self.backlog.is_empty() || self.trim_through.is_some() {
            return Some(Instant::now());
        }
        self.unsynced_since.map(|since| since + SYNC_WITHIN)
    }

    fn sync_is_due(&self) -> bool {
        self.unsynced_since.is_some_and(|since| since.elapsed() >= SYNC_WITHIN)
    }

    /// Commits one batch from the front of the backlog and reports what needs no sync.
    fn store_batch(&mut self) {
        let count = self.batch_len();
        let batch = &self.backlog.make_contiguous()[..count];
        match self.statements.apply(batch, self.stored) {
            Ok(applied) => {
                self.queue.done(batch, Outcome::Stored);
                drop(self.backlog.drain(..count));
                self.batch_commands = BATCH_COMMANDS_MAX;
                self.succeeded();
                self.took(applied);
            }
            Err(error) if error.kind() == FailureKind::Other => self.isolate(&error, count),
            Err(error) => self.failed(error.kind(), error.to_string()),
        }
    }

    fn batch_len(&self) -> usize {
        let mut bytes = 0usize;
        let fitting = self.backlog.iter().take(self.batch_commands).take_while(|command| {
            bytes = bytes.saturating_add(command.weight());
            bytes <= BATCH_BYTES_MAX
        });
        fitting.count().max(1).min(self.backlog.len())
    }

    fn took(&mut self, applied: Applied) {
        if applied.wrote && self.unsynced_since.is_none() {
            self.unsynced_since = Some(Instant::now());
        }
        if let Some(last) = applied.last {
            self.stored = last;
            self.extent.last = Some(last);
            self.first = self.first.or(Some(last));
        }
        self.duplicates.extend(applied.duplicates);
        self.flushes.extend(applied.flushes);
        self.urgent = self.urgent.or(applied.first_urgent);
        if applied.snapshot.is_some() {
            self.snapshot_stored();
        }
        self.report_through(self.urgent.map_or(self.stored, Seq::before), None);
    }

    fn snapshot_stored(&mut self) {
        let extent = Extent::read(self.connection)
            .and_then(|extent| Ok((extent.trim_through(self.connection, &self.limits)?, extent)));
        match extent {
            Ok((through, extent)) => {
                self.trim_through = through.filter(|t| extent.first.is_some_and(|first| first <= *t));
                self.first = extent.first;
                self.extent = extent;
            }
            // The next snapshot asks again; nothing is lost by keeping rows.
            Err(error) => self.note_damage(error.kind(), &error.to_string()),
        }
    }

    /// Finds the command that the database refuses for its own sake, so that it does not block the rest for ever.
    fn isolate(&mut self, error: &DatabaseError, count: usize) {
        if count > 1 {
            self.batch_commands = 1;
            return;
        }
        self.batch_commands = BATCH_COMMANDS_MAX;
        let Some(refused) = self.backlog.pop_front() else { return };
        self.queue.done(std::slice::from_ref(&refused), Outcome::Refused);
        tracing::error!(%error, ?refused, "the journal refused a command");
        if let Command::Append { seq, .. } = refused {
            self.stored = seq;
            self.rejected.push(seq);
            self.report_through(self.urgent.map_or(self.stored, Seq::before), None);
        }
    }

    fn sync(&mut self) {
        if self.unsynced_since.is_some()
            && let Err(SyncFailure { kind, message }) = self.log.sync(self.connection)
        {
            return self.failed(kind, message);
        }
        self.synced();
    }

    fn synced(&mut self) {
        self.unsynced_since = None;
        if self.backlog.is_empty() {
            self.succeeded();
        }
        for done in self.flushes.drain(..) {
            // Who asked may have given up.
            let _ = done.try_send(());
        }
        if self.urgent.take().is_some() {
            self.report_through(self.stored, None);
        }
    }

    fn report_through(&mut self, through: Seq, failed: Option<Failure>) {
        let through = through.max(self.reported);
        if through == self.reported && failed.is_none() {
            return;
        }
        self.reported = through;
        let snapshot = self.extent.snapshots.first().copied().unwrap_or_default();
        (self.report)(Committed {
            through,
            duplicates: take_through(&mut self.duplicates, through),
            rejected: take_through(&mut self.rejected, through),
            since_snapshot: self.stored.0.saturating_sub(snapshot.0),
            failed,
        });
    }

    fn failed(&mut self, kind: FailureKind, message: String) {
        self.failures = self.failures.saturating_add(1);
        if self.retry.is_none() {
            tracing::warn!(?kind, message, "the journal cannot be written; entries wait");
        }
        self.note_damage(kind, &message);
        let now = Instant::now();
        // An attempt that an arrival brought forward does not lengthen the pause.
        if self.retry.is_none_or(|r| r.at <= now) {
            let pause = self.retry.map_or(RETRY_FIRST, |r| (r.pause * 2).min(RETRY_LONGEST));
            self.retry = Some(Retry { at: now + pause, pause });
        }
        let last_waiting = self.backlog.iter().rev().find_map(|command| match command {
            Command::Append { seq, .. } => Some(*seq),
            Command::SaveSnapshot(_)
            | Command::SaveCursor(_)
            | Command::DeleteCursors { .. }
            | Command::PutFact { .. }
            | Command::Flush(_) => None,
        });
        let last = last_waiting.unwrap_or(self.stored);
        let first = self.reported.next();
        let failure = Failure {
            kind,
            message,
            not_stored: (first <= last).then_some(first..=last),
            failures: self.failures,
        };
        self.report_through(self.reported, Some(failure));
    }

    fn succeeded(&mut self) {
        if self.retry.take().is_some() {
            tracing::info!(failures = self.failures, "the journal can be written again");
        }
    }

    fn note_damage(&self, kind: FailureKind, message: &str) {
        if kind == FailureKind::Corrupt {
            tracing::error!(message, "the journal is damaged; it will be salvaged at the next start");
            self.paths.mark_suspect();
        }
    }

    /// Copies the log into the database when it is long. After reporting, so that nobody waits for it.
    fn checkpoint(&mut self) {
        let frames = self.frames.load(Ordering::Relaxed);
        if frames < CHECKPOINT_FRAMES || self.retry.is_some() {
            return;
        }
        let how = if frames < CHECKPOINT_FRAMES_LATE { Checkpoint::Passive } else { Checkpoint::Full };
        match checkpoint(self.connection, how) {
            Ok(reached) => {
                // Not again before the next commit says how long the log is.
                self.frames.store(0, Ordering::Relaxed);
                if reached.complete {
                    self.synced();
                }
            }
            Err(SyncFailure { kind, message }) => self.failed(kind, message),
        }
    }

    /// Deletes one chunk of rows that are due.
    fn trim(&mut self) {
        let (Some(through), Some(first), None) = (self.trim_through, self.first, self.retry) else { return };
        match self.statements.trim(first, through) {
            Ok(Trimmed { remains, deliveries }) => {
                self.queue.forget(&deliveries);
                self.first = Some(remains);
                if remains > through {
                    self.trim_through = None;
                }
                self.unsynced_since = self.unsynced_since.or_else(|| Some(Instant::now()));
            }
            Err(error) => {
                // The next snapshot asks again.
                self.trim_through = None;
                self.note_damage(error.kind(), &error.to_string());
            }
        }
    }

    fn finish(mut self) -> usize {
        let left = self.backlog.len();
        match checkpoint(self.connection, Checkpoint::Truncate) {
            Ok(reached) if reached.complete => self.synced(),
            // A reader still looks: the log stays and is taken over by the next open, synced.
            Ok(_) => self.sync(),
            Err(SyncFailure { kind, message }) => {
                self.note_damage(kind, &message);
                tracing::warn!(?kind, message, "the journal's log stays behind");
            }
        }
        left
    }
}
