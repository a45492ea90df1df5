//! One session: its facts, its phase, and what follows from them (shown state, protection, deadlines).
//!
//! Nothing here knows other sessions or the machine.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

use crate::{
    evidence::EvidenceList,
    identity::{AgentKind, Incarnation, ProcessRef, SessionKey, TurnId},
    input::Known,
    lock::{ASK_BEFORE_SLEEP, Lock},
    ordering::When,
    settings::{RecordPrompts, Settings},
    signal::{AgentState, Facts, Lineage, Prompt},
    time::{Mono, Now, Wall},
    view::{SessionView, ShownState, WorkView},
    work::{Work, WorkSet},
};

/// Processes one incarnation may have. A further one is recorded and not watched.
pub const PROCESSES_MAX: usize = 16;
/// Processes remembered as gone or as those of earlier incarnations. At the limit the oldest is forgotten.
pub const FORMER_MAX: usize = 16;
/// Earlier turn ids remembered. At the limit the oldest is forgotten and would count as new.
pub const EARLIER_TURNS_MAX: usize = 32;
/// Ids of subagents remembered. At the limit the oldest is forgotten.
pub const SUBAGENTS_MAX: usize = 128;
/// Links to other sessions kept. Further ones are dropped.
pub const LINEAGE_MAX: usize = 16;
/// Longest text fact (path, title, version, label) kept, in bytes; the rest is cut.
pub const FACT_MAX_BYTES: usize = 4096;
/// Longest prompt kept with `record_prompts = full`, in bytes; the rest is cut.
pub const PROMPT_MAX_BYTES: usize = 64 * 1024;
/// Characters of a prompt shown in lists.
pub const PREVIEW_CHARS: usize = 50;
/// A compaction between turns counts as work for so long at most.
pub const COMPACTION_MAX: Duration = Duration::from_secs(600);
/// An unanswered look at a session's processes counts as "unknown" after so long.
pub const PROBE_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    Working,
    Background,
    Idle,
    Ended(EndCause),
}

/// Why an incarnation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EndCause {
    Reported,
    Cleared,
    Forked,
    Moved,
    Stopped,
    ProcessExited,
    Orphaned,
    Removed,
}

impl EndCause {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Cleared => "cleared",
            Self::Forked => "forked",
            Self::Moved => "moved",
            Self::Stopped => "stopped",
            Self::ProcessExited => "process_exited",
            Self::Orphaned => "orphaned",
            Self::Removed => "removed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    /// The id is a counter of ours, because the agent named none (yet).
    pub(crate) counted: bool,
    pub(crate) since: Wall,
    /// Its PostSessionEnd was sent or settled.
    pub(crate) told: bool,
}

/// The latest stop or abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Halt {
    pub(crate) when: When,
    pub(crate) aborted: bool,
}

/// A stop that waits for background work to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Deferred {
    Stop,
    Abort,
    End(EndCause),
    /// The path of this turn was taken before the work began.
    Settled,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) process: ProcessRef,
    pub(crate) shared: bool,
    pub(crate) watch: Watch,
}

/// A process that is not one of this incarnation any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Former {
    pub(crate) process: ProcessRef,
    pub(crate) incarnation: Incarnation,
    pub(crate) exited: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Watch {
    Asked,
    Standing,
    Failed(String),
    BySetting,
}

/// How far the look before an inactivity lock has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Look {
    /// Nothing was asked since the last activity.
    Fresh,
    /// Half of the time is over: the figure to compare with was asked for.
    Based,
    /// All of it is over: the answer decides.
    Asked(Mono),
}

/// The moments at which time alone changes a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Dues {
    pub(crate) inactivity: Option<Mono>,
    pub(crate) wake_grace: Option<Mono>,
    pub(crate) work_max: Option<Mono>,
    pub(crate) quiet: Option<Mono>,
    pub(crate) compaction: Option<Mono>,
}

