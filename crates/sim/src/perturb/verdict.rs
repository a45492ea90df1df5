//! What came of a disturbed replay, by the labels and by what the undisturbed one showed at its end.

use std::collections::{BTreeMap, BTreeSet};
use watchkeeper_core::view::{SessionView, ShownState};

use super::{
    bounds::{INACTIVITY_S, LOOKS_AFTER_RESTART, MARGIN_S, RULES},
    change::{AWAY_S, Change, Kind},
    evidence::tells,
    unseen::unseen,
};
use crate::recordings::{
    Judged, Label, NoAdapter, Recording, Replay, TOLERANCE_S, Told, Truth, Wrong, judge, judge_within,
    word_for,
};

/// Why nobody could tell what became of a session.
const UNSEEN: &str = "its agent was gone when the first hook arrived that begins it";

/// What came of one run, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As if nothing had gone wrong.
    Right,
    /// Right within the bound of its kind.
    Converged,
    /// A state that only the lost hook tells was not shown, up to the next one's evidence; the machine was kept awake, or not, as
    /// it must.
    Untold,
    /// Only the lost hook tells that a turn runs, so that the machine may sleep up to the next evidence.
    Unheld,
    /// Only the lost hook tells that nothing runs, so that the machine is kept awake up to the inactivity rule at most.
    Inactivity,
    /// None of these: beyond its bound, or for ever.
    Wrong,
}

/// One run.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Verdict {
    pub recording: String,
    #[serde(skip)]
    pub folder: String,
    pub kind: Kind,
    pub change: String,
    pub outcome: Outcome,
    /// Why it is not right.
    pub notes: Vec<String>,
}

/// What a recording's disturbed replays are compared with.
#[derive(Debug)]
pub struct Baseline {
    truth: Truth,
    told: Vec<Told>,
    last: BTreeMap<String, ShownState>,
}

impl Baseline {
    /// Replays it undisturbed.
    ///
    /// # Errors
    /// When no adapter is built in for the recording's agent.
    pub fn of(recording: &Recording) -> Result<Self, NoAdapter> {
        let truth = Truth::of(recording);
        let mut replay = Replay::new(recording)?;
        replay.know(truth.clone());
        replay.listen();
        replay.run(&recording.events, recording.end() + AWAY_S);
        let told = replay.heard();
        replay.advance(past_the_rule(recording, Kind::Dropped));
        Ok(Self { truth, told, last: last_states(&replay) })
    }
}

/// Plays one disturbance and judges it.
///
/// # Errors
/// When no adapter is built in for the recording's agent.
pub fn verdict(
    recording: &Recording,
    baseline: &Baseline,
    kind: Kind,
    change: Change,
) -> Result<Verdict, NoAdapter> {
    let mut replay = Replay::new(recording)?;
    replay.know(baseline.truth.clone());
    let mut replay = change.play(recording, replay)?;
    let (at_end, sessions_at_end) = (replay.protects_at(f64::INFINITY), replay.core().sessions());
    let at_once = judge(recording, &replay);
    let within = judge_within(recording, &replay, TOLERANCE_S + kind.lateness_s());
    replay.advance(past_the_rule(recording, kind));
    let unseen = unseen(recording, &baseline.told, change);
    let case = Case { recording, baseline, change, unseen, replay: &replay };
    let mut found = Found::default();
    for violation in &replay.violations {
        found.add(Outcome::Wrong, violation.clone());
    }
    if replay.protects_at(f64::INFINITY) != recording.protects_at_end {
        found.add(Outcome::Wrong, "the machine is kept awake, or not, for ever".to_owned());
    } else if at_end != recording.protects_at_end {
        case.at_the_end(&sessions_at_end, &mut found);
    }
    case.last_states(&mut found);
    if !at_once.wrong.is_empty() {
        found.add(Outcome::Converged, String::new());
    }
    for wrong in &within.wrong {
        case.wrong_piece(wrong, &mut found)?;
    }
    case.unlisted(kind, &within, &mut found);
    found.notes.retain(|note| !note.is_empty());
    Ok(Verdict {
        recording: recording.name.clone(),
        folder: recording.folder.clone(),
        kind,
        change: change.describe(recording),
        outcome: found.outcome.unwrap_or(Outcome::Right),
        notes: found.notes,
    })
}

/// Behind every deadline that may be needed.
fn past_the_rule(recording: &Recording, kind: Kind) -> f64 {
    let looks = match kind {
        Kind::Restarted | Kind::Away => LOOKS_AFTER_RESTART,
        Kind::Dropped
        | Kind::Delayed
        | Kind::Repeated
        | Kind::Doubled
        | Kind::Swapped
        | Kind::LateTranscript => 1.0,
    };
    recording.end() + AWAY_S + looks * INACTIVITY_S + MARGIN_S
}

