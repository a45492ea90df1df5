//! The one place where things happen in order: an event becomes inputs of the core, an input becomes a row, a stored row's
//! effects are carried out, and only then is the sender told.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Semaphore, mpsc, oneshot, watch},
    task::JoinSet,
    time::Instant,
};
use watchkeeper_agents::Parsed;
use watchkeeper_api::Failure;
use watchkeeper_core::{
    AgentKind, Core, DeadlineKind, DeliveryId, Effect, Input, InputBody, Now, Settings, Verdict,
    view::ShownState,
};
use watchkeeper_frame::{Place, Refusal};
use watchkeeper_os::{clock, process::exit_watch::ExitWatch};
use watchkeeper_store::{Committed, Seq};

use crate::{
    api_connection,
    config_watch::Configuration,
    counters::Counters,
    declared_files::DeclaredFiles,
    door::{Caller, DoorError, Stream},
    event::{Answer, Event, HookReply, Pulse},
    exceptions,
    exits::Exits,
    follow::Follower,
    hook_connection::{self, Readers},
    instance::InstanceLock,
    journal::{EventReader, Handled, Journal, SNAPSHOT_EVERY_ROWS},
    keep_awake::Wish,
    sources::{Alarms, Sources},
    succession::Successor,
    transcripts::Unread,
};

/// Hook connections at once; a further one is closed, and its hook uses the spool.
pub(crate) const HOOK_CONNECTIONS_MAX: usize = 4096;
/// Clients of the local interface at once; a further one is closed.
pub(crate) const API_CONNECTIONS_MAX: usize = 256;
/// Deadlines handled in one turn; more wait for the next, so that a fault in one cannot stop the rest.
const DEADLINES_A_TURN: usize = 1000;
/// How often transcripts of sessions at work are looked at although the kernel said nothing (network and overlay file systems
/// lose notices). Not armed while every session is idle, unless a folder is without notices: then everything is looked at,
/// whatever the sessions do.
const RECONCILE_EVERY: Duration = Duration::from_secs(15);
/// A file that vanished is looked for once more after so long: an editor that saves has its new one there by then.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(1);

/// A row on its way to the disk, with what follows when it is there. Bounded by the journal's queue, and past it by what the
/// machine itself reports.
struct Pending {
    seq: Seq,
    /// What the row says, should the state have to be made anew before the disk has it.
    input: Input,
    effects: Vec<Effect>,
    acks: Vec<Ack>,
    /// Carried out already, because the disk failed: the machine must be kept awake all the same.
    done: bool,
}

/// An answer that is made when its row is durable.
pub(crate) type LateAnswer = Box<dyn FnOnce(&Dispatcher) -> Result<Answer, Failure> + Send>;

/// Who waits for a row to be durable.
pub(crate) enum Ack {
    Hook {
        delivery: DeliveryId,
        reply: mpsc::Sender<HookReply>,
    },
    Api {
        reply: oneshot::Sender<Result<Answer, Failure>>,
        answer: LateAnswer,
    },
    /// A spooled event; its file goes when the row is there.
    Spooled {
        path: PathBuf,
    },
    /// Whoever goes on when the row is stored, and also when it cannot be.
    Stored(oneshot::Sender<()>),
}

impl std::fmt::Debug for Ack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hook { .. } => "Hook",
            Self::Api { .. } => "Api",
            Self::Spooled { .. } => "Spooled",
            Self::Stored(_) => "Stored",
        })
    }
}

/// A hook that was told to wait.
#[derive(Debug)]
pub(crate) struct HeldReply {
    pub(crate) agent: AgentKind,
    pub(crate) event: String,
    pub(crate) reply: mpsc::Sender<HookReply>,
    /// The core decided that it waits.
    pub(crate) waits: bool,
}

