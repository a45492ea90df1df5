//! What can happen, as plain data: a schedule can be printed, cut down and replayed.

use serde::{Deserialize, Serialize};
use watchkeeper_core::{
    effect::Effect,
    settings::{KeepAwake, Settings},
};

use super::dice::Dice;

/// Agents in one world.
pub(super) const AGENTS: u8 = 4;

/// Something that happens, so long after what happened before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) after_ms: u32,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Agent {
        agent: u8,
        act: Act,
        how: How,
    },
    Fault {
        effect: EffectKind,
        fault: Fault,
    },
    /// The daemon is killed and starts again, so much later.
    Crash {
        away_ms: u32,
    },
    /// The daemon stops in order and starts again.
    Restart {
        away_ms: u32,
    },
    /// The whole machine starts anew.
    Reboot,
    /// The machine sleeps without our asking.
    Sleep {
        ms: u32,
    },
    ClockSet {
        by_ms: i32,
    },
    Lid {
        closed: Option<bool>,
    },
    Displays {
        on: Option<u32>,
    },
    Power {
        on_battery: Option<bool>,
        percent: u8,
    },
    Lease {
        id: u8,
        seconds: u32,
    },
    Release {
        id: u8,
    },
    Settings {
        variant: u8,
    },
    Reply {
        agent: u8,
        text: bool,
    },
    Snapshot,
    Observers {
        count: u8,
    },
    /// A deadline is claimed to be reached that is not.
    FalseAlarm {
        kind: u8,
    },
    /// Many short sessions at once.
    Flood {
        count: u16,
    },
}

/// How a statement travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct How {
    pub(super) late_ms: u32,
    pub(super) twice: bool,
    pub(super) lost: bool,
}

/// What an agent, its person or somebody about it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Act {
    Prompt,
    Output,
    LateOutput,
    ToolStart,
    ToolEnd,
    Ask,
    AskInPrint,
    Answer,
    DialogTool,
    WorkStart(u8),
    WorkEnd,
    WorkEndWakes,
    WorkAgain,
    Level,
    Stop,
    StopListing,
    StopAgain,
    Interrupt,
    InterruptTools,
    Fail { fatal: bool },
    Idle,
    SessionStart(u8),
    End,
    Stopped,
    Clear,
    Moved,
    Kill,
    KillOne,
    SecondTerminal,
    CompactStart,
    CompactEnd,
    SubagentStart,
    SubagentWorks,
    SubagentStop,
    State(u8),
    OldState(u8),
    Display,
    OldTurn,
    OldIncarnation,
    MidTurn,
    UnknownSession(u8),
    LockByHand,
    ClearByHand,
    ActivityByHand,
    Remove,
    Orphaned,
    UnknownEvent,
    StuckTool,
    Pause,
}

/// Effects by name, for faults and for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EffectKind {
    SetHold,
    WatchProcess,
    UnwatchProcess,
    FollowTranscript,
    UnfollowTranscript,
    Probe,
    AnswerHook,
    HoldHook,
    Webhook,
    PlaySound,
    AskBeforeSleep,
    WithdrawQuestion,
    RequestSuspend,
    RecordSuspend,
    BackUpLidAction,
    ChangeLidAction,
    RestoreLidAction,
    Transitioned,
    ExitRuntime,
}

impl EffectKind {
    pub(super) const ALL: [Self; 19] = [
        Self::SetHold,
        Self::WatchProcess,
        Self::UnwatchProcess,
        Self::FollowTranscript,
        Self::UnfollowTranscript,
        Self::Probe,
        Self::AnswerHook,
        Self::HoldHook,
        Self::Webhook,
        Self::PlaySound,
        Self::AskBeforeSleep,
        Self::WithdrawQuestion,
        Self::RequestSuspend,
        Self::RecordSuspend,
        Self::BackUpLidAction,
        Self::ChangeLidAction,
        Self::RestoreLidAction,
        Self::Transitioned,
        Self::ExitRuntime,
    ];

