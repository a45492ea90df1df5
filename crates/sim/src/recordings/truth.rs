//! What a look at a session's processes would find, by the labels: it uses the processor while it works, and only then. Goes
//! on as the last label says.

use std::collections::BTreeMap;
use watchkeeper_core::{
    input::{Known, ProbeAnswer},
    view::ShownState,
};

use super::load::{Label, Recording};

/// The labels of each session, in order.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    labels: BTreeMap<String, Vec<Label>>,
}

impl Truth {
    pub(crate) fn of(recording: &Recording) -> Self {
        let mut labels: BTreeMap<String, Vec<Label>> = BTreeMap::new();
        for label in &recording.labels {
            labels.entry(label.session.clone()).or_default().push(label.clone());
        }
        for of_session in labels.values_mut() {
            of_session.sort_by(|a, b| a.from.total_cmp(&b.from));
        }
        Self { labels }
    }

    /// As if nothing more happened from `t` on.
    pub(crate) fn up_to(mut self, t: f64) -> Self {
        for labels in self.labels.values_mut() {
            labels.retain(|label| label.from < t);
        }
        self
    }

    /// The answer of a system that can be looked at, without the life of the agent.
    pub(crate) fn answer(&self, session: &str, t: f64) -> ProbeAnswer {
        let background = self.at(session, t) == Some(ShownState::Background);
        ProbeAnswer {
            tree_cpu_ms: Known::Is(self.worked_ms(session, t)),
            stopped: Known::Is(false),
            agent_alive: Known::Unknown,
            background_alive: Known::Is(background),
            younger_child: Known::Is(false),
            background_moved: Known::Is(background),
        }
    }

    /// What is true at `t`, or was last known to be.
    fn at(&self, session: &str, t: f64) -> Option<ShownState> {
        let labels = self.labels.get(session)?;
        labels.iter().rev().find(|label| label.from <= t).map(|label| label.state)
    }

    /// What each session was last known to be.
    pub(crate) fn last(&self) -> impl Iterator<Item = &Label> {
        self.labels.values().filter_map(|labels| labels.last())
    }

    /// Milliseconds for which it worked, in front of or behind its turn.
    fn worked_ms(&self, session: &str, t: f64) -> u64 {
        let Some(labels) = self.labels.get(session) else { return 0 };
        let ends = labels.iter().skip(1).map(|next| next.from).chain([f64::INFINITY]);
        let worked: f64 = labels
            .iter()
            .zip(ends)
            .filter(|(label, _)| matches!(label.state, ShownState::Working | ShownState::Background))
            .map(|(label, end)| (end.min(t) - label.from).max(0.0))
            .sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hours at most")]
        let ms = (worked * 1000.0) as u64;
        ms
    }
}