/// What the dispatcher is made of; put together by `boot`.
pub(crate) struct Parts {
    pub(crate) place: Place,
    pub(crate) private: bool,
    pub(crate) core: Core,
    pub(crate) journal: Journal,
    pub(crate) reader: EventReader,
    pub(crate) follower: Follower,
    pub(crate) exits: Arc<ExitWatch>,
    pub(crate) wish: watch::Sender<Wish>,
    pub(crate) configuration: Configuration,
    pub(crate) declared: DeclaredFiles,
    pub(crate) events: mpsc::Sender<Event>,
    /// The process can become another one that takes over.
    pub(crate) succeeds: bool,
    pub(crate) lock: InstanceLock,
}

pub(crate) struct Dispatcher {
    pub(crate) place: Place,
    pub(crate) private: bool,
    pub(crate) core: Core,
    pub(crate) journal: Journal,
    pub(crate) reader: EventReader,
    pub(crate) follower: Follower,
    pub(crate) exits: Arc<ExitWatch>,
    wish: watch::Sender<Wish>,
    pub(crate) configuration: Configuration,
    pub(crate) declared: DeclaredFiles,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) wall: crate::wall_clock::WallClock,
    pub(crate) counters: Counters,
    pub(crate) unknown: Counters,
    pub(crate) malformed: Counters,
    /// Per agent: events taken, and when the last came.
    pub(crate) heard: BTreeMap<AgentKind, Now>,
    pub(crate) held: BTreeMap<DeliveryId, HeldReply>,
    /// Spooled events that were taken and whose files still stand, since their rows are not stored yet. Bounded by the
    /// spool itself.
    pub(crate) spooled: BTreeSet<PathBuf>,
    /// Sessions whose transcripts were looked for by their names.
    pub(crate) sought: BTreeSet<watchkeeper_core::SessionKey>,
    /// When half-written files were looked for last.
    pub(crate) spool_swept: Option<std::time::Instant>,
    pub(crate) started: Now,
    pub(crate) durable: Seq,
    pub(crate) revision: u64,
    pulse: watch::Sender<Pulse>,
    pending: VecDeque<Pending>,
    hook_room: Arc<Semaphore>,
    api_room: Arc<Semaphore>,
    observers: u32,
    next_reconcile: Option<Instant>,
    pub(crate) unread: Unread,
    /// Rows that can never be stored: what brought them must not be told that they were.
    pub(crate) rows_lost: u64,
    pub(crate) exited: Exits,
    pub(crate) readers: Readers,
    stopping: Option<String>,
    pub(crate) succeeds: bool,
    /// Who follows this daemon, when that is why it stops.
    pub(crate) successor: Option<Successor>,
    /// The lock lies in a file that has lost its name, and another process holds the new one's.
    pub(crate) lock_is_lost: bool,
    /// Given up last.
    pub(crate) lock: InstanceLock,
}

impl Dispatcher {
    pub(crate) fn new(parts: Parts) -> Self {
        let durable = parts.journal.last();
        Self {
            place: parts.place,
            private: parts.private,
            core: parts.core,
            journal: parts.journal,
            reader: parts.reader,
            follower: parts.follower,
            exits: parts.exits,
            wish: parts.wish,
            configuration: parts.configuration,
            declared: parts.declared,
            events: parts.events,
            wall: crate::wall_clock::WallClock::default(),
            counters: Counters::default(),
            unknown: Counters::default(),
            malformed: Counters::default(),
            heard: BTreeMap::new(),
            held: BTreeMap::new(),
            spooled: BTreeSet::new(),
            spool_swept: None,
            sought: BTreeSet::new(),
            started: clock::now(),
            durable,
            revision: 0,
            pulse: watch::channel(Pulse { revision: 0, seq: durable.0 }).0,
            pending: VecDeque::new(),
            hook_room: Arc::new(Semaphore::new(HOOK_CONNECTIONS_MAX)),
            api_room: Arc::new(Semaphore::new(API_CONNECTIONS_MAX)),
            observers: 0,
            next_reconcile: None,
            unread: Unread::default(),
            rows_lost: 0,
            exited: Exits::default(),
            readers: Readers::default(),
            stopping: None,
            succeeds: parts.succeeds,
            successor: None,
            lock_is_lost: false,
            lock: parts.lock,
        }
    }

