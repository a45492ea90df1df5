//! What a campaign reached: marks of the core, effects, faults. A rule that nobody exercises is seen.

use std::collections::BTreeSet;

use watchkeeper_core::{ALL_MARKS, Marks};

use super::schedule::{EffectKind, Fault};

/// Marks that no world of this simulator can reach, each with its reason.
const OUT_OF_REACH: [(&str, &str); 0] = [];
/// Effects that the core does not send on the simulated system, each with its reason.
const UNSENT: [(EffectKind, &str); 3] = [
    (EffectKind::BackUpLidAction, "on Linux the lid lock is all there is"),
    (EffectKind::ChangeLidAction, "on Linux the lid lock is all there is"),
    (EffectKind::RestoreLidAction, "on Linux the lid lock is all there is"),
];

#[derive(Debug, Default, Clone)]
pub(super) struct Coverage {
    pub(super) marks: Marks,
    pub(super) effects: BTreeSet<EffectKind>,
    pub(super) faults: BTreeSet<(EffectKind, Fault)>,
}

impl Coverage {
    pub(super) fn merge(&mut self, other: &Self) {
        self.marks = self.marks.union(other.marks);
        self.effects.extend(&other.effects);
        self.faults.extend(&other.faults);
    }

    /// Names of what was not reached and should have been.
    pub(super) fn missing(&self) -> Vec<String> {
        let reached: BTreeSet<&str> = self.marks.names().collect();
        let excused = |mark: &&&str| OUT_OF_REACH.iter().any(|(name, _)| *name == **mark);
        let mut missing: Vec<String> = ALL_MARKS
            .iter()
            .filter(|m| !reached.contains(**m) && !excused(m))
            .map(|m| format!("mark {m}"))
            .collect();
        for kind in EffectKind::ALL.into_iter().filter(|k| UNSENT.iter().all(|(unsent, _)| unsent != k)) {
            if !self.effects.contains(&kind) {
                missing.push(format!("effect {kind:?}"));
            }
            let unmet = kind.faults().iter().filter(|fault| !self.faults.contains(&(kind, **fault)));
            missing.extend(unmet.map(|fault| format!("{fault:?} at {kind:?}")));
        }
        missing
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "{} of {} marks, {} effects, {} effects with faults",
            self.marks.names().count(),
            ALL_MARKS.len(),
            self.effects.len(),
            self.faults.len()
        )
    }
}