impl Dues {
    /// What to arm for these, given what is armed. The two that every sign of life moves later stay where they are and
    /// are looked at again when reached, so that a signal need not touch the order of all sessions' deadlines.
    pub(crate) fn armed_for(self, armed: &Self) -> Self {
        let lazy = |due: Option<Mono>, armed: Option<Mono>| match (due, armed) {
            (Some(due), Some(armed)) => Some(armed.min(due)),
            (due, _) => due,
        };
        Self {
            inactivity: lazy(self.inactivity, armed.inactivity),
            work_max: lazy(self.work_max, armed.work_max),
            ..self
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    pub(crate) incarnation: Incarnation,
    pub(crate) phase: Phase,
    pub(crate) lock: Option<Lock>,
    /// What was last told to subscribers.
    pub(crate) shown: ShownState,
    pub(crate) since: Wall,
    pub(crate) started_at: Wall,
    pub(crate) last_activity: Wall,
    pub(crate) turn: Option<Turn>,
    pub(crate) earlier_turns: VecDeque<TurnId>,
    pub(crate) turns: u64,
    /// The latest start of a turn, or registration.
    pub(crate) opened: Option<When>,
    pub(crate) halted: Option<Halt>,
    /// The latest model output or tool start of the main thread.
    pub(crate) worked: Option<When>,
    /// The latest model output of the main thread.
    pub(crate) spoke: Option<When>,
    /// When this incarnation was first heard of.
    pub(crate) born: Option<When>,
    /// The latest statement of any kind that decided a phase or a lock.
    pub(crate) decided: Option<When>,
    pub(crate) ended: Option<When>,
    pub(crate) deferred: Option<Deferred>,
    /// Since when no work is left that deferred the stop.
    pub(crate) drained: Option<Mono>,
    pub(crate) compaction: Option<(Mono, bool)>,
    pub(crate) work: WorkSet,
    pub(crate) processes: Vec<Process>,
    pub(crate) former: VecDeque<Former>,
    pub(crate) agent_state: Option<(AgentState, When)>,
    /// Last activity or extension.
    pub(crate) refreshed: Mono,
    /// Last signal of the agent itself.
    pub(crate) heard: Mono,
    /// Nothing was heard since a resume from sleep.
    pub(crate) silent_since_wake: bool,
    pub(crate) stalled_after_wake: bool,
    pub(crate) look: Look,
    pub(crate) baseline: Option<(u64, Mono)>,
    pub(crate) quiet_from: Mono,
    pub(crate) first_seen_mid_turn: bool,
    /// The agent announced it as a session.
    pub(crate) registered: bool,
    /// When its process announced that it takes the session up again, or another one's words.
    #[serde(default)]
    pub(crate) taken_up: Option<When>,
    /// The latest end of a compaction: hooks that told of its start may come later.
    #[serde(default)]
    pub(crate) compacted: Option<When>,
    pub(crate) cwd: Option<String>,
    pub(crate) transcript: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) agent_version: Option<String>,
    pub(crate) can_ask: Option<bool>,
    pub(crate) lineage: Vec<Lineage>,
    pub(crate) prompt_preview: Option<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) evidence: EvidenceList,
    /// Ids announced as its subagents'.
    pub(crate) subagents: VecDeque<String>,
    /// The deadlines as indexed: see [`Dues::armed_for`].
    pub(crate) armed: Dues,
    /// Number of the input at which it became idle or ended.
    pub(crate) listed: u64,
}

impl Session {
    pub(crate) fn new(key: SessionKey, incarnation: Incarnation, now: &Now) -> Self {
        Self {
            key,
            incarnation,
            phase: Phase::Idle,
            lock: None,
            shown: ShownState::Idle,
            since: now.wall,
            started_at: now.wall,
            last_activity: now.wall,
            turn: None,
            earlier_turns: VecDeque::new(),
            turns: 0,
            opened: None,
            halted: None,
            worked: None,
            spoke: None,
            born: None,
            decided: None,
            ended: None,
            deferred: None,
            drained: None,
            compaction: None,
            work: WorkSet::default(),
            processes: Vec::new(),
            former: VecDeque::new(),
            agent_state: None,
            refreshed: now.mono,
            heard: now.mono,
            silent_since_wake: false,
            stalled_after_wake: false,
            look: Look::Fresh,
            baseline: None,
            quiet_from: now.mono,
            first_seen_mid_turn: false,
            registered: false,
            taken_up: None,
            compacted: None,
            cwd: None,
            transcript: None,
            title: None,
            agent_version: None,
            can_ask: None,
            lineage: Vec::new(),
            prompt_preview: None,
            prompt: None,
            evidence: EvidenceList::default(),
            subagents: VecDeque::new(),
            armed: Dues::default(),
            listed: 0,
        }
    }