    /// Runs until something asks the daemon to stop; returns why.
    pub(crate) async fn run(&mut self, sources: &mut Sources) -> String {
        loop {
            let event = sources.next(self.alarms()).await;
            self.handle(event, sources);
            self.announce();
            if let Some(why) = self.stopping.take() {
                return why;
            }
        }
    }

    pub(crate) fn handle(&mut self, event: Event, sources: &mut Sources) {
        match event {
            Event::HookKnocked(knock) => self.hook_knocked(knock, &mut sources.tasks),
            Event::ApiKnocked(knock) => self.api_knocked(knock, &mut sources.tasks),
            Event::Hook(call) => self.take_hook(*call),
            Event::HookGone { delivery, waiting } => {
                if let Some(reply) = waiting.upgrade() {
                    self.hook_gone(delivery, &reply);
                }
            }
            Event::HooksHeard { number } => self.hooks_heard(number),
            Event::HookUnusable { why } => self.counters.add(why),
            Event::Api(call) => self.answer(*call),
            Event::ObserverLeft => self.observe(false),
            Event::Committed(committed) => self.committed(&committed),
            Event::Observed(body) => _ = self.apply(body),
            Event::ActorFailed { unsaid } => {
                self.counters.add("task.panicked");
                for body in unsaid {
                    _ = self.apply(body);
                }
            }
            Event::SleepBegan { stored } => {
                _ = self.apply(InputBody::SleepBegan);
                self.acknowledge(Ack::Stored(stored));
            }
            Event::ProcessExited(process) => self.process_exited(process, sources),
            Event::FilesTouched(paths) => self.files_touched(&paths, sources),
            Event::DeadlineReached => self.deadlines_reached(),
            Event::ReconcileDue => self.reconcile(sources),
            Event::Signal(signal) => self.stop(format!("signal {signal:?}").to_lowercase()),
            Event::TaskEnded { result } => {
                if let Err(error) = result
                    && error.is_panic()
                {
                    // Its backtrace was written by the panic hook.
                    self.counters.add("task.panicked");
                }
            }
        }
    }

    fn alarms(&self) -> Alarms {
        let now = clock::now();
        let until = |mono: watchkeeper_core::Mono| Instant::now() + mono.since(now.mono);
        Alarms {
            deadline: self.core.next_deadline().map(|(mono, _)| until(mono)),
            reconcile: self.next_look(),
        }
    }

    /// When something is to be read although nobody said so.
    fn next_look(&self) -> Option<Instant> {
        let reading = (!self.unread.is_empty() && !self.journal.is_behind()).then(Instant::now);
        reading.into_iter().chain(self.next_settling()).chain(self.next_reconcile).min()
    }

    /// Reads the clocks; says aloud when the wall clock was stepped.
    pub(crate) fn now(&mut self) -> Now {
        let now = clock::now();
        if let Some(step_ms) = self.wall.observe(&now) {
            tracing::warn!(step_ms, "the wall clock was set; nothing is ordered across this step");
            self.counters.add("clock.stepped");
        }
        now
    }

    /// One input: the core decides, the row is queued, the effects wait for it. `None`: it changed nothing and never will.
    pub(crate) fn apply(&mut self, body: InputBody) -> Option<Seq> {
        Some(self.apply_judged(body)?.0)
    }