    pub(super) const fn of(effect: &Effect) -> Self {
        match effect {
            Effect::SetHold { .. } => Self::SetHold,
            Effect::WatchProcess { .. } => Self::WatchProcess,
            Effect::UnwatchProcess { .. } => Self::UnwatchProcess,
            Effect::FollowTranscript { .. } => Self::FollowTranscript,
            Effect::UnfollowTranscript { .. } => Self::UnfollowTranscript,
            Effect::Probe { .. } => Self::Probe,
            Effect::AnswerHook { .. } => Self::AnswerHook,
            Effect::HoldHook { .. } => Self::HoldHook,
            Effect::Webhook { .. } => Self::Webhook,
            Effect::PlaySound { .. } => Self::PlaySound,
            Effect::AskBeforeSleep { .. } => Self::AskBeforeSleep,
            Effect::WithdrawQuestion { .. } => Self::WithdrawQuestion,
            Effect::RequestSuspend { .. } => Self::RequestSuspend,
            Effect::RecordSuspend { .. } => Self::RecordSuspend,
            Effect::BackUpLidAction => Self::BackUpLidAction,
            Effect::ChangeLidAction => Self::ChangeLidAction,
            Effect::RestoreLidAction => Self::RestoreLidAction,
            Effect::Transitioned { .. } => Self::Transitioned,
            Effect::ExitRuntime => Self::ExitRuntime,
        }
    }

