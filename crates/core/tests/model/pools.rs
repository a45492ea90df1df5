//! Arbitrary inputs from small pools, so that they meet each other.

use crate::{BOOT, at, process};
use proptest::{collection::vec, option, prelude::*};
use std::time::Duration;
use watchkeeper_core::{
    AgentKind, Core, DeadlineKind, DeliveryId, Effect, Incarnation, Input, InputBody, ProcessRef, SessionKey,
    Settings, Signal, SignalBody, TurnId,
    effect::Probe,
    input::{HeldHook, HookQuestion, Known, ProbeAnswer, Refused, WatchOutcome},
    settings::{KeepAwake, RecordPrompts},
    signal::{
        Activity, AgentProcess, AgentState, EndReason, Facts, Lineage, LockSubject, Prompt, PromptOrigin,
        Source, StartCause, Thread, WorkEnd, WorkItem, WorkKind,
    },
    time::Stamp,
};

fn id() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("c".to_owned()), Just(String::new())]
}

fn key() -> impl Strategy<Value = SessionKey> {
    (prop_oneof![Just(AgentKind::Claude), Just(AgentKind::Codex)], id())
        .prop_map(|(agent, id)| SessionKey::new(agent, id))
}

fn turn() -> impl Strategy<Value = TurnId> {
    prop_oneof![Just("t1"), Just("t2"), Just("t3"), Just("n1")].prop_map(|t| TurnId(t.to_owned()))
}

fn process_ref() -> impl Strategy<Value = ProcessRef> {
    (1u32..5).prop_map(process)
}

fn kind() -> impl Strategy<Value = WorkKind> {
    prop_oneof![
        Just(WorkKind::Shell),
        Just(WorkKind::Subagent),
        Just(WorkKind::Task),
        Just(WorkKind::Scheduled),
        Just(WorkKind::Monitor),
        Just(WorkKind::Terminal)
    ]
}

fn item() -> impl Strategy<Value = WorkItem> {
    (id(), kind()).prop_map(|(id, kind)| WorkItem { id, kind, label: None })
}

fn subject() -> impl Strategy<Value = LockSubject> {
    prop_oneof![
        Just(LockSubject::Session),
        id().prop_map(LockSubject::Tool),
        tool_name().prop_map(LockSubject::ToolNamed),
        id().prop_map(LockSubject::Question),
        id().prop_map(LockSubject::Subagent),
    ]
}

fn tool_name() -> impl Strategy<Value = String> {
    prop_oneof![Just("Bash".to_owned()), Just("Edit".to_owned())]
}