    /// As `apply`, with what the core made of it.
    pub(crate) fn apply_judged(&mut self, body: InputBody) -> Option<(Seq, Verdict)> {
        let input = Input { now: self.now(), body };
        let handled = catch_unwind(AssertUnwindSafe(|| self.core.handle(&input)));
        let Ok(outcome) = handled else {
            self.counters.add("core.panicked");
            self.rebuild();
            return None;
        };
        let verdict = match outcome.verdict {
            Verdict::Applied => None,
            Verdict::Recorded => Some("recorded"),
            Verdict::Stale => Some("stale"),
            Verdict::Duplicate => Some("duplicate"),
            Verdict::Refused => Some("refused"),
        };
        if let Some(verdict) = verdict {
            self.counters.add(&format!("input.{verdict}"));
        }
        let row = Handled {
            input: &input,
            resolved: outcome.resolved.as_ref(),
            verdict,
            effects: &outcome.effects,
        };
        let seq = match self.journal.append(row) {
            Ok(seq) => seq,
            Err(error) => {
                exceptions::record_error("journal.append", &error);
                self.counters.add("journal.refused");
                self.rows_lost += 1;
                if error.is_end_of_writer() {
                    self.stop("the journal's writer is gone".to_owned());
                }
                self.carry_out(outcome.effects);
                return None;
            }
        };
        self.revision += 1;
        let effects = outcome.effects;
        self.pending.push_back(Pending { seq, input, effects, acks: Vec::new(), done: false });
        Some((seq, outcome.verdict))
    }

    /// Tells `ack` when everything applied so far is durable.
    pub(crate) fn acknowledge(&mut self, ack: Ack) {
        match self.pending.back_mut() {
            Some(last) => last.acks.push(ack),
            None => self.settle(ack),
        }
    }

    fn committed(&mut self, committed: &Committed) {
        self.durable = self.durable.max(committed.through);
        while self.pending.front().is_some_and(|p| p.seq <= committed.through) {
            let Some(pending) = self.pending.pop_front() else { break };
            if !pending.done {
                self.carry_out(pending.effects);
            }
            let is_stored = !committed.rejected.contains(&pending.seq);
            for ack in pending.acks {
                if is_stored {
                    self.settle(ack);
                } else {
                    self.refuse(ack, "the database refused the row");
                }
            }
        }
        if !committed.rejected.is_empty() {
            self.counters.add_many("journal.rejected", committed.rejected.len() as u64);
        }
        if let Some(failure) = &committed.failed {
            self.counters.add("journal.failed");
            self.storage_failed(failure);
        }
        if !committed.duplicates.is_empty() {
            self.counters.add_many("journal.duplicates", committed.duplicates.len() as u64);
        }
        let was_behind = self.journal.is_behind();
        if self.journal.flush_overflow().is_err() {
            self.stop("the journal's writer is gone".to_owned());
        }
        if was_behind && !self.journal.is_behind() {
            _ = self.drain_spool();
            self.settle_exits();
        }
        if committed.since_snapshot >= SNAPSHOT_EVERY_ROWS && self.pending.is_empty() {
            self.journal.save_snapshot(&self.core);
        }
    }

    /// The disk takes nothing: hooks keep their events in the spool, but what the core decided is done all the same.
    fn storage_failed(&mut self, failure: &watchkeeper_store::Failure) {
        let Some(range) = &failure.not_stored else { return };
        let mut effects = Vec::new();
        let mut refused = Vec::new();
        for pending in self.pending.iter_mut().filter(|p| range.contains(&p.seq)) {
            if !pending.done {
                pending.done = true;
                effects.append(&mut pending.effects.clone());
            }
            refused.append(&mut pending.acks);
        }
        // First, so that a hook that is refused is known to be held.
        self.carry_out(effects);
        for ack in refused {
            self.refuse(ack, &failure.message);
        }
    }

