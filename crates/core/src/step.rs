//! What one input has brought about so far, and what the caller gets of it.

use crate::{
    AgentTraits,
    core::Bequest,
    effect::Effect,
    identity::{DeliveryId, Incarnation, ProcessRef, SessionKey},
    marks::{Mark, Marks},
    settings::Settings,
    table::Sid,
    time::Now,
};

/// Everything that one input led to. Effects are carried out in order, after the input was written to the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "effects that are not carried out are lost"]
pub struct Outcome {
    pub effects: Vec<Effect>,
    /// The session and incarnation that a signal was about, for its journal row.
    pub resolved: Option<(SessionKey, Incarnation)>,
    pub verdict: Verdict,
    pub marks: Marks,
}

/// What became of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was taken into account (which need not have changed anything that is shown).
    Applied,
    /// Recorded as evidence or counted; no phase, lock or work changed.
    Recorded,
    /// It speaks of an older incarnation.
    Stale,
    /// The same delivery was applied before.
    Duplicate,
    /// A limit was reached (named in the marks).
    Refused,
}

/// How a turn or session came to its end, and so what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Normal,
    Abnormal,
    Cancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathTaken {
    pub(crate) path: Path,
    /// The turn has not told anybody yet.
    pub(crate) post: bool,
    /// The stop can carry a person's reply back to the agent.
    pub(crate) can_reply: bool,
}

/// Settings and traits of the agents: what the rules need beside the facts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) traits: &'a AgentTraits,
}

impl Rules<'_> {
    pub(crate) fn wakes_model(&self, agent: crate::AgentKind) -> bool {
        // Of a declared agent it is not known: a stop that waits for a turn which never comes costs the grace, no more.
        let unknown = matches!(agent, crate::AgentKind::Declared(_));
        self.traits.get(&agent).map_or(unknown, |t| t.wakes_model)
    }
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) now: Now,
    /// Number of this input.
    pub(crate) number: u64,
    pub(crate) effects: Vec<Effect>,
    pub(crate) marks: Marks,
    pub(crate) verdict: Verdict,
    pub(crate) resolved: Option<(SessionKey, Incarnation)>,
    /// The path that the session at hand took.
    pub(crate) path: Option<PathTaken>,
    pub(crate) paths: Vec<(Sid, PathTaken)>,
    /// No suspend may begin by this input.
    pub(crate) no_plan: bool,
    /// A start or activity: a pending suspend is over.
    pub(crate) disturbed: bool,
    /// Processes that the session at hand took or gave up.
    pub(crate) acquired: Vec<ProcessRef>,
    pub(crate) released: Vec<ProcessRef>,
    /// What a replaced session leaves to its successor.
    pub(crate) bequest: Option<Bequest>,
    /// The hook that waits for an answer to this signal.
    pub(crate) hook: Option<DeliveryId>,
}

impl Step {
    pub(crate) fn new(now: Now, number: u64) -> Self {
        Self {
            now,
            number,
            effects: Vec::new(),
            marks: Marks::default(),
            verdict: Verdict::Applied,
            resolved: None,
            path: None,
            paths: Vec::new(),
            no_plan: false,
            disturbed: false,
            acquired: Vec::new(),
            released: Vec::new(),
            bequest: None,
            hook: None,
        }
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        self.marks.set(mark);
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Nothing changes by this input.
    pub(crate) fn recorded(&mut self, mark: Mark) {
        self.mark(mark);
        self.verdict = Verdict::Recorded;
    }
}