fn body() -> impl Strategy<Value = SignalBody> {
    let text = prop_oneof![Just("do it".to_owned()), "\\PC{0,8}"];
    prop_oneof![
        6 => option::of((text.clone(), prop_oneof![
            Just(PromptOrigin::Person), Just(PromptOrigin::Work), Just(PromptOrigin::Agent)
        ])).prop_map(|p| SignalBody::Started { prompt: p.map(|(text, origin)| Prompt { text, origin }) }),
        2 => prop_oneof![
            Just(StartCause::Startup), Just(StartCause::Resume), Just(StartCause::Clear),
            Just(StartCause::Compact), Just(StartCause::Fork), Just(StartCause::Other)
        ].prop_map(|cause| SignalBody::SessionStarted { cause }),
        4 => prop_oneof![
            Just(Activity::ModelOutput), Just(Activity::Progress), Just(Activity::CompactionStarted),
            Just(Activity::CompactionFinished), Just(Activity::Manual)
        ].prop_map(|what| SignalBody::Activity { what }),
        1 => text.clone().prop_map(|what| SignalBody::Displayed { what }),
        3 => (id(), tool_name()).prop_map(|(id, name)| SignalBody::ToolStarted { id, name }),
        3 => (id(), tool_name(), any::<bool>())
            .prop_map(|(id, name, failed)| SignalBody::ToolFinished { id, name, failed }),
        3 => (prop_oneof![
            Just("permission_prompt".to_owned()), Just("question".to_owned()), Just("ask_before_sleep".to_owned())
        ], subject()).prop_map(|(reason, subject)| SignalBody::SoftLocked { reason, subject }),
        2 => subject().prop_map(|subject| SignalBody::LockResolved { subject }),
        4 => (id(), kind(), option::of(process_ref()))
            .prop_map(|(id, what, process)| SignalBody::WorkStarted { id, what, label: None, process }),
        4 => id().prop_map(|id| SignalBody::WorkFinished { id, cause: WorkEnd::Completed }),
        2 => (vec(item(), 0..3), option::of(id()))
            .prop_map(|(live, except)| SignalBody::WorkLevel { live, except }),
        6 => (any::<bool>(), any::<bool>(), option::of(vec(item(), 0..2))).prop_map(|(can_continue, continued, live)| {
            SignalBody::Stopped { final_message: None, can_continue, continued, live }
        }),
        2 => (any::<bool>(), option::of(id()))
            .prop_map(|(tools_to_work, call)| SignalBody::Aborted { tools_to_work, call }),
        1 => any::<bool>().prop_map(|fatal| SignalBody::Failed { message: None, fatal }),
        1 => Just(SignalBody::IdleNoticed),
        3 => (prop_oneof![
            Just(EndReason::Reported), Just(EndReason::Cleared), Just(EndReason::Forked),
            Just(EndReason::Moved), Just(EndReason::Stopped)
        ], option::of(id())).prop_map(|(reason, successor)| SignalBody::SessionEnded { reason, successor }),
        4 => (prop_oneof![
            Just(AgentState::Busy), Just(AgentState::Idle), Just(AgentState::Shell),
            Just(AgentState::Waiting), Just(AgentState::Dialog), Just(AgentState::Gone)
        ], option::of(Just("permission prompt".to_owned())))
            .prop_map(|(state, waiting_for)| SignalBody::AgentStated { state, waiting_for }),
        2 => process_ref().prop_map(|process| SignalBody::ProcessExited { process }),
        1 => Just(SignalBody::Orphaned),
        1 => Just(SignalBody::Removed),
        1 => Just(SignalBody::SoftLockCleared),
        1 => text.prop_map(|event| SignalBody::Unknown { event }),
    ]
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![Just(Source::Hook), Just(Source::Spool), Just(Source::Transcript), Just(Source::AgentState)]
}

fn thread() -> impl Strategy<Value = Thread> {
    prop_oneof![6 => Just(Thread::Main), 1 => id().prop_map(Thread::Subagent)]
}

fn facts() -> impl Strategy<Value = Facts> {
    (
        prop_oneof![8 => Just(None), 1 => any::<bool>().prop_map(Some)],
        option::of(Just("/t/one.jsonl".to_owned())),
        prop_oneof![12 => Just(None), 1 => id().prop_map(|id| Some(Lineage::Parent(id)))],
    )
        .prop_map(|(can_ask, transcript, lineage)| Facts {
            can_ask,
            transcript,
            lineage,
            ..Facts::default()
        })
}

/// Arbitrary statements. `back_ms`: how long before now it happened.
pub(crate) fn signal() -> impl Strategy<Value = (Signal, Option<u64>)> {
    (
        (key(), option::weighted(0.1, (0u32..3).prop_map(Incarnation)), option::of(turn()), thread()),
        (0u128..40, source(), prop_oneof![3 => (0u64..5_000).prop_map(Some), 1 => Just(None)]),
        option::of((process_ref(), prop_oneof![4 => Just(false), 1 => Just(true)])),
        facts(),
        body(),
    )
        .prop_map(
            |((key, incarnation, turn, thread), (delivery, source, back), process, facts, body)| {
                let signal = Signal {
                    key,
                    incarnation,
                    turn,
                    thread,
                    delivery: DeliveryId(delivery),
                    source,
                    happened: None,
                    process: process.map(|(process, shared)| AgentProcess {
                        process,
                        shared,
                        declared: false,
                    }),
                    facts,
                    body,
                };
                (signal, back)
            },
        )
}

fn known<T: Clone + std::fmt::Debug + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Known<T>> {
    prop_oneof![3 => of.prop_map(Known::Is), 1 => Just(Known::Unknown)].boxed()
}

pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    (any::<[bool; 6]>(), prop_oneof![Just(KeepAwake::Off), Just(KeepAwake::Busy), Just(KeepAwake::On)])
        .prop_map(|([timeout, ask, sound, webhooks, cleanup, suspend], keep_awake)| Settings {
            keep_awake,
            inactivity_timeout: timeout.then_some(Duration::from_secs(720)),
            cleanup_delay: cleanup.then_some(Duration::from_secs(600)),
            record_prompts: RecordPrompts::Full,
            suspend,
            ask_before_sleep: ask,
            sound: sound.then(|| "bell".to_owned()),
            webhooks,
            ..Settings::default()
        })
}