    /// Tells whoever waits for a row that it is not stored: a hook keeps its event, a spooled one stays where it is.
    fn refuse(&mut self, ack: Ack, why: &str) {
        match ack {
            Ack::Hook { delivery, reply } => self.refuse_hook(delivery, &reply),
            Ack::Api { reply, .. } => {
                let failure = Failure::new(
                    watchkeeper_api::ErrorCode::Internal,
                    format!("the journal cannot be written: {why}"),
                );
                _ = reply.send(Err(failure)); // the caller may have left
            }
            Ack::Spooled { path } => _ = self.spooled.remove(&path), // the file stays
            Ack::Stored(waiting) => _ = waiting.send(()),            // it may wait no longer
        }
    }

    /// What this hook brought is not stored: it keeps its event, and nobody waits for an answer any more.
    pub(crate) fn refuse_hook(&mut self, delivery: DeliveryId, reply: &mpsc::Sender<HookReply>) {
        _ = reply.try_send(HookReply::Refused(Refusal::Storage)); // it may have left
        self.hook_gone(delivery, reply);
    }

    /// A hook is there no more, whom somebody else with the same delivery may outlive.
    fn hook_gone(&mut self, delivery: DeliveryId, reply: &mpsc::Sender<HookReply>) {
        if !self.held.get(&delivery).is_some_and(|held| held.reply.same_channel(reply)) {
            return;
        }
        self.held.remove(&delivery);
        _ = self.apply(InputBody::HookGone { delivery });
    }

    fn settle(&mut self, ack: Ack) {
        match ack {
            Ack::Hook { delivery, reply } => {
                // Somebody else may have sent the same before and wait for the answer.
                let own = self.held.get(&delivery).filter(|held| held.reply.same_channel(&reply));
                // What it brought may be several rows, and the one that holds it need not be the last.
                if own.is_some_and(|held| held.waits) {
                    return;
                }
                if own.is_some() {
                    self.held.remove(&delivery);
                }
                _ = reply.try_send(HookReply::Taken); // it may have left, or have its answer already
            }
            Ack::Api { reply, answer } => _ = reply.send(answer(self)), // the caller may have left
            Ack::Stored(waiting) => _ = waiting.send(()),               // it may wait no longer
            Ack::Spooled { path } => {
                self.spooled.remove(&path);
                if let Err(error) = watchkeeper_frame::spool::Spool::remove(&path) {
                    tracing::warn!(%error, "a spooled event stays; it is known by its delivery and counts once");
                }
            }
        }
    }

    fn announce(&mut self) {
        let pulse = Pulse { revision: self.revision, seq: self.durable.0 };
        self.pulse.send_if_modified(|known| {
            let changed = *known != pulse;
            *known = pulse;
            changed
        });
        let is_needed = self.core.is_any_active()
            || self.follower.is_blind()
            || self.lock_is_lost
            || self.declared.is_settling();
        let after = if self.declared.is_settling() { SECOND_LOOK_AFTER } else { RECONCILE_EVERY };
        let due = Instant::now() + after;
        self.next_reconcile = is_needed.then(|| self.next_reconcile.map_or(due, |known| known.min(due)));
    }

    pub(crate) fn hook_knocked(
        &mut self,
        knock: Result<(Stream, Caller), DoorError>,
        tasks: &mut JoinSet<()>,
    ) {
        let Some((stream, caller)) = self.let_in(knock, "hook") else { return };
        let Ok(permit) = Arc::clone(&self.hook_room).try_acquire_owned() else {
            self.counters.add("hook.no_room");
            return;
        };
        let (events, reader) = (self.events.clone(), self.readers.begin());
        tasks.spawn(async move {
            hook_connection::serve(stream, caller, events, reader).await;
            drop(permit);
        });
    }

    fn api_knocked(&mut self, knock: Result<(Stream, Caller), DoorError>, tasks: &mut JoinSet<()>) {
        let Some((stream, caller)) = self.let_in(knock, "api") else { return };
        let Ok(permit) = Arc::clone(&self.api_room).try_acquire_owned() else {
            self.counters.add("api.no_room");
            return;
        };
        let (events, pulse, reader) = (self.events.clone(), self.pulse.subscribe(), self.reader.clone());
        tasks.spawn(async move {
            api_connection::serve(stream, caller, events, pulse, reader).await;
            drop(permit);
        });
    }

