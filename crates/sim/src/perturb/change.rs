//! What goes wrong, one thing a run: hooks that are lost, late, repeated or in another order, transcripts that are written
//! late, and a daemon that is killed. Nothing here looks at what a hook says.

use crate::{
    recordings::{Event, EventKind, NoAdapter, Recording, Replay},
    world::Dice,
};

/// How much later than it began a hook may arrive, in seconds: a machine under load, or one that just woke.
pub(super) const HOOK_DELAY_MAX_S: f64 = 2.0;
/// How much later than it says a record may be written, in seconds: agents write behind what they do, some file systems late.
pub(super) const WRITE_DELAY_S: f64 = 1.0;
/// How long nobody runs when the daemon is killed and started again by the next hook or service manager, in seconds.
pub(super) const AWAY_S: f64 = 2.0;
/// Hooks further apart than this are not started at the same time, so that none overtakes the other, in seconds.
pub(super) const SWAPPED_WITHIN_S: f64 = 1.0;
/// Runs with delays by chance of each recording.
const DELAY_SEEDS: u64 = 8;
/// How long after the first one a repetition comes, in seconds: at once (installed twice), and after a hook gave up waiting for
/// the acknowledgement and spooled.
const REPEATED_AFTER_S: [f64; 2] = [0.0, 1.0];
/// How much later a second hook begins that the agent starts for the same event, in seconds.
const SECOND_BEGINS_S: f64 = 0.02;

/// The kinds, as they are named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Each hook lost in turn
    Dropped,
    /// All hooks arrive up to 2 s late, in any order
    Delayed,
    /// Every hook's delivery arrives twice
    Repeated,
    /// The agent starts two hooks for every event
    Doubled,
    /// Two neighbouring hooks arrive in the other order
    Swapped,
    /// Transcripts are written 1 s late
    LateTranscript,
    /// The daemon is killed after each event and starts at once
    Restarted,
    /// The daemon is killed before each event and starts 2 s later
    Away,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Dropped,
        Self::Delayed,
        Self::Repeated,
        Self::Doubled,
        Self::Swapped,
        Self::LateTranscript,
        Self::Restarted,
        Self::Away,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Delayed => "delayed",
            Self::Repeated => "repeated",
            Self::Doubled => "doubled",
            Self::Swapped => "swapped",
            Self::LateTranscript => "late-transcript",
            Self::Restarted => "restarted",
            Self::Away => "away",
        }
    }

    /// Seconds by which what was noticed may be late by this alone.
    #[must_use]
    pub const fn lateness_s(self) -> f64 {
        match self {
            Self::Dropped | Self::Doubled | Self::Restarted => 0.0,
            Self::Repeated => REPEATED_AFTER_S[1],
            Self::Delayed => HOOK_DELAY_MAX_S,
            Self::Swapped => SWAPPED_WITHIN_S,
            Self::LateTranscript => WRITE_DELAY_S,
            Self::Away => AWAY_S,
        }
    }
}

/// One disturbance of one recording. Events are named by their places in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    Drop(usize),
    Delay { seed: u64 },
    Repeat { after_s: f64 },
    Double { after_s: f64 },
    Swap { first: usize, second: usize },
    LateTranscript,
    Restart(usize),
    Away(usize),
}

impl Change {
    /// Every disturbance of this kind.
    pub fn all(kind: Kind, recording: &Recording) -> Vec<Self> {
        let events = &recording.events;
        let hooks: Vec<usize> =
            events.iter().enumerate().filter(|(_, e)| is_hook(e)).map(|(at, _)| at).collect();
        let noticed = events.iter().enumerate().filter(|(_, e)| !matches!(e.kind, EventKind::Other));
        match kind {
            Kind::Dropped => hooks.into_iter().map(Self::Drop).collect(),
            Kind::Delayed => (1..=DELAY_SEEDS).map(|seed| Self::Delay { seed }).collect(),
            Kind::Repeated => REPEATED_AFTER_S.map(|after_s| Self::Repeat { after_s }).to_vec(),
            Kind::Doubled => REPEATED_AFTER_S.map(|after_s| Self::Double { after_s }).to_vec(),
            Kind::Swapped => {
                let pairs = hooks.iter().zip(hooks.iter().skip(1));
                let near = |first: usize, second: usize| {
                    let times = events.get(first).zip(events.get(second));
                    times.is_some_and(|(a, b)| b.t - a.t < SWAPPED_WITHIN_S)
                };
                pairs
                    .filter(|(first, second)| near(**first, **second))
                    .map(|(first, second)| Self::Swap { first: *first, second: *second })
                    .collect()
            }
            Kind::LateTranscript => vec![Self::LateTranscript],
            Kind::Restarted => noticed.map(|(at, _)| Self::Restart(at)).collect(),
            Kind::Away => noticed.map(|(at, _)| Self::Away(at)).collect(),
        }
    }

