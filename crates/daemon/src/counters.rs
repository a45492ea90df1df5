//! What came, what was refused, what failed: plain counters that `daemon status` and `doctor` show.

use std::collections::BTreeMap;

/// Distinct names kept; a hostile sender cannot grow the map past this. Further names are counted under `other`.
const MAX_NAMES: usize = 256;
/// Longest name kept, in characters.
const MAX_NAME: usize = 80;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: BTreeMap<String, u64>,
}

impl Counters {
    pub(crate) fn add(&mut self, name: &str) {
        self.add_many(name, 1);
    }

    /// A name of which nothing came takes no place.
    pub(crate) fn add_many(&mut self, name: &str, by: u64) {
        if by == 0 {
            return;
        }
        let name: String = name.chars().take(MAX_NAME).collect();
        let slot = if self.counts.contains_key(&name) || self.counts.len() < MAX_NAMES {
            name
        } else {
            "other".to_owned()
        };
        let count = self.counts.entry(slot).or_default();
        *count = count.saturating_add(by);
    }

    #[must_use]
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    #[must_use]
    pub(crate) const fn all(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_come_takes_no_place() {
        let mut counters = Counters::default();
        counters.add_many("event", 0);
        assert!(counters.all().is_empty());
    }

    #[test]
    fn a_flood_of_names_is_bounded_and_still_counted() {
        let mut counters = Counters::default();
        for i in 0..10_000 {
            counters.add(&format!("event {i}"));
        }
        assert!(counters.all().len() <= MAX_NAMES + 1);
        assert_eq!(counters.all().values().sum::<u64>(), 10_000);
    }
}