    fn let_in(&mut self, knock: Result<(Stream, Caller), DoorError>, door: &str) -> Option<(Stream, Caller)> {
        match knock {
            Ok(visitor) => Some(visitor),
            Err(error) => {
                let what = match &error {
                    DoorError::Stranger { .. } => "stranger",
                    DoorError::Accept { .. } | DoorError::Listen { .. } => "accept_failed",
                };
                self.counters.add(&format!("{door}.{what}"));
                tracing::warn!(%error, "a caller was not let in");
                None
            }
        }
    }

    pub(crate) fn observe(&mut self, comes: bool) {
        self.observers =
            if comes { self.observers.saturating_add(1) } else { self.observers.saturating_sub(1) };
        _ = self.apply(InputBody::Observers { count: self.observers });
    }

    fn files_touched(&mut self, paths: &BTreeSet<PathBuf>, sources: &mut Sources) {
        let began = Instant::now();
        self.follower.watch_again(paths);
        self.look_at_files(paths, sources);
        sources.touched.looked_for(began.elapsed());
    }

    /// Looks at whatever is among these paths; at everything for an empty set.
    fn look_at_files(&mut self, paths: &BTreeSet<PathBuf>, sources: &mut Sources) {
        let all = paths.is_empty();
        let spool_is_touched = all || paths.iter().any(|p| p.starts_with(self.place.spool()));
        let is_run = |p: &PathBuf| p.starts_with(&self.place.run) || self.place.run.starts_with(p);
        // With the spool, too: it may be another's by now.
        if spool_is_touched || paths.iter().any(is_run) {
            self.mend_run_folder(sources);
        }
        if self.is_stopping() {
            return;
        }
        if all || paths.iter().any(|p| self.place.config.starts_with(p) || p.starts_with(&self.place.config))
        {
            self.reload_configuration();
        }
        // Behind, the spool is the place where events wait; it is drained when the journal has caught up.
        if spool_is_touched && !self.lock_is_lost && !self.journal.is_behind() {
            _ = self.drain_spool();
        }
        for stated in self.follower.state_files_at(paths) {
            self.agent_stated(stated);
        }
        self.counters.add_many("agent_state.unread", self.follower.take_unread_state_files());
        for key in self.follower.sessions_at(paths) {
            self.look_at(&key);
        }
    }

    pub(crate) fn reload_configuration(&mut self) {
        if let Some(settings) = self.configuration.reload() {
            self.change_settings(settings);
        }
        // Watched before it is read, so that nothing is missed: the folder may have come into being only now.
        self.follower.keep_watching(self.declared.folder());
        if self.declared.reload() {
            self.follower.use_adapters(self.declared.adapters().clone());
            // What came before its adapter waits there.
            if !self.lock_is_lost && !self.journal.is_behind() {
                _ = self.drain_spool();
            }
        }
        self.revision += 1;
    }

    pub(crate) fn change_settings(&mut self, settings: Settings) {
        _ = self.apply(InputBody::SettingsChanged { settings: Box::new(settings) });
    }

    fn deadlines_reached(&mut self) {
        for _ in 0..DEADLINES_A_TURN {
            let now = clock::now();
            match self.core.next_deadline() {
                Some((mono, deadline)) if mono <= now.mono => {
                    if deadline == DeadlineKind::HoldVerify {
                        self.wish.send_modify(|wish| wish.verify += 1);
                    }
                    _ = self.apply(InputBody::DeadlineReached { deadline });
                }
                Some(_) | None => return,
            }
        }
        self.counters.add("deadline.flood");
    }

