//! A world of one or a few sessions for tests of single rules: statements in, the shown state out.

use std::time::Duration;
use watchkeeper_core::{
    AgentKind, Core, DeadlineKind, DeliveryId, Effect, Input, InputBody, Mark, Marks, SessionKey, Settings,
    Signal, SignalBody, TurnId, Verdict,
    effect::Probe,
    input::{HeldHook, HookQuestion, Known, ProbeAnswer},
    signal::{
        Activity, AgentProcess, AgentState, EndReason, Facts, LockSubject, Prompt, PromptOrigin, Source,
        StartCause, Thread, WorkEnd, WorkItem, WorkKind,
    },
    time::Stamp,
    view::ShownState,
};

use crate::{BOOT, at, process, traits};

pub(crate) struct World {
    pub(crate) core: Core,
    pub(crate) ms: u64,
    pub(crate) marks: Marks,
    pub(crate) effects: Vec<Effect>,
    pub(crate) agent: AgentKind,
    delivery: u128,
}

/// A statement under construction.
pub(crate) struct Say {
    pub(crate) signal: Signal,
    pub(crate) happened_ms: Option<u64>,
    pub(crate) held: Option<HookQuestion>,
}

impl Say {
    pub(crate) fn turn(mut self, turn: &str) -> Self {
        self.signal.turn = Some(TurnId(turn.to_owned()));
        self
    }
    pub(crate) fn of(mut self, id: &str) -> Self {
        self.signal.key.id = id.to_owned();
        self
    }
    pub(crate) fn from(mut self, pid: u32) -> Self {
        self.signal.process = Some(AgentProcess { process: process(pid), shared: false, declared: false });
        self
    }
    pub(crate) fn shared(mut self, pid: u32) -> Self {
        self.signal.process = Some(AgentProcess { process: process(pid), shared: true, declared: false });
        self
    }
    pub(crate) fn happened(mut self, ms: u64) -> Self {
        self.happened_ms = Some(ms);
        self
    }
    pub(crate) fn subagent(mut self, id: &str) -> Self {
        self.signal.thread = Thread::Subagent(id.to_owned());
        self
    }
    pub(crate) fn source(mut self, source: Source) -> Self {
        self.signal.source = source;
        self
    }
    pub(crate) fn print_mode(mut self) -> Self {
        self.signal.facts = Facts { can_ask: Some(false), ..Facts::default() };
        self
    }
    pub(crate) fn held(mut self) -> Self {
        self.held = Some(HookQuestion::Stop);
        self
    }
}

pub(crate) fn say(body: SignalBody) -> Say {
    Say {
        signal: Signal {
            key: SessionKey::new(AgentKind::Claude, "s"),
            incarnation: None,
            turn: None,
            thread: Thread::Main,
            delivery: DeliveryId(0),
            source: Source::Hook,
            happened: None,
            process: None,
            facts: Facts::default(),
            body,
        },
        happened_ms: None,
        held: None,
    }
}