    /// In a few words, for a person who has the recording.
    pub fn describe(self, recording: &Recording) -> String {
        let name = |at: usize| recording.events.get(at).map_or_else(String::new, describe);
        match self {
            Self::Drop(at) => format!("without {}", name(at)),
            Self::Delay { seed } => format!("hooks delayed, seed {seed}"),
            Self::Repeat { after_s } => format!("hooks repeated after {after_s} s"),
            Self::Double { after_s } => format!("hooks doubled, the second arrives after {after_s} s"),
            Self::Swap { first, second } => format!("{} behind {}", name(first), name(second)),
            Self::LateTranscript => "transcripts written late".to_owned(),
            Self::Restart(at) => format!("restarted after {}", name(at)),
            Self::Away(at) => format!("away from {}", name(at)),
        }
    }

    /// Plays the recording with this disturbance, up to its end.
    ///
    /// # Errors
    /// When no adapter is built in for the recording's agent.
    pub fn play(self, recording: &Recording, mut replay: Replay) -> Result<Replay, NoAdapter> {
        let events = &recording.events;
        match self {
            Self::Drop(dropped) => {
                for (at, event) in events.iter().enumerate() {
                    if at != dropped {
                        replay.event(event);
                    }
                }
            }
            Self::Restart(last) => {
                replay.keep_journal();
                for (at, event) in events.iter().enumerate() {
                    replay.event(event);
                    if at == last {
                        replay.kill();
                        replay.restart(event.t);
                    }
                }
            }
            Self::Away(first) => {
                replay.keep_journal();
                let mut back = None;
                for (at, event) in events.iter().enumerate() {
                    if let Some(t) = back.filter(|t| *t <= event.t) {
                        replay.restart(t);
                        back = None;
                    }
                    if at == first {
                        replay.advance(event.t);
                        replay.kill();
                        back = Some(event.t + AWAY_S);
                    }
                    replay.event(event);
                }
                if let Some(t) = back {
                    replay.restart(t);
                }
            }
            Self::Delay { .. }
            | Self::Repeat { .. }
            | Self::Double { .. }
            | Self::Swap { .. }
            | Self::LateTranscript => {
                for event in self.rearranged(events) {
                    replay.event(&event);
                }
            }
        }
        replay.advance(recording.end() + AWAY_S);
        Ok(replay)
    }

    /// The events as they arrive.
    pub(super) fn rearranged(self, events: &[Event]) -> Vec<Event> {
        let mut all = events.to_vec();
        match self {
            Self::Delay { seed } => {
                let mut dice = Dice::new(seed);
                for event in all.iter_mut().filter(|e| is_hook(e)) {
                    event.t += HOOK_DELAY_MAX_S * f64::from(dice.below(1001)) / 1000.0;
                }
            }
            Self::LateTranscript => {
                for event in all.iter_mut().filter(|e| matches!(e.kind, EventKind::Transcript { .. })) {
                    event.t += WRITE_DELAY_S;
                }
            }
            Self::Repeat { after_s } => {
                let again = events.iter().filter(|e| is_hook(e)).cloned();
                all.extend(again.map(|event| Event { t: event.t + after_s, ..event }));
            }
            Self::Double { after_s } => {
                // Behind all deliveries that there are.
                let free = events.iter().map(delivery_of).max().unwrap_or(0) + 1;
                let second = |mut event: Event| {
                    event.t += SECOND_BEGINS_S + after_s;
                    if let EventKind::Hook { begun, delivery, .. } = &mut event.kind {
                        *begun += SECOND_BEGINS_S;
                        *delivery += free;
                    }
                    event
                };
                all.extend(events.iter().filter(|e| is_hook(e)).cloned().map(second));
            }
            Self::Swap { first, second } => {
                if first < second && second < all.len() {
                    let mut late = all.remove(first);
                    // What stood behind it moved one place up.
                    late.t = all.get(second - 1).map_or(late.t, |e| e.t);
                    all.insert(second, late);
                }
            }
            Self::Drop(_) | Self::Restart(_) | Self::Away(_) => {}
        }
        all.sort_by(|a, b| a.t.total_cmp(&b.t));
        all
    }
}

fn is_hook(event: &Event) -> bool {
    matches!(event.kind, EventKind::Hook { .. })
}

fn delivery_of(event: &Event) -> u64 {
    match &event.kind {
        EventKind::Hook { delivery, .. } => *delivery,
        EventKind::Transcript { .. }
        | EventKind::Registry { .. }
        | EventKind::Exit { .. }
        | EventKind::Other => 0,
    }
}

fn describe(event: &Event) -> String {
    let what = match &event.kind {
        EventKind::Hook { event, .. } => event.clone(),
        EventKind::Transcript { .. } => "a record".to_owned(),
        EventKind::Registry { .. } => "a state file".to_owned(),
        EventKind::Exit { pid } => format!("the exit of {pid}"),
        EventKind::Other => "a mark".to_owned(),
    };
    format!("{what} at {:.3}", event.t)
}