    fn reconcile(&mut self, sources: &mut Sources) {
        self.settle_exits();
        self.read_on();
        if self.next_reconcile.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.next_reconcile = None;
        self.mend_run_folder(sources);
        if self.follower.is_blind() {
            self.follower.retry();
            return self.look_at_files(&BTreeSet::new(), sources);
        }
        if self.declared.is_settling() {
            self.reload_configuration();
        }
        for key in self.follower.all_sessions() {
            let at_work = self
                .core
                .session(&key)
                .is_some_and(|s| !matches!(s.state, ShownState::Idle | ShownState::Ended));
            if at_work {
                self.look_at(&key);
            }
        }
    }

    pub(crate) fn count(&mut self, agent: AgentKind, parsed: &Parsed) {
        self.counters.add_many("adapter.panicked", parsed.panicked.into());
        for name in &parsed.unknown {
            self.unknown.add(&format!("{agent}.{name}"));
        }
        if let Some(why) = &parsed.malformed {
            self.malformed.add(agent.name());
            let count = self.malformed.get(agent.name());
            // The first, and ever fewer of many: a fault that lasts must not fill the log.
            if count.is_power_of_two() {
                tracing::info!(%agent, why, count, "not what this agent sends");
            }
        }
    }

    pub(crate) fn wish(&self, wanted: bool) {
        self.wish.send_if_modified(|wish| {
            let changed = wish.wanted != wanted;
            wish.wanted = wanted;
            changed
        });
    }

    /// Says the wish again, as the core has it, even if it is none: after a hand-over that lets go of the rest.
    pub(crate) fn wish_as_decided(&self) {
        let wanted = self.core.machine().wanted;
        self.wish.send_modify(|wish| {
            wish.wanted = wanted;
            wish.verify += 1;
        });
    }

    pub(crate) const fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    pub(crate) fn stop(&mut self, why: String) {
        self.stopping.get_or_insert(why);
    }

    /// The end: hooks that wait are released, the hold is let go with the wish, the state is written down.
    pub(crate) fn into_journal(mut self) -> (Journal, InstanceLock) {
        for pending in std::mem::take(&mut self.pending) {
            for ack in pending.acks {
                if let Ack::Hook { delivery, reply } = ack {
                    // Not known to be durable: the hook keeps its copy, which counts once.
                    self.held.remove(&delivery);
                    _ = reply.try_send(HookReply::Refused(Refusal::ShuttingDown));
                }
            }
        }
        for (_, held) in std::mem::take(&mut self.held) {
            _ = held.reply.try_send(HookReply::Taken); // it may have left
        }
        // The next life follows them no more; what is left of them is not read.
        for key in self.unread.take_leaving() {
            self.journal.delete_cursors(&key);
            self.follower.unfollow(&key);
        }
        if !self.journal.is_behind() {
            for cursor in self.follower.cursors_behind() {
                self.journal.save_cursor(cursor);
            }
        }
        self.journal.save_snapshot(&self.core);
        (self.journal, self.lock)
    }

    /// After a panic in the core: its state is what the journal says and what is on its way there, without the input that
    /// caused it. Waits for nobody: the writer may be waiting for us.
    fn rebuild(&mut self) {
        let settings = self.configuration.settings().clone();
        let on_their_way: Vec<(Seq, &Input)> = self.pending.iter().map(|row| (row.seq, &row.input)).collect();
        // The snapshot of the start will not do: rows behind it may have been trimmed since.
        let snapshot = self.reader.snapshot();
        match crate::boot::fold(snapshot.as_ref(), &self.reader, &on_their_way, settings) {
            // Effects of what is on its way wait for its rows, as they did.
            Some(core) => self.core = core,
            None => {
                // Without a readable journal the state in memory is all there is; it may lack parts of one input.
                tracing::error!("the state could not be rebuilt");
            }
        }
    }
}

#[cfg(test)]
impl Dispatcher {
    /// The slow look is due.
    pub(crate) fn look_soon(&mut self) {
        self.announce();
        assert!(self.next_reconcile.is_some(), "nobody would look");
        self.next_reconcile = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests;