fn probe() -> impl Strategy<Value = Probe> {
    prop_oneof![Just(Probe::Inactivity), Just(Probe::YoungerChild), Just(Probe::BackgroundQuiet)]
}

fn answer() -> impl Strategy<Value = ProbeAnswer> {
    (
        known(0u64..1_000_000),
        known(any::<bool>()),
        known(any::<bool>()),
        known(any::<bool>()),
        known(any::<bool>()),
        known(any::<bool>()),
    )
        .prop_map(
            |(tree_cpu_ms, stopped, agent_alive, background_alive, younger_child, background_moved)| {
                ProbeAnswer {
                    tree_cpu_ms,
                    stopped,
                    agent_alive,
                    background_alive,
                    younger_child,
                    background_moved,
                }
            },
        )
}

/// What a step of a run does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// A statement, so long after the last step, that happened so long before.
    Say {
        after_ms: u64,
        signal: Box<Signal>,
        back_ms: Option<u64>,
        held: Option<HookQuestion>,
    },
    Tell {
        after_ms: u64,
        body: Box<InputBody>,
    },
    /// Time runs to the next deadline, which is reported.
    Wait,
    /// The newest thing that the core asked for and nobody answered is answered.
    Answer {
        probe: Box<ProbeAnswer>,
        yes: bool,
    },
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let say = (
        0u64..2_000,
        signal(),
        option::weighted(0.2, prop_oneof![Just(HookQuestion::Stop), Just(HookQuestion::Permission)]),
    )
        .prop_map(|(after_ms, (signal, back_ms), held)| Act::Say {
            after_ms,
            signal: Box::new(signal),
            back_ms,
            held,
        });
    let tell =
        (0u64..2_000, other()).prop_map(|(after_ms, body)| Act::Tell { after_ms, body: Box::new(body) });
    let reply =
        (answer(), any::<bool>()).prop_map(|(probe, yes)| Act::Answer { probe: Box::new(probe), yes });
    prop_oneof![8 => say, 4 => tell, 4 => Just(Act::Wait), 4 => reply]
}

/// Only what moves the machine towards a sleep and through it.
pub(crate) fn quiet_act() -> impl Strategy<Value = Act> {
    let reply = (answer(), prop_oneof![3 => Just(true), 1 => Just(false)])
        .prop_map(|(probe, yes)| Act::Answer { probe: Box::new(probe), yes });
    let slept = Just(InputBody::SleepEnded { slept: Duration::from_secs(60) });
    let slept = slept.prop_map(|body| Act::Tell { after_ms: 10, body: Box::new(body) });
    let stops = signal().prop_map(|(mut signal, _)| {
        signal.key = SessionKey::new(AgentKind::Claude, "b");
        signal.turn = None;
        signal.delivery = DeliveryId(0);
        signal.thread = Thread::Main;
        signal.facts = Facts::default();
        signal.body = SignalBody::Aborted { tools_to_work: false, call: None };
        Act::Say { after_ms: 10, signal: Box::new(signal), back_ms: Some(0), held: None }
    });
    prop_oneof![2 => act(), 12 => Just(Act::Wait), 12 => reply, 1 => slept, 1 => stops]
}

/// A session works on a machine whose lid is shut then, and stops with a hook that waits. `waiting`: beside one that
/// waits for a person.
pub(crate) fn shut(mut ending: Signal, waiting: bool) -> Vec<Act> {
    let tell = |body| Act::Tell { after_ms: 10, body: Box::new(body) };
    ending.key = SessionKey::new(AgentKind::Claude, "a");
    ending.turn = Some(TurnId("t1".to_owned()));
    ending.delivery = DeliveryId(999);
    ending.thread = Thread::Main;
    ending.facts = Facts::default();
    ending.body =
        SignalBody::Stopped { final_message: None, can_continue: true, continued: false, live: None };
    let mut start = ending.clone();
    start.body = SignalBody::Started { prompt: None };
    start.delivery = DeliveryId(998);
    let say = |signal, held| Act::Say { after_ms: 10, signal: Box::new(signal), back_ms: Some(0), held };
    let mut other = start.clone();
    other.key.id = "b".to_owned();
    other.delivery = DeliveryId(997);
    let mut lock = other.clone();
    lock.body =
        SignalBody::SoftLocked { reason: "permission_prompt".to_owned(), subject: LockSubject::Session };
    lock.delivery = DeliveryId(996);
    let beside = if waiting { vec![say(other, None), say(lock, None)] } else { Vec::new() };
    let mut acts = vec![
        tell(InputBody::Displays { external_on: Known::Is(0) }),
        tell(InputBody::Lid { state: Known::Is(false) }),
        say(start, None),
        tell(InputBody::Lid { state: Known::Is(true) }),
    ];
    acts.extend(beside);
    acts.push(say(ending, Some(HookQuestion::Stop)));
    acts
}

