//! Compares derived states with labels, as the corpus says: a state must be right at every labelled instant, with one
//! second to follow the first evidence.

use std::collections::BTreeMap;
use watchkeeper_core::view::ShownState;

use super::{load::Recording, replay::Replay};

mod stale;

/// How far a transition may lag the first evidence, in seconds.
pub(crate) const TOLERANCE_S: f64 = 1.0;

/// One derived state.
#[derive(Debug, Clone)]
pub struct Interval {
    pub session: String,
    pub state: ShownState,
    pub from: f64,
    /// `None`: up to the end.
    pub to: Option<f64>,
}

/// A piece of labelled time at which another state was shown.
#[derive(Debug, Clone)]
pub struct Wrong {
    pub session: String,
    pub from: f64,
    pub to: f64,
    pub is: ShownState,
    /// `None`: nothing.
    pub shown: Option<ShownState>,
    /// Since when the label says so.
    pub since: f64,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { session, from, to, is, shown, since: _ } = self;
        let shown = shown.map_or("nothing", ShownState::name);
        write!(f, "{from:.3}-{to:.3} {} is {}, shown {shown}", short(session), is.name())
    }
}

/// The verdict on one recording.
#[derive(Debug)]
pub struct Judged {
    pub intervals: Vec<Interval>,
    /// Labelled seconds (after the tolerance) at which another state was shown, or one that was true of no label near.
    pub wrong_s: f64,
    /// Labels whose state was shown, but only after the tolerance.
    pub late: u32,
    /// Each piece of wrong time.
    pub wrong: Vec<Wrong>,
    /// Right and labelled seconds of each state.
    pub seconds: BTreeMap<ShownState, (f64, f64)>,
    /// Whether the machine was kept awake at the start and end of each label.
    pub boundaries: Vec<(f64, bool)>,
    pub protects_at_end: bool,
    pub end_ok: bool,
    /// Sessions that nobody had: ids of subagents and hidden threads that were shown alive.
    pub unlisted: Vec<String>,
    pub violations: Vec<String>,
}

impl Judged {
    #[must_use]
    pub fn right(&self) -> bool {
        self.wrong_s == 0.0
            && self.late == 0
            && self.end_ok
            && self.unlisted.is_empty()
            && self.violations.is_empty()
    }
}

/// The mean over the states that were labelled of the share of time at which they were recognised.
#[must_use]
pub(super) fn recall(seconds: &BTreeMap<ShownState, (f64, f64)>) -> Option<f64> {
    let shares: Vec<f64> =
        seconds.values().filter(|(_, all)| *all > 0.0).map(|(right, all)| right / all).collect();
    #[expect(clippy::cast_precision_loss, reason = "five states")]
    let count = shares.len() as f64;
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / count)
}

/// Judges a finished replay.
#[must_use]
pub fn judge(recording: &Recording, replay: &Replay) -> Judged {
    judge_within(recording, replay, TOLERANCE_S)
}

/// Judges a replay in which what happened is noticed later than it was recorded.
#[must_use]
pub(crate) fn judge_within(recording: &Recording, replay: &Replay, tolerance_s: f64) -> Judged {
    let intervals = intervals(replay);
    let (mut wrong_s, mut late, mut wrong) = (0.0, 0, Vec::new());
    let mut seconds: BTreeMap<ShownState, (f64, f64)> = BTreeMap::new();
    for label in &recording.labels {
        let (from, to) = (label.from + tolerance_s, label.to);
        if from >= to {
            continue;
        }
        let mut right = 0.0;
        let mut wrong_at_start = true;
        let mut seen: Vec<(f64, f64, Option<ShownState>)> = Vec::new();
        let mut covered = from;
        for interval in intervals.iter().filter(|i| i.session == label.session) {
            let (a, b) = (interval.from.max(from), interval.to.unwrap_or(f64::INFINITY).min(to));
            if a >= b {
                continue;
            }
            if a > covered {
                seen.push((covered, a, None));
            }
            covered = b;
            if interval.state == label.state {
                right += b - a;
                wrong_at_start &= a > from;
            } else {
                seen.push((a, b, Some(interval.state)));
            }
        }
        if covered < to {
            seen.push((covered, to, None));
        }
        for (from, to, shown) in seen {
            wrong_s += to - from;
            let session = label.session.clone();
            wrong.push(Wrong { session, from, to, is: label.state, shown, since: label.from });
        }
        if wrong_at_start && right > 0.0 {
            late += 1;
        }
        let entry = seconds.entry(label.state).or_default();
        entry.0 += right;
        entry.1 += to - from;
    }
    let stale = stale::stale(recording, &intervals, tolerance_s);
    wrong_s += stale.iter().map(|piece| piece.to - piece.from).sum::<f64>();
    wrong.extend(stale);
    let mut bounds: Vec<f64> = recording.labels.iter().flat_map(|l| [l.from, l.to]).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let protects_at_end = replay.protects_at(f64::INFINITY);
    let listed = |id: &str| recording.sessions.iter().any(|s| s == id);
    let mut unlisted: Vec<String> = intervals
        .iter()
        .filter(|i| i.state != ShownState::Ended && !listed(&i.session))
        .map(|i| i.session.clone())
        .collect();
    unlisted.dedup();
    Judged {
        intervals,
        wrong_s: (wrong_s * 1000.0).round() / 1000.0,
        late,
        wrong,
        seconds,
        boundaries: bounds.into_iter().map(|t| (t, replay.protects_at(t))).collect(),
        protects_at_end,
        end_ok: protects_at_end == recording.protects_at_end,
        unlisted,
        violations: replay.violations.clone(),
    }
}

fn intervals(replay: &Replay) -> Vec<Interval> {
    let mut all = Vec::new();
    for (key, changes) in replay.timeline() {
        // States of no length were never seen by anybody.
        let ends = changes.iter().skip(1).map(|(t, _)| Some(*t)).chain([None]);
        for ((from, state), to) in changes.iter().zip(ends) {
            if to != Some(*from) {
                all.push(Interval { session: key.id.clone(), state: *state, from: *from, to });
            }
        }
    }
    all
}

/// Enough of an id to tell it from its neighbours.
pub(super) fn short(id: &str) -> &str {
    id.get(..13).unwrap_or(id)
}

#[cfg(test)]
mod tests;
