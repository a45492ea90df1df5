//! Why a session is in the state it is in: a bounded list of what was said and what rule made something of it.

use serde::{Deserialize, Serialize};
use std::{borrow::Cow, collections::VecDeque};

use crate::{
    signal::Source,
    time::{Boot, Now, Wall},
    view::{Evidence, ShownState},
};

/// Entries kept for a session. At the limit the oldest is dropped.
pub const EVIDENCE_MAX: usize = 48;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    at: Wall,
    happened: Option<Wall>,
    source: Source,
    what: Cow<'static, str>,
    rule: Cow<'static, str>,
    to: Option<ShownState>,
}

/// The list, and beside it the last routine signal that changed nothing but the time of last activity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct EvidenceList {
    entries: VecDeque<Entry>,
    routine: Option<(Wall, Source, Cow<'static, str>, u64)>,
}

impl EvidenceList {
    pub(crate) fn push(
        &mut self,
        now: &Now,
        happened: Option<Boot>,
        source: Source,
        what: impl Into<Cow<'static, str>>,
        rule: impl Into<Cow<'static, str>>,
    ) {
        if self.entries.len() >= EVIDENCE_MAX {
            self.entries.pop_front();
        }
        let happened = happened.and_then(|boot| wall_of(now, boot));
        self.entries.push_back(Entry {
            at: now.wall,
            happened,
            source,
            what: what.into(),
            rule: rule.into(),
            to: None,
        });
    }

    /// Activity that changes no state: only the newest is kept, with how many there were.
    pub(crate) fn routine(&mut self, now: &Now, source: Source, what: &'static str) {
        let count = self.routine.as_ref().map_or(0, |(_, _, _, n)| *n).saturating_add(1);
        self.routine = Some((now.wall, source, Cow::Borrowed(what), count));
    }

    /// The state changed by what was pushed last.
    pub(crate) fn turned(&mut self, to: ShownState) {
        if let Some(entry) = self.entries.back_mut() {
            entry.to = Some(to);
        }
    }

    /// The first word about a session is what brought it into its first state.
    pub(crate) fn began(&mut self, state: ShownState) {
        if let (1, Some(first)) = (self.entries.len(), self.entries.front_mut()) {
            first.to.get_or_insert(state);
        }
    }

    /// The rule of the newest entry.
    pub(crate) fn last_rule(&self) -> String {
        self.entries.back().map_or_else(String::new, |e| e.rule.to_string())
    }

    pub(crate) fn view(&self) -> Vec<Evidence> {
        let mut list: Vec<Evidence> = self
            .entries
            .iter()
            .map(|e| Evidence {
                at: e.at,
                happened: e.happened,
                source: e.source,
                what: e.what.to_string(),
                rule: e.rule.to_string(),
                to: e.to,
            })
            .collect();
        if let Some((at, source, what, count)) = &self.routine {
            list.push(Evidence {
                at: *at,
                happened: None,
                source: *source,
                what: what.to_string(),
                rule: format!("activity, the latest of {count} that changed no state"),
                to: None,
            });
        }
        list
    }
}

/// The wall time of a moment of this boot, if it differs from now by a millisecond or more.
fn wall_of(now: &Now, boot: Boot) -> Option<Wall> {
    let age_ms = i64::try_from(now.boot.since(boot).as_millis()).unwrap_or(i64::MAX);
    (age_ms > 0).then(|| Wall(now.wall.0.saturating_sub(age_ms)))
}