fn other() -> impl Strategy<Value = InputBody> {
    let incarnation = || (0u32..3).prop_map(Incarnation);
    let delivery = || (0u128..40).prop_map(DeliveryId);
    let length = (0u64..100_000).prop_map(Duration::from_secs);
    prop_oneof![
        1 => settings().prop_map(|s| InputBody::SettingsChanged { settings: Box::new(s) }),
        1 => (id(), length).prop_map(|(id, length)| InputBody::LeaseTaken {
            id, owner: "me".to_owned(), reason: "build".to_owned(), length
        }),
        2 => id().prop_map(|id| InputBody::LeaseReleased { id }),
        4 => known(prop_oneof![3 => Just(true), 1 => Just(false)]).prop_map(|state| InputBody::Lid { state }),
        3 => known(prop_oneof![4 => Just(0u32), 1 => 1u32..3]).prop_map(|external_on| InputBody::Displays { external_on }),
        1 => (known(any::<bool>()), known(any::<u8>()))
            .prop_map(|(on_battery, percent)| InputBody::Power { on_battery, percent }),
        1 => Just(InputBody::SleepBegan),
        1 => (0u64..1_000).prop_map(|s| InputBody::SleepEnded { slept: Duration::from_secs(s) }),
        1 => any::<bool>().prop_map(|refused| InputBody::HoldReported {
            held: vec!["idle".to_owned()],
            refused: if refused {
                vec![Refused { kind: "handle-lid-switch".to_owned(), why: "denied".to_owned() }]
            } else {
                Vec::new()
            },
        }),
        3 => (key(), incarnation(), process_ref(), prop_oneof![
            6 => Just(WatchOutcome::Watching),
            1 => Just(WatchOutcome::AlreadyGone),
            1 => Just(WatchOutcome::Failed("no".to_owned()))
        ]).prop_map(|(key, incarnation, process, outcome)| InputBody::WatchReported {
            key, incarnation, process, outcome
        }),
        6 => (key(), incarnation(), probe(), answer()).prop_map(|(key, incarnation, probe, answer)| {
            InputBody::ProbeAnswered { key, incarnation, probe, answer }
        }),
        2 => any::<bool>().prop_map(|accepted| InputBody::SuspendReported { accepted, message: String::new() }),
        2 => any::<bool>().prop_map(|accepted| InputBody::WebhookReported { accepted }),
        2 => Just(InputBody::SoundEnded),
        2 => (key(), incarnation(), option::of(Just("go on".to_owned())))
            .prop_map(|(key, incarnation, message)| InputBody::ReplyReceived { key, incarnation, message }),
        1 => delivery().prop_map(|delivery| InputBody::HookGone { delivery }),
        1 => any::<bool>().prop_map(|clean| InputBody::RuntimeStarted { clean }),
        1 => (0u32..2).prop_map(|count| InputBody::Observers { count }),
        2 => deadline().prop_map(|deadline| InputBody::DeadlineReached { deadline }),
    ]
}

fn deadline() -> impl Strategy<Value = DeadlineKind> {
    prop_oneof![
        Just(DeadlineKind::Inactivity),
        key().prop_map(|key| DeadlineKind::WakeGrace { key }),
        key().prop_map(|key| DeadlineKind::WorkMax { key }),
        key().prop_map(|key| DeadlineKind::BackgroundQuiet { key }),
        key().prop_map(|key| DeadlineKind::Compaction { key }),
        (0u128..40).prop_map(|d| DeadlineKind::HeldHook { delivery: DeliveryId(d) }),
        id().prop_map(|id| DeadlineKind::LeaseExpiry { id }),
        Just(DeadlineKind::SuspendDelay),
        Just(DeadlineKind::AskBeforeSleep),
        Just(DeadlineKind::Webhook),
        Just(DeadlineKind::Sound),
        Just(DeadlineKind::SuspendRequest),
        Just(DeadlineKind::HoldVerify),
        Just(DeadlineKind::Cleanup),
    ]
}