    /// The next life of the same key. What was told about the former ones stays in the evidence.
    pub(crate) fn reborn(&mut self, now: &Now) {
        let mut next = Self::new(self.key.clone(), Incarnation(self.incarnation.0.saturating_add(1)), now);
        next.shown = self.shown;
        next.since = self.since;
        next.armed = self.armed;
        next.listed = self.listed;
        next.earlier_turns = std::mem::take(&mut self.earlier_turns);
        next.earlier_turns.extend(self.turn.take().map(|t| t.id));
        while next.earlier_turns.len() > EARLIER_TURNS_MAX {
            next.earlier_turns.pop_front();
        }
        next.turns = self.turns;
        next.former = std::mem::take(&mut self.former);
        next.cwd = self.cwd.take();
        next.title = self.title.take();
        next.agent_version = self.agent_version.take();
        next.lineage = std::mem::take(&mut self.lineage);
        next.evidence = std::mem::take(&mut self.evidence);
        next.subagents = std::mem::take(&mut self.subagents);
        *self = next;
    }

    pub(crate) fn agent(&self) -> AgentKind {
        self.key.agent
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    pub(crate) fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Working | Phase::Background)
    }

    /// The first that applies.
    pub(crate) fn state(&self) -> ShownState {
        match self.phase {
            Phase::Ended(_) => ShownState::Ended,
            Phase::Working | Phase::Background | Phase::Idle if self.lock.is_some() => ShownState::Waiting,
            Phase::Working => ShownState::Working,
            Phase::Background => ShownState::Background,
            Phase::Idle => ShownState::Idle,
        }
    }

    /// Whether this session keeps the machine awake.
    pub(crate) fn protects(&self) -> bool {
        match self.phase {
            Phase::Ended(_) => false,
            Phase::Working if self.lock.is_none() => true,
            Phase::Working | Phase::Background | Phase::Idle => {
                self.work.any_counts() || (self.deferred.is_some() && self.drained.is_some())
            }
        }
    }

    /// Recomputed from the facts, so that no path can forget to arm or disarm.
    pub(crate) fn dues(&self, settings: &Settings) -> Dues {
        if self.is_ended() {
            return Dues::default();
        }
        let protects = self.protects();
        let inactivity = settings.inactivity_timeout.filter(|_| protects && self.lock.is_none());
        Dues {
            inactivity: inactivity.filter(|_| self.drained.is_none()).map(|timeout| match self.look {
                Look::Fresh => self.refreshed.after(timeout / 2),
                Look::Based => self.refreshed.after(timeout),
                Look::Asked(at) => at.after(PROBE_WAIT),
            }),
            wake_grace: self.drained.map(|at| at.after(settings.wake_grace)),
            work_max: (protects && self.drained.is_none()).then(|| self.heard.after(settings.work_max)),
            quiet: self
                .work
                .live
                .values()
                .any(|w| w.counts() && w.can_be_quiet())
                .then(|| self.quiet_from.after(settings.background_quiet)),
            compaction: self.compaction.map(|(since, _)| since.after(COMPACTION_MAX)),
        }
    }

    /// Activity at `now`: every look at its silence starts over.
    pub(crate) fn refresh(&mut self, now: &Now) {
        self.refreshed = now.mono;
        self.last_activity = now.wall;
        self.look = Look::Fresh;
        self.baseline = None;
    }

    pub(crate) fn has_own_process(&self) -> bool {
        self.processes.iter().any(|p| !p.shared)
    }

    pub(crate) fn owns(&self, process: &ProcessRef) -> bool {
        self.processes.iter().any(|p| p.process == *process)
    }

    pub(crate) fn former(&self, process: &ProcessRef) -> Option<&Former> {
        self.former.iter().rev().find(|f| f.process == *process)
    }

    /// Removes it from this incarnation; returns it if it was there.
    pub(crate) fn let_go(&mut self, process: &ProcessRef, exited: bool) -> Option<Process> {
        let at = self.processes.iter().position(|p| p.process == *process)?;
        if self.former.len() >= FORMER_MAX {
            self.former.pop_front();
        }
        self.former.push_back(Former { process: *process, incarnation: self.incarnation, exited });
        Some(self.processes.remove(at))
    }

    /// Those of the agent and of its work.
    pub(crate) fn all_processes(&self) -> Vec<ProcessRef> {
        let of_agent = self.processes.iter().map(|p| p.process);
        of_agent.chain(self.work.live.values().filter_map(|w| w.process)).collect()
    }

    /// A turn of this id (or of the next count) begins.
    pub(crate) fn begin_turn(&mut self, id: Option<&TurnId>, now: &Now) {
        if let Some(over) = self.turn.take() {
            if self.earlier_turns.len() >= EARLIER_TURNS_MAX {
                self.earlier_turns.pop_front();
            }
            self.earlier_turns.push_back(over.id);
        }
        self.turns = self.turns.saturating_add(1);
        let counted = id.is_none();
        let id =
            id.map_or_else(|| TurnId(format!("n{}", self.turns)), |id| TurnId(cut(&id.0, FACT_MAX_BYTES)));
        self.earlier_turns.retain(|t| *t != id);
        self.turn = Some(Turn { id, counted, since: now.wall, told: false });
    }

    pub(crate) fn learn(&mut self, facts: &Facts) {
        for (slot, fact) in [
            (&mut self.cwd, &facts.cwd),
            (&mut self.title, &facts.title),
            (&mut self.agent_version, &facts.agent_version),
        ] {
            if let Some(fact) = fact.as_ref().filter(|f| slot.as_ref() != Some(*f)) {
                *slot = Some(cut(fact, FACT_MAX_BYTES));
            }
        }
        if facts.can_ask.is_some() {
            self.can_ask = facts.can_ask;
            // Nobody can be asked, so nobody is waited for.
            if self.can_ask == Some(false) && self.lock.as_ref().is_some_and(|l| !l.inactive) {
                self.lock = None;
            }
        }
        if let Some(link) = &facts.lineage {
            self.link(link.clone());
        }
    }

    pub(crate) fn link(&mut self, link: Lineage) {
        if !self.lineage.contains(&link) && self.lineage.len() < LINEAGE_MAX {
            self.lineage.push(link);
        }
    }

    pub(crate) fn remember_prompt(&mut self, prompt: &Prompt, record: RecordPrompts) {
        let line = prompt.text.split_whitespace().take(PREVIEW_CHARS).collect::<Vec<_>>().join(" ");
        self.prompt_preview = Some(line.chars().take(PREVIEW_CHARS).collect());
        self.prompt = match record {
            RecordPrompts::Full => Some(cut(&prompt.text, PROMPT_MAX_BYTES)),
            RecordPrompts::Preview | RecordPrompts::Off => None,
        };
    }

    pub(crate) fn view(&self) -> SessionView {
        SessionView {
            key: self.key.clone(),
            incarnation: self.incarnation,
            state: self.state(),
            since: self.since,
            started_at: self.started_at,
            turn_since: self.turn.as_ref().map(|t| t.since),
            last_activity: self.last_activity,
            waiting_for: self.lock.as_ref().filter(|_| !self.is_ended()).map(|l| l.reason.clone()),
            background: self.work.live.iter().map(|(id, w)| work_view(id, w)).collect(),
            processes: self.processes.iter().map(|p| p.process).collect(),
            watched: self.processes.iter().any(|p| p.watch == Watch::Standing),
            protects: self.protects(),
            cwd: self.cwd.clone(),
            transcript: self.transcript.clone(),
            title: self.title.clone(),
            prompt_preview: self.prompt_preview.clone(),
            agent_version: self.agent_version.clone(),
            parent: self.lineage.iter().find_map(|l| match l {
                Lineage::Parent(id) => Some(id.clone()),
                Lineage::ForkedFrom(_)
                | Lineage::ForkedTo(_)
                | Lineage::ContinuedIn(_)
                | Lineage::ClearedTo(_)
                | Lineage::ClearedFrom(_) => None,
            }),
            lineage: self.lineage.clone(),
            flags: self.flags(),
            ended: match self.phase {
                Phase::Ended(cause) => Some(cause.name().to_owned()),
                Phase::Working | Phase::Background | Phase::Idle => None,
            },
        }
    }

    /// Why nobody is told when the agent dies; `None` when somebody is, or when nothing is left to watch.
    pub(crate) fn unwatched(&self) -> Option<String> {
        if self.is_ended() || self.processes.iter().any(|p| p.watch == Watch::Standing) {
            return None;
        }
        let Some(process) = self.processes.last() else {
            return Some("no agent process is known".to_owned());
        };
        match &process.watch {
            Watch::Standing => None,
            Watch::Asked => Some("not confirmed yet".to_owned()),
            Watch::Failed(why) => Some(why.clone()),
            Watch::BySetting => Some("by_setting".to_owned()),
        }
    }

    fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        if let Some(why) = self.unwatched() {
            flags.push(format!("unwatched:{why}"));
        }
        if self.work.live.values().any(|w| w.quiet) {
            flags.push("quiet".to_owned());
        }
        if self.work.live.values().any(|w| w.abandoned) {
            flags.push("abandoned".to_owned());
        }
        if self.stalled_after_wake {
            flags.push("stalled_after_wake".to_owned());
        }
        if self.first_seen_mid_turn {
            flags.push("first_seen_mid_turn".to_owned());
        }
        flags
    }

    /// One sentence on why it protects.
    pub(crate) fn protects_why(&self) -> String {
        let live = self.work.live.values().filter(|w| w.counts()).count();
        match (self.phase, &self.lock) {
            (Phase::Working, None) => "a turn runs".to_owned(),
            _ if live > 0 => {
                format!("{live} background {}", if live == 1 { "task runs" } else { "tasks run" })
            }
            _ => "its background work just ended and may wake it".to_owned(),
        }
    }

    /// Whether the only thing it waits for is the question before the sleep.
    pub(crate) fn asks_before_sleep(&self) -> bool {
        self.lock.as_ref().is_some_and(|l| l.reason == ASK_BEFORE_SLEEP)
    }

    /// Whether its processes can be looked at.
    pub(crate) fn can_be_probed(&self) -> bool {
        !self.processes.is_empty()
    }

    /// Whether the tree of its processes used more than one part in a hundred of the time since `baseline`.
    pub(crate) fn cpu_moved(baseline: Option<(u64, Mono)>, cpu_ms: Known<u64>, now: Mono) -> Known<bool> {
        match (baseline, cpu_ms) {
            (Some((before_ms, at)), Known::Is(after_ms)) => {
                let elapsed_ms = now.since(at).as_millis();
                Known::Is(u128::from(after_ms.saturating_sub(before_ms)) * 100 > elapsed_ms)
            }
            (None, _) | (_, Known::Unknown) => Known::Unknown,
        }
    }
}

fn work_view(id: &str, work: &Work) -> WorkView {
    WorkView { id: id.to_owned(), kind: work.kind, label: work.label.clone(), since: work.since }
}

/// The longest prefix of whole characters within so many bytes.
pub(crate) fn prefix(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// An owned [`prefix`].
pub(crate) fn cut(text: &str, max_bytes: usize) -> String {
    prefix(text, max_bytes).to_owned()
}