pub(crate) fn prompt() -> Say {
    say(SignalBody::Started {
        prompt: Some(Prompt { text: "do it".to_owned(), origin: PromptOrigin::Person }),
    })
}
pub(crate) fn announced(cause: StartCause) -> Say {
    say(SignalBody::SessionStarted { cause })
}
pub(crate) fn stop() -> Say {
    stop_with(None)
}
pub(crate) fn stop_with(live: Option<Vec<WorkItem>>) -> Say {
    say(SignalBody::Stopped { final_message: None, can_continue: true, continued: false, live })
}
pub(crate) fn shell(id: &str) -> WorkItem {
    WorkItem { id: id.to_owned(), kind: WorkKind::Shell, label: None }
}
pub(crate) fn item(id: &str, kind: WorkKind) -> WorkItem {
    WorkItem { id: id.to_owned(), kind, label: None }
}
pub(crate) fn output() -> Say {
    say(SignalBody::Activity { what: Activity::ModelOutput })
}
pub(crate) fn doing(what: Activity) -> Say {
    say(SignalBody::Activity { what })
}
pub(crate) fn displayed() -> Say {
    say(SignalBody::Displayed { what: "title".to_owned() })
}
pub(crate) fn tool(id: &str, name: &str) -> Say {
    say(SignalBody::ToolStarted { id: id.to_owned(), name: name.to_owned() })
}
pub(crate) fn tool_done(id: &str, name: &str) -> Say {
    say(SignalBody::ToolFinished { id: id.to_owned(), name: name.to_owned(), failed: false })
}
pub(crate) fn lock(reason: &str, subject: LockSubject) -> Say {
    say(SignalBody::SoftLocked { reason: reason.to_owned(), subject })
}
pub(crate) fn named(name: &str) -> LockSubject {
    LockSubject::ToolNamed(name.to_owned())
}
pub(crate) fn work(id: &str, what: WorkKind) -> Say {
    say(SignalBody::WorkStarted { id: id.to_owned(), what, label: None, process: None })
}
pub(crate) fn work_done(id: &str) -> Say {
    say(SignalBody::WorkFinished { id: id.to_owned(), cause: WorkEnd::Completed })
}
pub(crate) fn aborted() -> Say {
    say(SignalBody::Aborted { tools_to_work: false, call: None })
}
pub(crate) fn ended(reason: EndReason) -> Say {
    say(SignalBody::SessionEnded { reason, successor: None })
}
pub(crate) fn exited(pid: u32) -> Say {
    say(SignalBody::ProcessExited { process: process(pid) })
}
pub(crate) fn stated(state: AgentState) -> Say {
    say(SignalBody::AgentStated { state, waiting_for: None }).source(Source::AgentState)
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            core: Core::new(settings, traits()),
            ms: 1_000_000,
            marks: Marks::default(),
            effects: Vec::new(),
            agent: AgentKind::Claude,
            delivery: 1,
        }
    }

    /// Lets so many milliseconds pass, through every deadline on the way; probes stay unanswered.
    pub(crate) fn wait(&mut self, ms: u64) {
        let until = self.ms + ms;
        while let Some((due, deadline)) = self.core.next_deadline() {
            let due = due.0.div_ceil(1_000_000);
            if due > until {
                break;
            }
            self.ms = self.ms.max(due);
            self.tell(InputBody::DeadlineReached { deadline });
        }
        self.ms = until;
    }

    /// Runs up to the next deadline of this kind, and through it.
    pub(crate) fn run_to(&mut self, kind: &DeadlineKind) {
        for _ in 0..1_000 {
            let (due, deadline) = self.core.next_deadline().expect("a deadline is armed");
            self.ms = self.ms.max(due.0.div_ceil(1_000_000));
            let found = deadline == *kind;
            self.tell(InputBody::DeadlineReached { deadline });
            if found {
                return;
            }
        }
        panic!("{kind:?} never comes");
    }

    pub(crate) fn tell(&mut self, body: InputBody) -> Verdict {
        let outcome = self.core.handle(&Input { now: at(self.ms), body });
        assert_eq!(self.core.check_invariants(), Vec::new());
        self.marks = self.marks.union(outcome.marks);
        self.effects.extend(outcome.effects);
        outcome.verdict
    }

    /// A second later, says it; it happened now unless it says otherwise.
    pub(crate) fn hear(&mut self, say: Say) -> Verdict {
        self.wait(1_000);
        let mut signal = say.signal;
        signal.key.agent = self.agent;
        self.delivery += 1;
        signal.delivery = DeliveryId(self.delivery);
        let happened = say.happened_ms.unwrap_or(self.ms);
        signal.happened = Some(Stamp { boot: at(happened).boot, boot_id: BOOT });
        let held = say.held.map(|question| HeldHook { delivery: signal.delivery, question });
        self.tell(InputBody::Signal { signal: Box::new(signal), held })
    }

    pub(crate) fn state(&self, id: &str) -> Option<ShownState> {
        self.core.session(&SessionKey::new(self.agent, id)).map(|s| s.state)
    }

    pub(crate) fn protects(&self, id: &str) -> bool {
        self.core.protects(&SessionKey::new(self.agent, id))
    }

    pub(crate) fn key(&self, id: &str) -> SessionKey {
        SessionKey::new(self.agent, id)
    }

    pub(crate) fn answer(&mut self, id: &str, probe: Probe, answer: ProbeAnswer) -> Verdict {
        let key = self.key(id);
        let incarnation = self.core.session(&key).expect("the session is known").incarnation;
        self.tell(InputBody::ProbeAnswered { key, incarnation, probe, answer })
    }

    pub(crate) fn lid(&mut self, closed: bool) {
        self.tell(InputBody::Lid { state: Known::Is(closed) });
    }

    pub(crate) fn displays(&mut self, on: u32) {
        self.tell(InputBody::Displays { external_on: Known::Is(on) });
    }

    pub(crate) fn next(&self) -> Option<DeadlineKind> {
        self.core.next_deadline().map(|(_, kind)| kind)
    }

    /// How often such an effect came since the last call, and forgets all.
    pub(crate) fn count(&mut self, matches: impl Fn(&Effect) -> bool) -> usize {
        let count = self.effects.iter().filter(|e| matches(e)).count();
        self.effects.clear();
        count
    }
}

/// Says each, and checks the state shown after each.
pub(crate) fn check(agent: AgentKind, script: Vec<(Say, ShownState)>) -> World {
    let mut world = World::new(Settings::default());
    world.agent = agent;
    for (n, (say, expected)) in script.into_iter().enumerate() {
        let id = say.signal.key.id.clone();
        let body = format!("{:?}", say.signal.body);
        world.hear(say);
        assert_eq!(
            world.state(&id),
            Some(expected),
            "after step {n}: {body}\n{:#?}",
            world.core.explain(&world.key(&id))
        );
    }
    world
}

pub(crate) fn reached(world: &World, mark: Mark) -> bool {
    world.marks.has(mark)
}

pub(crate) const MINUTE: u64 = 60_000;

pub(crate) fn suspending() -> Settings {
    Settings { suspend: true, webhooks: true, ..Settings::default() }
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
