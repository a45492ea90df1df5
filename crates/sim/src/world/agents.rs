//! Agents as small truths: what they do, and what a hook, a transcript or a state file then says of it.

use watchkeeper_core::{
    AgentKind, BootId, ProcessRef, SessionKey, SignalBody, TurnId,
    input::HookQuestion,
    signal::{
        Activity, AgentProcess, AgentState, EndReason, Facts, Lineage, LockSubject, Prompt, PromptOrigin,
        Source, StartCause, Thread, WorkEnd, WorkItem, WorkKind,
    },
};

use super::schedule::Act;

const KINDS: [AgentKind; 4] = [AgentKind::Claude, AgentKind::Codex, AgentKind::Copilot, AgentKind::Claude];
const WORK: [WorkKind; 6] = [
    WorkKind::Shell,
    WorkKind::Subagent,
    WorkKind::Task,
    WorkKind::Scheduled,
    WorkKind::Monitor,
    WorkKind::Terminal,
];
const CAUSES: [StartCause; 6] = [
    StartCause::Startup,
    StartCause::Resume,
    StartCause::Clear,
    StartCause::Compact,
    StartCause::Fork,
    StartCause::Other,
];
const STATES: [AgentState; 6] = [
    AgentState::Busy,
    AgentState::Idle,
    AgentState::Shell,
    AgentState::Waiting,
    AgentState::Dialog,
    AgentState::Gone,
];

/// One slot: a person with one agent, whose sessions and processes come and go.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    slot: u8,
    pub(super) kind: AgentKind,
    session: u32,
    turn: u32,
    pub(super) processes: Vec<ProcessRef>,
    tools: Vec<String>,
    works: Vec<(String, WorkKind)>,
    asked: Option<LockSubject>,
    counter: u32,
    /// Its processes burn CPU.
    pub(super) busy: bool,
}

/// One statement, before it travels.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) key: SessionKey,
    pub(super) turn: Option<TurnId>,
    pub(super) thread: Thread,
    pub(super) source: Source,
    pub(super) facts: Facts,
    pub(super) process: Option<AgentProcess>,
    pub(super) body: SignalBody,
    pub(super) question: Option<HookQuestion>,
    /// It happened so long before it is said.
    pub(super) old_ms: u32,
    pub(super) old_incarnation: bool,
}

/// What an act does beside talking.
#[derive(Debug, Clone, Default)]
pub(super) struct Deed {
    pub(super) said: Vec<Said>,
    /// Processes that end by it.
    pub(super) exits: Vec<ProcessRef>,
}

impl Agent {
    pub(super) fn new(slot: u8) -> Self {
        Self {
            slot,
            kind: KINDS[usize::from(slot) % KINDS.len()],
            session: 0,
            turn: 0,
            processes: Vec::new(),
            tools: Vec::new(),
            works: Vec::new(),
            asked: None,
            counter: 0,
            busy: false,
        }
    }

    pub(super) fn key(&self) -> SessionKey {
        SessionKey::new(self.kind, format!("s{}-{}", self.slot, self.session))
    }

    /// A reboot: everything is gone.
    pub(super) fn lose_processes(&mut self) {
        self.processes.clear();
        self.busy = false;
    }

    fn fresh(&mut self, what: &str) -> String {
        self.counter += 1;
        format!("{what}{}-{}", self.slot, self.counter)
    }

    fn spawn(&mut self, boot: BootId) -> ProcessRef {
        self.counter += 1;
        let process = ProcessRef { pid: 1000 + u32::from(self.slot), start: u64::from(self.counter), boot };
        self.processes.push(process);
        process
    }

    fn say(&self, body: SignalBody) -> Said {
        // The second slot is a shared host, as Codex's app-server is.
        let process = self.processes.last().map(|process| AgentProcess {
            process: *process,
            shared: self.slot == 1,
            declared: false,
        });
        Said {
            key: self.key(),
            turn: (self.turn > 0).then(|| TurnId(format!("t{}", self.turn))),
            thread: Thread::Main,
            source: Source::Hook,
            facts: Facts::default(),
            process,
            body,
            question: None,
            old_ms: 0,
            old_incarnation: false,
        }
    }

