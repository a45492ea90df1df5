//! What hooks, transcripts and state files say, on its way to the core.

use std::time::{Duration, Instant, SystemTime};

use watchkeeper_agents::{Adapter, Observation, StateFile, adapter::Line, hook_time};
use watchkeeper_core::{
    AgentKind, BootId, DeliveryId, InputBody, Now, ProcessRef, SessionKey, SignalBody, Wall,
    input::HeldHook,
    signal::{AgentProcess, Source},
    time::{Boot, Stamp},
    view::{SessionView, ShownState},
};
use watchkeeper_frame::spool::{Event as SpoolEvent, Spool, SpoolError, TEMPORARY_MAX_AGE};
use watchkeeper_frame::{Flags, Head, Refusal, Request};
use watchkeeper_os::{clock, process::identity};
use watchkeeper_store::Seq;

use crate::{
    delivery,
    dispatcher::{Ack, Dispatcher, HeldReply},
    event::{HookCall, HookReply},
    follow::{Growth, Stated},
    intake::{self, Sender},
    resolve, transcript_place, work_process,
};

/// Spooled events taken in one turn; the rest follows when these are durable.
pub(crate) const SPOOL_A_TURN: usize = 512;

/// Spooled events that are kept for agents whose files cannot be read; further ones are nobody's.
const NOT_YET_DECLARED_MAX: usize = 256;

/// Sessions remembered whose transcripts were looked for; then all are forgotten, which costs further looks.
const SOUGHT_MAX: usize = 4096;

/// What came of looking through the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    /// Everything that lay there was heard, but for what nobody can read.
    All,
    /// There is more than one turn takes.
    More,
    /// It cannot be told: the folder could not be listed, or the journal takes no rows.
    Failed,
}