/// The worst so far, and why.
#[derive(Debug, Default)]
struct Found {
    outcome: Option<Outcome>,
    notes: Vec<String>,
}

impl Found {
    fn add(&mut self, outcome: Outcome, note: String) {
        self.outcome = self.outcome.max(Some(outcome));
        self.notes.push(note);
    }
}

struct Case<'a> {
    recording: &'a Recording,
    baseline: &'a Baseline,
    change: Change,
    /// Sessions that nobody could see end.
    unseen: BTreeSet<String>,
    replay: &'a Replay,
}

impl Case<'_> {
    /// Kept awake at its end, or not, as it must not be, and right by the rule: every session that has a part in it is looked at.
    fn at_the_end(&self, sessions: &[SessionView], found: &mut Found) {
        let end = self.recording.end() + AWAY_S;
        let needs = |state| matches!(state, ShownState::Working | ShownState::Background);
        let truth: BTreeMap<&str, &Label> =
            self.baseline.truth.last().map(|l| (l.session.as_str(), l)).collect();
        let shown: BTreeMap<&str, &SessionView> = sessions.iter().map(|s| (s.key.id.as_str(), s)).collect();
        let before = found.notes.len();
        if self.recording.protects_at_end {
            for (id, label) in truth.iter().filter(|(_, label)| needs(label.state)) {
                let now = shown.get(id);
                if now.is_some_and(|s| s.protects) {
                    continue;
                }
                let note =
                    format!("{} is {} at the end, the machine may sleep", short(id), label.state.name());
                let now = now.map(|s| s.state);
                match self.other_evidence(id, label.state, now, label.from, end) {
                    Some(told) => found.add(Outcome::Wrong, format!("{note}, although told by {told}")),
                    None => found.add(Outcome::Unheld, note),
                }
            }
        } else {
            for (id, session) in shown.iter().filter(|(_, s)| s.protects) {
                let note = format!("{} kept the machine awake up to the inactivity rule", short(id));
                let Some(label) = truth.get(id).filter(|label| !needs(label.state)) else {
                    found.add(Outcome::Wrong, format!("{note}, without a reason"));
                    continue;
                };
                if self.is_unseen(id, label.state) {
                    found.add(Outcome::Inactivity, format!("{note}: {UNSEEN}"));
                    continue;
                }
                match self.other_evidence(id, label.state, Some(session.state), label.from, end) {
                    Some(told) => found.add(Outcome::Wrong, format!("{note}, although told by {told}")),
                    None => found.add(Outcome::Inactivity, note),
                }
            }
        }
        if found.notes.len() == before {
            found.add(Outcome::Wrong, "kept awake at the end, or not, by no session".to_owned());
        }
    }

    fn is_unseen(&self, session: &str, is: ShownState) -> bool {
        is == ShownState::Ended && self.unseen.contains(session)
    }

    /// What nobody had and was shown as a session. A subagent whose first word overtakes the one that announces it is taken for a
    /// session until that comes; where nothing is late, and nothing is lost, there is never one.
    fn unlisted(&self, kind: Kind, within: &Judged, found: &mut Found) {
        for interval in within.intervals.iter().filter(|i| within.unlisted.contains(&i.session)) {
            if interval.state == ShownState::Ended {
                continue;
            }
            let seconds = interval.to.map_or(f64::INFINITY, |to| to - interval.from);
            let note = format!(
                "{} is no session, shown {} for {seconds:.3} s",
                interval.session,
                interval.state.name()
            );
            let outcome = match self.change {
                Change::Drop(_) => Outcome::Untold,
                Change::Delay { .. } if seconds <= kind.lateness_s() => Outcome::Converged,
                Change::Delay { .. }
                | Change::Repeat { .. }
                | Change::Double { .. }
                | Change::Swap { .. }
                | Change::LateTranscript
                | Change::Restart(_)
                | Change::Away(_) => Outcome::Wrong,
            };
            found.add(outcome, note);
        }
    }

    fn last_states(&self, found: &mut Found) {
        let shown = last_states(self.replay);
        for (session, is) in &self.baseline.last {
            let now = shown.get(session).copied();
            if now == Some(*is) || (now.is_none() && *is == ShownState::Ended) {
                continue;
            }
            let label = self.recording.labels.iter().rev().find(|l| l.session == *session);
            let since = label.filter(|l| l.state == *is).map_or(0.0, |l| l.from);
            let shows = now.map_or("nothing", ShownState::name);
            let note = format!("{} is {} in the end, shown {shows}", short(session), is.name());
            if self.is_unseen(session, *is) {
                found.add(cost_of_a_state(now), format!("{note}: {UNSEEN}"));
                continue;
            }
            match self.other_evidence(session, *is, now, since, f64::INFINITY) {
                Some(told) => found.add(Outcome::Wrong, format!("{note}, although told by {told}")),
                None => found.add(cost_of_a_state(now), note),
            }
        }
        for (session, state) in &shown {
            if !self.baseline.last.contains_key(session) && *state != ShownState::Ended {
                found
                    .add(Outcome::Wrong, format!("{} is no session, shown {}", short(session), state.name()));
            }
        }
    }

    fn wrong_piece(&self, wrong: &Wrong, found: &mut Found) -> Result<(), NoAdapter> {
        if self.is_unseen(&wrong.session, wrong.is) {
            found.add(Outcome::Untold, format!("{wrong}: {UNSEEN}"));
            return Ok(());
        }
        let until = wrong.to - TOLERANCE_S;
        if let Some(told) = self.other_evidence(&wrong.session, wrong.is, wrong.shown, wrong.since, until) {
            found.add(Outcome::Wrong, format!("{wrong}, although told by {told}"));
            return Ok(());
        }
        let (outcome, cost) = self.at_rest(wrong.to)?;
        found.add(outcome, format!("{wrong}{cost}"));
        Ok(())
    }

    /// What a lost hook costs when nothing more happens from `t` on: the recordings' persons go on within seconds, others go home.
    fn at_rest(&self, t: f64) -> Result<(Outcome, String), NoAdapter> {
        let mut right = self.up_to(t, None)?;
        let mut disturbed = self.up_to(t, Some(self.change))?;
        let awake = |replay: &Replay| replay.protects_at(f64::INFINITY);
        match (awake(&right), awake(&disturbed)) {
            (true, false) => return Ok((Outcome::Unheld, "; the machine may sleep".to_owned())),
            (false, true) => {}
            (true, true) | (false, false) => return Ok((Outcome::Untold, String::new())),
        }
        for (rule_s, name) in RULES {
            right.advance(t + rule_s + MARGIN_S);
            disturbed.advance(t + rule_s + MARGIN_S);
            if awake(&right) == awake(&disturbed) {
                return Ok((Outcome::Inactivity, format!("; awake up to {name}")));
            }
        }
        Ok((Outcome::Wrong, "; kept awake for ever".to_owned()))
    }

    /// The recording as far as `t`, without one hook where one is lost.
    fn up_to(&self, t: f64, change: Option<Change>) -> Result<Replay, NoAdapter> {
        let mut replay = Replay::new(self.recording)?;
        replay.know(self.baseline.truth.clone().up_to(t));
        for (at, event) in self.recording.events.iter().enumerate().take_while(|(_, event)| event.t < t) {
            if change != Some(Change::Drop(at)) {
                replay.event(event);
            }
        }
        replay.advance(t);
        Ok(replay)
    }

    /// What else tells that this state began, between a little before its label and `until`. Nothing is lost unless a hook is.
    fn other_evidence(
        &self,
        session: &str,
        is: ShownState,
        shown: Option<ShownState>,
        since: f64,
        until: f64,
    ) -> Option<String> {
        let Change::Drop(dropped) = self.change else { return Some("all hooks".to_owned()) };
        // Of the statements that came with it, the core counted this one from 1.
        let of_it =
            self.baseline.told.iter().filter(|told| told.session == session && told.event != dropped + 1);
        let mut in_time = of_it.filter(|told| told.t >= since - TOLERANCE_S && told.t <= until);
        let told = in_time.find(|told| tells(told, is, shown))?;
        Some(format!("{:?} at {:.3}: {}", told.source, told.t, word_for(&told.body)).to_lowercase())
    }
}

/// A session that is shown like this behind the rule, and is not, was let go by it: it kept the machine awake before.
fn cost_of_a_state(shown: Option<ShownState>) -> Outcome {
    match shown {
        Some(ShownState::Waiting) => Outcome::Inactivity,
        _ => Outcome::Untold,
    }
}

fn last_states(replay: &Replay) -> BTreeMap<String, ShownState> {
    replay.core().sessions().into_iter().map(|s| (s.key.id, s.state)).collect()
}

fn short(id: &str) -> &str {
    id.get(..13).unwrap_or(id)
}