    fn live(&self) -> Vec<WorkItem> {
        self.works.iter().map(|(id, kind)| WorkItem { id: id.clone(), kind: *kind, label: None }).collect()
    }

    fn stop(&self, live: Option<Vec<WorkItem>>) -> Said {
        let mut said =
            self.say(SignalBody::Stopped { final_message: None, can_continue: true, continued: false, live });
        said.question = Some(HookQuestion::Stop);
        said
    }

    #[expect(clippy::too_many_lines, reason = "one arm an act, none of them deep")]
    pub(super) fn act(&mut self, act: Act, boot: BootId) -> Deed {
        let mut deed = Deed::default();
        let started =
            matches!(act, Act::Prompt | Act::MidTurn | Act::SessionStart(_)) && self.processes.is_empty();
        if started {
            self.spawn(boot);
        }
        match act {
            Act::Prompt => {
                self.turn += 1;
                self.busy = true;
                let prompt = Prompt { text: "p".into(), origin: PromptOrigin::Person };
                let mut said = self.say(SignalBody::Started { prompt: Some(prompt) });
                said.facts.transcript = Some(format!("/t/{}", said.key.id));
                said.facts.cwd = Some("/w".into());
                deed.said.push(said);
            }
            Act::Output => deed.said.push(self.say(SignalBody::Activity { what: Activity::ModelOutput })),
            Act::LateOutput => {
                let mut said = self.say(SignalBody::Activity { what: Activity::ModelOutput });
                said.source = Source::Transcript;
                said.old_ms = 1_500;
                deed.said.push(said);
            }
            Act::ToolStart | Act::StuckTool => {
                let id = self.fresh("tool");
                self.tools.push(id.clone());
                deed.said.push(self.say(SignalBody::ToolStarted { id, name: "Bash".into() }));
            }
            Act::ToolEnd => {
                let id = self.tools.pop().unwrap_or_else(|| "tool-none".into());
                deed.said.push(self.say(SignalBody::ToolFinished { id, name: "Bash".into(), failed: false }));
            }
            Act::Ask | Act::AskInPrint => {
                let subject = match self.tools.last() {
                    Some(id) => LockSubject::Tool(id.clone()),
                    None => LockSubject::ToolNamed("Bash".into()),
                };
                self.asked = Some(subject.clone());
                let mut said =
                    self.say(SignalBody::SoftLocked { reason: "permission_prompt".into(), subject });
                said.question = Some(HookQuestion::Permission);
                if act == Act::AskInPrint {
                    said.facts.can_ask = Some(false);
                }
                deed.said.push(said);
            }
            Act::Answer => {
                let subject = self.asked.take().unwrap_or_default();
                deed.said.push(self.say(SignalBody::LockResolved { subject }));
            }
            Act::DialogTool => {
                let subject = LockSubject::Question(self.fresh("q"));
                self.asked = Some(subject.clone());
                deed.said.push(self.say(SignalBody::SoftLocked { reason: "question".into(), subject }));
            }
            Act::WorkStart(kind) => {
                let what = WORK[usize::from(kind) % WORK.len()];
                let id = self.fresh("work");
                self.works.push((id.clone(), what));
                let process =
                    (kind % 2 == 0).then(|| ProcessRef { pid: 5000 + self.counter, start: 1, boot });
                deed.said.push(self.say(SignalBody::WorkStarted { id, what, label: None, process }));
            }
            Act::WorkEnd | Act::WorkEndWakes => {
                let id = self.works.pop().map_or_else(|| "work-none".into(), |(id, _)| id);
                deed.said.push(self.say(SignalBody::WorkFinished { id, cause: WorkEnd::Completed }));
                if act == Act::WorkEndWakes {
                    self.turn += 1;
                    let prompt = Prompt { text: "done".into(), origin: PromptOrigin::Work };
                    deed.said.push(self.say(SignalBody::Started { prompt: Some(prompt) }));
                }
            }
            Act::WorkAgain => {
                let id = format!("work{}-{}", self.slot, self.counter);
                let mut late = self.say(SignalBody::WorkStarted {
                    id,
                    what: WorkKind::Subagent,
                    label: None,
                    process: None,
                });
                late.old_ms = if self.counter.is_multiple_of(2) { 5_000 } else { 0 };
                deed.said.push(late);
            }
            Act::Level => {
                let live = self.live();
                let except = live.first().map(|w| w.id.clone()).filter(|_| self.counter.is_multiple_of(3));
                deed.said.push(self.say(SignalBody::WorkLevel { live, except }));
            }
            Act::Stop => {
                self.busy = false;
                self.tools.clear();
                deed.said.push(self.stop(None));
            }
            Act::StopListing => {
                self.busy = false;
                deed.said.push(self.stop(Some(self.live())));
            }
            Act::StopAgain => {
                let mut said = self.stop(None);
                said.body = SignalBody::Stopped {
                    final_message: None,
                    can_continue: true,
                    continued: true,
                    live: None,
                };
                deed.said.push(said);
            }
            Act::Interrupt | Act::InterruptTools => {
                self.busy = false;
                let tools_to_work = act == Act::InterruptTools;
                deed.said.push(self.say(SignalBody::Aborted { tools_to_work, call: None }));
            }
            Act::Fail { fatal } => deed.said.push(self.say(SignalBody::Failed { message: None, fatal })),
            Act::Idle => deed.said.push(self.say(SignalBody::IdleNoticed)),
            Act::SessionStart(cause) => {
                let cause = CAUSES[usize::from(cause) % CAUSES.len()];
                let mut said = self.say(SignalBody::SessionStarted { cause });
                said.old_ms = if self.counter.is_multiple_of(3) { 2_000 } else { 0 };
                deed.said.push(said);
            }
            Act::End | Act::Stopped => {
                let reason = if act == Act::End { EndReason::Reported } else { EndReason::Stopped };
                deed.said.push(self.say(SignalBody::SessionEnded { reason, successor: None }));
                deed.exits.append(&mut self.processes);
                self.busy = false;
            }
            Act::Clear | Act::Moved => {
                let successor = Some(format!("s{}-{}", self.slot, self.session + 1));
                let reason = if act == Act::Clear { EndReason::Cleared } else { EndReason::Moved };
                deed.said.push(self.say(SignalBody::SessionEnded {
                    reason,
                    successor: successor.filter(|_| self.counter.is_multiple_of(2)),
                }));
                let old = self.key().id;
                self.session += 1;
                let mut said = self.say(SignalBody::SessionStarted { cause: StartCause::Clear });
                said.facts.lineage = Some(Lineage::ClearedFrom(old));
                deed.said.push(said);
            }
            Act::Kill => {
                deed.exits.append(&mut self.processes);
                self.busy = false;
                self.tools.clear();
            }
            Act::KillOne => deed.exits.extend(self.processes.pop()),
            Act::SecondTerminal => {
                self.spawn(boot);
                deed.said.push(self.say(SignalBody::SessionStarted { cause: StartCause::Resume }));
            }
            Act::CompactStart => {
                deed.said.push(self.say(SignalBody::Activity { what: Activity::CompactionStarted }));
            }
            Act::CompactEnd => {
                deed.said.push(self.say(SignalBody::Activity { what: Activity::CompactionFinished }));
            }
            Act::SubagentStart => {
                let id = self.fresh("sub");
                self.works.push((id.clone(), WorkKind::Subagent));
                deed.said.push(self.say(SignalBody::WorkStarted {
                    id,
                    what: WorkKind::Subagent,
                    label: None,
                    process: None,
                }));
            }
            Act::SubagentWorks => {
                let id = self.works.last().map_or_else(|| "sub-none".into(), |(id, _)| id.clone());
                let mut own = self.say(SignalBody::ToolStarted { id: "t".into(), name: "Read".into() });
                own.thread = Thread::Subagent(id.clone());
                // Sometimes under an id of its own (Copilot), which must not become a session.
                if self.counter.is_multiple_of(2) {
                    own.key.id = id;
                    own.thread = Thread::Main;
                }
                deed.said.push(own);
            }
            Act::SubagentStop => {
                let id = self.works.last().map_or_else(|| "sub-none".into(), |(id, _)| id.clone());
                let mut said = self.stop(None);
                said.thread = Thread::Subagent(id.clone());
                said.question = None;
                deed.said.push(said);
                deed.said.push(self.say(SignalBody::WorkFinished { id, cause: WorkEnd::Completed }));
            }
            Act::State(state) | Act::OldState(state) => {
                let state = STATES[usize::from(state) % STATES.len()];
                let waiting_for = (state == AgentState::Waiting).then(|| "permission prompt".into());
                let mut said = self.say(SignalBody::AgentStated { state, waiting_for });
                said.source = Source::AgentState;
                said.turn = None;
                said.old_ms = if matches!(act, Act::OldState(_)) { 20_000 } else { 0 };
                deed.said.push(said);
            }
            Act::Display => deed.said.push(self.say(SignalBody::Displayed { what: "MessageDisplay".into() })),
            Act::OldTurn => {
                let mut said = self.say(SignalBody::ToolFinished {
                    id: "old".into(),
                    name: "Bash".into(),
                    failed: false,
                });
                said.turn = Some(TurnId(format!("t{}", self.turn.saturating_sub(1))));
                said.old_ms = 3_000;
                deed.said.push(said);
            }
            Act::OldIncarnation => {
                let mut said = self.say(SignalBody::Started { prompt: None });
                said.old_incarnation = true;
                deed.said.push(said);
            }
            Act::MidTurn => {
                self.session += 1;
                self.turn += 1;
                deed.said.push(self.say(SignalBody::ToolStarted { id: self.key().id, name: "Bash".into() }));
            }
            Act::UnknownSession(kind) => {
                let body = match kind {
                    0 => SignalBody::SessionEnded { reason: EndReason::Reported, successor: None },
                    1 => SignalBody::Displayed { what: "x".into() },
                    2 => {
                        self.stop(Some(vec![WorkItem { id: "w".into(), kind: WorkKind::Shell, label: None }]))
                            .body
                    }
                    3 => SignalBody::SoftLocked { reason: "question".into(), subject: LockSubject::Session },
                    4 => SignalBody::WorkStarted {
                        id: "w".into(),
                        what: WorkKind::Shell,
                        label: None,
                        process: None,
                    },
                    5 => SignalBody::IdleNoticed,
                    6 => SignalBody::Activity { what: Activity::Progress },
                    _ => SignalBody::Removed,
                };
                let id = self.fresh("unknown");
                let mut said = self.say(body);
                said.key.id = id;
                deed.said.push(said);
            }
            Act::LockByHand => {
                let mut said = self.say(SignalBody::SoftLocked {
                    reason: "waiting_for_user_input".into(),
                    subject: LockSubject::Session,
                });
                said.source = Source::User;
                deed.said.push(said);
            }
            Act::ClearByHand => {
                deed.said.push(Said { source: Source::User, ..self.say(SignalBody::SoftLockCleared) });
            }
            Act::ActivityByHand => {
                deed.said.push(Said {
                    source: Source::User,
                    ..self.say(SignalBody::Activity { what: Activity::Manual })
                });
            }
            Act::Remove => deed.said.push(Said { source: Source::User, ..self.say(SignalBody::Removed) }),
            Act::Orphaned => {
                deed.said.push(Said { source: Source::Recovery, ..self.say(SignalBody::Orphaned) });
            }
            Act::UnknownEvent => deed.said.push(self.say(SignalBody::Unknown { event: "New".into() })),
            Act::Pause => self.busy = !self.busy,
        }
        deed
    }
}