/// How a frame came.
#[derive(Debug, Clone, Copy)]
enum Way<'a> {
    /// Its hook waits.
    Socket { caller: Option<u32>, reply: &'a tokio::sync::mpsc::Sender<HookReply> },
    /// Its hook has long gone, and wrote down who its ancestors were.
    Spool { ancestry: &'a [u8] },
}

impl Dispatcher {
    /// One hook that waits for its acknowledgement.
    pub(crate) fn take_hook(&mut self, call: HookCall) {
        let HookCall { request, caller, reply, .. } = call;
        if self.journal.is_behind() {
            self.counters.add("hook.overloaded");
            _ = reply.try_send(HookReply::Refused(Refusal::Overloaded)); // it may have left
            return;
        }
        let delivery = DeliveryId(request.head().delivery);
        if self.may_be_declared(&request) {
            self.counters.add("hook.not_yet_declared");
            self.refuse_hook(delivery, &reply);
            return;
        }
        self.counters.add("hook.taken");
        let lost_before = self.rows_lost;
        _ = self.take_request(&request, Way::Socket { caller: caller.pid, reply: &reply });
        if self.rows_lost > lost_before {
            // What it brought is in no journal: the hook keeps its event.
            self.refuse_hook(delivery, &reply);
        } else {
            // Also when it brought nothing: what made it known may still be on its way to the disk.
            self.acknowledge(Ack::Hook { delivery, reply });
        }
    }

    /// Takes what hooks left while nobody listened, in the order of their starts: at most `SPOOL_A_TURN`.
    pub(crate) fn drain_spool(&mut self) -> Drained {
        let spool = Spool::at(self.place.spool());
        self.sweep_spool(&spool);
        let listing = match spool.drain_order(clock::now().boot_id.0) {
            Ok(listing) => listing,
            Err(error) => {
                tracing::warn!(%error, "the spool cannot be listed");
                self.counters.add("spool.unreadable");
                return Drained::Failed;
            }
        };
        // What waits for its row is not read again: with a slow disk every new file would bring all the others along.
        let unseen: Vec<_> = listing.files.into_iter().filter(|path| !self.spooled.contains(path)).collect();
        // Beyond what one listing takes there may be anything.
        let mut drained = if listing.more { Drained::More } else { Drained::All };
        let (mut heard, mut kept) = (0, 0);
        for path in unseen {
            // Files that are left where they are do not count, or many of them would hide those behind.
            if heard >= SPOOL_A_TURN {
                drained = Drained::More;
                break;
            }
            match Spool::read(&path) {
                // Bounded: they are read again at every look.
                Ok(SpoolEvent { request, .. })
                    if kept < NOT_YET_DECLARED_MAX && self.may_be_declared(&request) =>
                {
                    kept += 1;
                }
                Ok(SpoolEvent { request, ancestry }) => {
                    self.spooled.insert(path.clone());
                    let lost_before = self.rows_lost;
                    let taken = self.take_request(&request, Way::Spool { ancestry: &ancestry });
                    if self.rows_lost > lost_before {
                        // What it brought is in no journal: the file stays.
                        drained = Drained::Failed;
                        break;
                    }
                    heard += 1;
                    self.counters.add(if taken.is_some() { "spool.taken" } else { "spool.known" });
                    self.acknowledge(Ack::Spooled { path });
                }
                // A later version's daemon will know it; what cannot be read now may be readable later.
                Err(error @ (SpoolError::Newer { .. } | SpoolError::Io { .. })) => {
                    self.counters.add("spool.left");
                    tracing::warn!(%error, "a spooled event stays");
                }
                Err(error @ SpoolError::Corrupt { .. }) => {
                    self.counters.add("spool.bad");
                    tracing::warn!(%error, "a spooled event is set aside");
                    if let Err(error) = spool.set_aside(&path) {
                        tracing::warn!(%error, "it cannot be set aside either");
                    }
                }
            }
        }
        match spool.take_dropped() {
            Ok(0) | Err(_) => {}
            Ok(dropped) => self.counters.add_many("spool.dropped", dropped),
        }
        drained
    }

    /// Whether this comes from an agent that a file may declare which cannot be read now: it is kept until the file can.
    fn may_be_declared(&self, request: &Request) -> bool {
        let Ok(view) = request.view() else { return false };
        let Ok(agent) = AgentKind::named(&String::from_utf8_lossy(view.agent)) else { return false };
        matches!(agent, AgentKind::Declared(_))
            && self.declared.is_incomplete()
            && self.declared.adapters().get(agent).is_none()
    }

    /// Half-written files of hooks that were killed go once they are too old to be anybody's.
    fn sweep_spool(&mut self, spool: &Spool) {
        if self.spool_swept.is_some_and(|swept| swept.elapsed() < TEMPORARY_MAX_AGE) {
            return;
        }
        self.spool_swept = Some(Instant::now());
        match spool.sweep_temporary(SystemTime::now()) {
            Ok(swept) => self.counters.add_many("spool.swept", swept as u64),
            Err(error) => tracing::warn!(%error, "the spool cannot be swept"),
        }
    }

    /// Turns one frame into inputs. `None`: it brought none.
    fn take_request(&mut self, request: &Request, way: Way<'_>) -> Option<Seq> {
        let view = request.view().ok()?;
        let source = match way {
            Way::Socket { .. } => Source::Hook,
            Way::Spool { .. } => Source::Spool,
        };
        self.count_flags(view.head.flags);
        let name = String::from_utf8_lossy(view.agent);
        let Ok(agent) = AgentKind::named(&name) else {
            self.counters.add("hook.unknown_agent");
            return None;
        };
        let Some(adapter) = self.declared.adapters().get(agent) else {
            if matches!(agent, AgentKind::Declared(_)) {
                self.counters.add("hook.unknown_agent");
                return None;
            }
            self.counters.add(&format!("hook.no_adapter.{agent}"));
            return None;
        };
        let event = std::str::from_utf8(view.event).ok().filter(|e| !e.is_empty());
        let argv: Vec<&[u8]> = view.argv().collect();
        let mut parsed = adapter.payload(event, &argv, view.payload);
        self.heard.insert(agent, clock::now());
        self.count(agent, &parsed);
        let now = self.now();
        let resolution = self.process_behind(&*adapter, way, &view.head, &parsed.observations);
        let process = resolution.as_ref().and_then(resolve::Resolution::process);
        if matches!(way, Way::Socket { .. }) && !parsed.work_pids.is_empty() {
            let known = parsed.observations.iter().filter_map(|o| o.session.as_ref()).flat_map(|id| {
                let view = self.core.session(&SessionKey::new(agent, id.clone()));
                view.map(|view| view.processes).unwrap_or_default()
            });
            let agents: Vec<ProcessRef> = known.chain(process.map(|p| p.process)).collect();
            work_process::complete(&mut parsed, &agents);
        }
        for observation in &mut parsed.observations {
            let facts = &mut observation.facts;
            facts.can_ask = facts.can_ask.or(resolution.as_ref().and_then(resolve::Resolution::can_ask));
        }
        self.find_transcripts(&*adapter, process, &mut parsed.observations);
        let sender = Sender {
            agent,
            namespace: None,
            session: None,
            source,
            happened: happened(
                &view.head,
                hook_time::lag(&parsed.observations, Wall(view.head.wall_ms)),
                &now,
                source,
            ),
            process,
            delivery: DeliveryId(view.head.delivery),
        };
        let held = match (parsed.question, way) {
            // Its first delivery waits for the answer; nobody else does.
            (Some(_), Way::Socket { .. }) if self.held.contains_key(&sender.delivery) => {
                self.counters.add("hook.repeated");
                None
            }
            // A question that no signal carries would never be answered.
            (Some(question), Way::Socket { reply, .. })
                if parsed.observations.iter().any(|o| asks(&o.body)) =>
            {
                let waiting = HeldReply {
                    agent,
                    event: event.unwrap_or_default().to_owned(),
                    reply: reply.clone(),
                    waits: false,
                };
                self.held.insert(sender.delivery, waiting);
                Some(HeldHook { delivery: sender.delivery, question })
            }
            _ => None,
        };
        let is_held = held.is_some();
        let last = self.observed(parsed.observations, &sender, held);
        if last.is_none() && is_held {
            self.held.remove(&sender.delivery);
        }
        last
    }

    /// Adds the transcript's path where a hook names its session only. A session that is followed somewhere stays there.
    fn find_transcripts(
        &mut self,
        adapter: &dyn Adapter,
        process: Option<AgentProcess>,
        observations: &mut [Observation],
    ) {
        for observation in observations {
            let (None, Some(session)) = (&observation.facts.transcript, &observation.session) else {
                continue;
            };
            let view = self.core.session(&SessionKey::new(adapter.kind(), session.clone()));
            let view = view.filter(|view| view.state != ShownState::Ended);
            if view.as_ref().is_some_and(|view| view.transcript.is_some()) {
                continue;
            }
            let known = view.and_then(|view| view.processes.last().copied());
            let process = process.map(|p| p.process).or(known);
            observation.facts.transcript = transcript_place::of(adapter, session, process)
                .or_else(|| self.search_transcript(adapter, session, process, &observation.body));
        }
    }

    /// Looks through the agent's files where a turn begins: by then there is one. Once a session, since there may be many.
    fn search_transcript(
        &mut self,
        adapter: &dyn Adapter,
        session: &str,
        process: Option<ProcessRef>,
        body: &SignalBody,
    ) -> Option<String> {
        if !matches!(body, SignalBody::Started { .. }) || adapter.transcript_search(session).is_none() {
            return None;
        }
        let key = SessionKey::new(adapter.kind(), session);
        if self.sought.len() >= SOUGHT_MAX {
            self.sought.clear();
        }
        if !self.sought.insert(key) {
            return None;
        }
        let found = transcript_place::search(adapter, session, process);
        if found.is_none() {
            self.counters.add("transcript.not_followed");
        }
        found
    }

    /// A group of observations of one sender, in order. `None`: none of them was news.
    fn observed(
        &mut self,
        observations: Vec<Observation>,
        sender: &Sender,
        mut held: Option<HeldHook>,
    ) -> Option<Seq> {
        let record = self.core.settings().record_prompts;
        let mut last = None;
        let mut sessions: Vec<SessionKey> = Vec::new();
        for (index, observation) in observations.into_iter().enumerate() {
            let Some(signal) = intake::signal(observation, index, sender, record) else {
                self.counters.add("signal.no_session");
                continue;
            };
            if self.journal.is_known(signal.delivery) {
                self.counters.add("signal.known");
                continue;
            }
            if !sessions.contains(&signal.key) {
                sessions.push(signal.key.clone());
            }
            // The question belongs to the signal that asks, which the adapter puts last or alone.
            let held = held.take_if(|_| asks(&signal.body));
            last = self.apply(InputBody::Signal { signal: Box::new(signal), held }).or(last);
        }
        if sender.source != Source::Transcript {
            for key in sessions {
                self.look_at(&key);
            }
        }
        last
    }

    /// Finds the agent's process while its hook still waits, or as its hook wrote it down, when the session has none or may
    /// have got another.
    fn process_behind(
        &mut self,
        adapter: &dyn Adapter,
        way: Way<'_>,
        head: &Head,
        observations: &[Observation],
    ) -> Option<resolve::Resolution> {
        if matches!(way, Way::Socket { caller: None, .. }) || !self.core.settings().watch_parent_process {
            return None;
        }
        let agent = adapter.kind();
        let begins_or_ends = observations.iter().any(|o| {
            matches!(
                o.body,
                SignalBody::Started { .. }
                    | SignalBody::SessionStarted { .. }
                    | SignalBody::SessionEnded { .. }
            )
        });
        let views = observations.iter().filter_map(|o| o.session.as_ref()).map(|id| {
            let view = self.core.session(&SessionKey::new(agent, id.clone()));
            // What a long spool says of one process is looked up once: its watch begins when all of it is heard.
            let is_known =
                |v: &SessionView| v.watched || (matches!(way, Way::Spool { .. }) && !v.processes.is_empty());
            view.filter(|v| v.state != ShownState::Ended).map(|v| is_known(&v))
        });
        let (unwatched, unknown) =
            views.fold((false, false), |(a, b), v| (a || v == Some(false), b || v.is_none()));
        if !(begins_or_ends || unwatched || unknown) {
            return None;
        }
        let resolution = match way {
            Way::Socket { caller, .. } => resolve::agent_above(Some(adapter), caller),
            Way::Spool { ancestry } => resolve::agent_recorded(Some(adapter), BootId(head.boot_id), ancestry),
        };
        match &resolution {
            resolve::Resolution::NotFound { why } => {
                self.counters.add("process.not_found");
                tracing::warn!(%agent, why, "no agent process found above a hook");
            }
            // The dead begin no session in the middle of a turn.
            resolve::Resolution::Gone(_) if !(begins_or_ends || unwatched) => return None,
            resolve::Resolution::Gone(gone) => {
                self.counters.add("process.gone");
                tracing::info!(%agent, pid = gone.process.pid, "the agent of a spooled event is gone");
            }
            resolve::Resolution::Found(_) | resolve::Resolution::FoundAbove { .. } => {}
        }
        Some(resolution)
    }

    /// What was new in a transcript.
    pub(crate) fn transcript_said(&mut self, growth: Growth) {
        let Growth { key, path, identity, rewrite, parsed, backlog_end, .. } = growth;
        let mut lines = parsed.lines.into_iter().peekable();
        let mut line = Line::default();
        for (index, observation) in parsed.observations.into_iter().enumerate() {
            while let Some(next) = lines.next_if(|next| next.first <= index) {
                line = next;
            }
            let now = self.now();
            let first = delivery::of_line(&path, identity, rewrite, line.offset);
            let sender = Sender {
                agent: key.agent,
                namespace: key.namespace.clone(),
                session: Some(key.id.clone()),
                source: Source::Transcript,
                happened: match observation.at.and_then(|wall| self.wall.stamp(&now, wall)) {
                    // Across a step of the clock it cannot be placed. New in the file it is news; found there it may
                    // be of any age, and must not undo what is known.
                    None if line.offset < backlog_end => Some(Stamp { boot: Boot(0), boot_id: now.boot_id }),
                    placed => placed,
                },
                process: None,
                delivery: DeliveryId(first.0.wrapping_add((index - line.first.min(index)) as u128)),
            };
            _ = self.observed(vec![observation], &sender, None);
        }
    }

    /// A state file of an agent, believed only while its process lives with the start time that the file names.
    pub(crate) fn agent_stated(&mut self, stated: Stated) {
        let Stated { agent, path, content, file } = stated;
        let process = content.as_ref().and_then(|_| self.writer_of(agent, &file));
        if process.is_none() && content.is_some() {
            self.counters.add("agent_state.stale");
            return;
        }
        let now = self.now();
        let delivery = delivery::of_state_file(&path, content.as_deref(), now.boot.0);
        let sender = Sender {
            agent,
            namespace: None,
            session: None,
            source: Source::AgentState,
            happened: match file.observation.at {
                Some(wall) => self.wall.stamp(&now, wall),
                None => Some(now.stamp()),
            },
            process: process.map(|process| AgentProcess { process, shared: false, declared: false }),
            delivery,
        };
        _ = self.observed(vec![file.observation], &sender, None);
    }

    /// The living process that wrote a state file. A removal has none: whoever has its number now did not write it. A file without
    /// a start time is believed of a process that its session has already.
    fn writer_of(&self, agent: AgentKind, file: &StateFile) -> Option<ProcessRef> {
        let found = identity::identify(file.pid).yes()?;
        match file.start {
            Some(start) => (found.start == start).then_some(found),
            None => {
                let id = file.observation.session.clone()?;
                let known = self.core.session(&SessionKey::new(agent, id))?;
                known.processes.contains(&found).then_some(found)
            }
        }
    }

    fn count_flags(&mut self, flags: Flags) {
        for (flag, name) in [
            (Flags::TRUNCATED, "hook.truncated"),
            (Flags::INCOMPLETE, "hook.incomplete"),
            (Flags::ARGS_CUT, "hook.args_cut"),
            (Flags::INPUT_FAILED, "hook.input_failed"),
        ] {
            if flags.has(flag) {
                self.counters.add(name);
            }
        }
    }
}

/// When that happened which a hook tells of, `lag` before the hook began, as far as that can be compared: by socket it is of
/// our boot; a time in our future is nobody's.
fn happened(head: &Head, lag: Duration, now: &Now, source: Source) -> Option<Stamp> {
    let boot_id = match (head.boot_id, source) {
        (0, Source::Hook) => now.boot_id,
        (0, _) => return None,
        (given, _) => BootId(given),
    };
    let began = Stamp { boot: Boot(head.started_boot_ns), boot_id };
    let is_possible = began.later_than(&now.stamp()) != Some(true);
    is_possible.then_some(Stamp { boot: began.boot.before(lag), boot_id })
}

fn asks(body: &SignalBody) -> bool {
    matches!(body, SignalBody::SoftLocked { .. } | SignalBody::Stopped { .. })
}