    /// Faults that mean something: an effect that nobody answers can only be cut off by a crash.
    pub(super) const fn faults(self) -> &'static [Fault] {
        match self {
            Self::SetHold
            | Self::WatchProcess
            | Self::Probe
            | Self::Webhook
            | Self::PlaySound
            | Self::AskBeforeSleep
            | Self::RequestSuspend => &[Fault::Crash, Fault::Error, Fault::Delay],
            Self::HoldHook | Self::AnswerHook => &[Fault::Crash, Fault::Error],
            Self::UnwatchProcess
            | Self::FollowTranscript
            | Self::UnfollowTranscript
            | Self::WithdrawQuestion
            | Self::RecordSuspend
            | Self::Transitioned
            | Self::ExitRuntime
            | Self::BackUpLidAction
            | Self::ChangeLidAction
            | Self::RestoreLidAction => &[Fault::Crash],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    Crash,
    Error,
    Delay,
}

/// The settings that worlds run with.
pub(super) fn settings(variant: u8) -> Settings {
    use std::time::Duration as D;
    let mut settings = Settings {
        suspend: variant & 1 == 0,
        ask_before_sleep: variant & 2 == 0,
        webhooks: variant & 4 == 0,
        sound: (variant & 8 == 0).then(|| "chime".to_owned()),
        ..Settings::default()
    };
    match (variant >> 4) & 7 {
        0 => settings.inactivity_timeout = None,
        1 => settings.keep_awake = KeepAwake::Off,
        2 => settings.keep_awake = KeepAwake::On,
        3 => settings.cleanup_delay = Some(D::from_secs(30)),
        4 => settings.post_stop_delay = D::ZERO,
        5 => settings.work_max = D::from_secs(20 * 60),
        6 => settings.watch_parent_process = false,
        _ => {}
    }
    settings
}

/// The schedule of a seed: at least one fault is always in it.
pub(super) fn schedule(seed: u64, steps: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let away = dice.percent(40);
    let mut all = Vec::with_capacity(steps + 4);
    // Most worlds can suspend; a quarter of them choose freely.
    let variant = if dice.percent(75) {
        u8::try_from(dice.below(8)).unwrap_or(0) << 4
    } else {
        u8::try_from(dice.below(128)).unwrap_or(0)
    };
    all.push(Step { after_ms: 0, what: What::Settings { variant } });
    all.push(Step { after_ms: 0, what: What::Displays { on: Some(0) } });
    all.push(Step { after_ms: 0, what: What::Lid { closed: Some(away) } });
    while all.len() < steps {
        let after_ms = wait(&mut dice);
        let what = happening(&mut dice, away);
        all.push(Step { after_ms, what });
    }
    let at = 3 + dice.below(u32::try_from(steps.saturating_sub(3)).unwrap_or(1)) as usize;
    all.insert(at.min(all.len()), Step { after_ms: 10, what: fault(&mut dice) });
    if dice.below(300) == 0 {
        all.push(Step { after_ms: 10, what: What::Flood { count: 1200 } });
    }
    all
}

fn wait(dice: &mut Dice) -> u32 {
    match dice.below(100) {
        0..60 => dice.below(3_000),
        60..85 => dice.below(15_000),
        85..94 => dice.below(120_000),
        94..98 => 600_000 + dice.below(600_000),
        98 => 1_800_000 + dice.below(600_000),
        _ => 3_600_000 * (1 + dice.below(6)),
    }
}

fn happening(dice: &mut Dice, away: bool) -> What {
    match dice.below(100) {
        0..76 => What::Agent {
            agent: u8::try_from(dice.below(u32::from(AGENTS))).unwrap_or(0),
            act: act(dice),
            how: how(dice),
        },
        76..81 => fault(dice),
        81..83 => What::Crash { away_ms: dice.below(5_000) },
        83 => What::Restart { away_ms: dice.below(60_000) },
        84 => match dice.below(6) {
            0 => What::Reboot,
            1 => What::Flood { count: 3 },
            _ => What::FalseAlarm { kind: u8::try_from(dice.below(14)).unwrap_or(0) },
        },
        85 => What::Sleep { ms: dice.below(3_600_000) },
        86 => What::ClockSet { by_ms: i32::try_from(dice.below(7_200_000)).unwrap_or(0) - 3_600_000 },
        87..90 => What::Lid {
            closed: dice.pick(&[(if away { 8 } else { 3 }, Some(true)), (3, Some(false)), (1, None)]),
        },
        90 => What::Displays { on: dice.pick(&[(6, Some(0)), (2, Some(1)), (1, None)]) },
        91 => What::Power {
            on_battery: dice.pick(&[(2, Some(true)), (2, Some(false)), (1, None)]),
            percent: 50,
        },
        92..94 => What::Lease { id: u8::try_from(dice.below(2)).unwrap_or(0), seconds: 1 + dice.below(120) },
        94 => What::Release { id: u8::try_from(dice.below(2)).unwrap_or(0) },
        95 => What::Settings { variant: u8::try_from(dice.below(128)).unwrap_or(0) },
        96 | 97 => What::Reply {
            agent: u8::try_from(dice.below(u32::from(AGENTS))).unwrap_or(0),
            text: dice.percent(50),
        },
        98 => What::Snapshot,
        _ => What::Observers { count: u8::try_from(dice.below(2)).unwrap_or(0) },
    }
}

fn fault(dice: &mut Dice) -> What {
    let effect = EffectKind::ALL[dice.below(19) as usize];
    let faults = effect.faults();
    let at = dice.below(u32::try_from(faults.len()).unwrap_or(1)) as usize;
    What::Fault { effect, fault: faults[at] }
}

fn how(dice: &mut Dice) -> How {
    match dice.below(20) {
        0 => How { lost: true, ..How::default() },
        1 => How { twice: true, late_ms: dice.below(500), ..How::default() },
        2..5 => How { late_ms: dice.below(4_000), ..How::default() },
        _ => How::default(),
    }
}

fn act(dice: &mut Dice) -> Act {
    let n = |dice: &mut Dice, limit| u8::try_from(dice.below(limit)).unwrap_or(0);
    let (work, cause, state, kind) = (n(dice, 6), n(dice, 6), n(dice, 6), n(dice, 8));
    dice.pick(&[
        (14, Act::Prompt),
        (5, Act::Output),
        (4, Act::LateOutput),
        (7, Act::ToolStart),
        (6, Act::ToolEnd),
        (6, Act::Ask),
        (1, Act::AskInPrint),
        (4, Act::Answer),
        (1, Act::DialogTool),
        (5, Act::WorkStart(work)),
        (4, Act::WorkEnd),
        (2, Act::WorkEndWakes),
        (1, Act::WorkAgain),
        (2, Act::Level),
        (10, Act::Stop),
        (5, Act::StopListing),
        (1, Act::StopAgain),
        (4, Act::Interrupt),
        (1, Act::InterruptTools),
        (1, Act::Fail { fatal: false }),
        (1, Act::Fail { fatal: true }),
        (1, Act::Idle),
        (3, Act::SessionStart(cause)),
        (3, Act::End),
        (1, Act::Stopped),
        (2, Act::Clear),
        (1, Act::Moved),
        (3, Act::Kill),
        (1, Act::KillOne),
        (1, Act::SecondTerminal),
        (2, Act::CompactStart),
        (2, Act::CompactEnd),
        (2, Act::SubagentStart),
        (2, Act::SubagentWorks),
        (2, Act::SubagentStop),
        (5, Act::State(state)),
        (1, Act::OldState(state)),
        (3, Act::Display),
        (2, Act::OldTurn),
        (1, Act::OldIncarnation),
        (2, Act::MidTurn),
        (1, Act::UnknownSession(kind)),
        (1, Act::LockByHand),
        (1, Act::ClearByHand),
        (1, Act::ActivityByHand),
        (1, Act::Remove),
        (1, Act::Orphaned),
        (1, Act::UnknownEvent),
        (1, Act::StuckTool),
        (1, Act::Pause),
    ])
}