/// Turns acts into inputs as a shell would: time moves on, deadlines are reported when they are due.
pub(crate) struct Run {
    pub(crate) core: Core,
    pub(crate) ms: u64,
    pub(crate) inputs: Vec<Input>,
    asked: Vec<Effect>,
}

impl Run {
    pub(crate) fn new(core: Core) -> Self {
        Self { core, ms: 100_000, inputs: Vec::new(), asked: Vec::new() }
    }

    pub(crate) fn input_of(&mut self, act: &Act) -> Option<Input> {
        match act {
            Act::Say { after_ms, signal, back_ms, held } => {
                self.ms += after_ms;
                let now = at(self.ms);
                let mut signal = signal.clone();
                signal.happened =
                    back_ms.map(|back| Stamp { boot: at(self.ms.saturating_sub(back)).boot, boot_id: BOOT });
                let held = held.map(|question| HeldHook { delivery: signal.delivery, question });
                Some(Input { now, body: InputBody::Signal { signal, held } })
            }
            Act::Tell { after_ms, body } => {
                self.ms += after_ms;
                Some(Input { now: at(self.ms), body: InputBody::clone(body) })
            }
            Act::Wait => {
                let (due, deadline) = self.core.next_deadline()?;
                self.ms = self.ms.max(due.0.div_ceil(1_000_000));
                Some(Input { now: at(self.ms), body: InputBody::DeadlineReached { deadline } })
            }
            Act::Answer { probe, yes } => {
                let body = match self.asked.pop()? {
                    Effect::Probe { key, incarnation, probe: asked } => {
                        InputBody::ProbeAnswered { key, incarnation, probe: asked, answer: **probe }
                    }
                    Effect::WatchProcess { key, incarnation, process } => InputBody::WatchReported {
                        key,
                        incarnation,
                        process,
                        outcome: WatchOutcome::Watching,
                    },
                    Effect::AskBeforeSleep { key, incarnation } => InputBody::ReplyReceived {
                        key,
                        incarnation,
                        message: yes.then(|| "go on".to_owned()),
                    },
                    Effect::Webhook { .. } => InputBody::WebhookReported { accepted: *yes },
                    Effect::PlaySound { .. } => InputBody::SoundEnded,
                    Effect::RequestSuspend { .. } => {
                        InputBody::SuspendReported { accepted: *yes, message: String::new() }
                    }
                    Effect::HoldHook { delivery, .. } => InputBody::HookGone { delivery },
                    Effect::SetHold { .. } => {
                        InputBody::HoldReported { held: vec!["idle".to_owned()], refused: Vec::new() }
                    }
                    Effect::UnwatchProcess { .. }
                    | Effect::FollowTranscript { .. }
                    | Effect::UnfollowTranscript { .. }
                    | Effect::AnswerHook { .. }
                    | Effect::WithdrawQuestion { .. }
                    | Effect::RecordSuspend { .. }
                    | Effect::BackUpLidAction
                    | Effect::ChangeLidAction
                    | Effect::RestoreLidAction
                    | Effect::Transitioned { .. }
                    | Effect::ExitRuntime => return None,
                };
                self.ms += 10;
                Some(Input { now: at(self.ms), body })
            }
        }
    }

    pub(crate) fn handle(&mut self, input: Input) -> watchkeeper_core::Outcome {
        let outcome = self.core.handle(&input);
        self.inputs.push(input);
        let answerable = |e: &&Effect| {
            matches!(
                e,
                Effect::Probe { .. }
                    | Effect::WatchProcess { .. }
                    | Effect::AskBeforeSleep { .. }
                    | Effect::Webhook { .. }
                    | Effect::PlaySound { .. }
                    | Effect::RequestSuspend { .. }
                    | Effect::HoldHook { .. }
                    | Effect::SetHold { .. }
            )
        };
        self.asked.extend(outcome.effects.iter().filter(answerable).cloned());
        outcome
    }
}
