//! What `doctor` is told of each agent that was heard: when, and what of it was not understood.

use std::collections::{BTreeMap, BTreeSet};

use watchkeeper_api::{
    Time,
    method::{Check, CheckLevel},
};
use watchkeeper_core::{AgentKind, Wall};

use crate::counters::Counters;

/// Unknown names shown of one agent; the rest is counted.
const NAMES_SHOWN_MAX: usize = 5;

/// What is known of all agents since the daemon began.
pub(crate) struct Heard<'a> {
    /// When each one's last hook came.
    pub(crate) hooks: BTreeMap<AgentKind, Wall>,
    /// When each one's sessions last did anything, whatever told of it, also before the daemon began.
    pub(crate) activity: BTreeMap<AgentKind, Wall>,
    /// `AGENT.NAME` of events, records and fields that its adapter does not know.
    pub(crate) unknown: &'a Counters,
    /// By agent, payloads and records that are not what it sends.
    pub(crate) malformed: &'a Counters,
}

/// One check an agent, `heard-AGENT`.
pub(crate) fn checks(heard: &Heard<'_>) -> Vec<Check> {
    let kinds: BTreeSet<&AgentKind> = heard.hooks.keys().chain(heard.activity.keys()).collect();
    kinds.into_iter().map(|kind| check(*kind, heard)).collect()
}

fn check(kind: AgentKind, heard: &Heard<'_>) -> Check {
    let mut parts = vec![match heard.hooks.get(&kind) {
        Some(at) => format!("last heard by a hook {}", Time(*at)),
        None => "no hook since the daemon started".to_owned(),
    }];
    if let Some(at) = heard.activity.get(&kind) {
        parts.push(format!("last activity {}", Time(*at)));
    }
    let prefix = format!("{kind}.");
    let mut unknown: Vec<(&str, u64)> = heard
        .unknown
        .all()
        .iter()
        .filter_map(|(name, count)| Some((name.strip_prefix(&prefix)?, *count)))
        .collect();
    unknown.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    if !unknown.is_empty() {
        let shown: Vec<String> =
            unknown.iter().take(NAMES_SHOWN_MAX).map(|(name, count)| format!("{name} ({count})")).collect();
        let more = unknown.len().saturating_sub(NAMES_SHOWN_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("not known to the adapter: {}{more}", shown.join(", ")));
    }
    let malformed = heard.malformed.get(kind.name());
    if malformed > 0 {
        parts.push(format!("{malformed} that were not what it sends"));
    }
    Check {
        name: format!("heard-{kind}"),
        level: if malformed > 0 { CheckLevel::Warn } else { CheckLevel::Ok },
        detail: parts.join("; "),
        fix: (malformed > 0).then(|| "the daemon's log names the first ones".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(unknown: &[(&str, u64)], malformed: u64, with_hook: bool) -> Vec<(String, CheckLevel, String)> {
        let (mut names, mut bad) = (Counters::default(), Counters::default());
        for (name, count) in unknown {
            names.add_many(name, *count);
        }
        bad.add_many("codex", malformed);
        let hooks = if with_hook { [(AgentKind::Claude, Wall(0))].into() } else { BTreeMap::new() };
        let activity = [(AgentKind::Claude, Wall(1000)), (AgentKind::Codex, Wall(0))].into();
        let heard = Heard { hooks, activity, unknown: &names, malformed: &bad };
        checks(&heard).into_iter().map(|check| (check.name, check.level, check.detail)).collect()
    }

    #[test]
    fn each_agent_has_its_line() {
        let unknown: Vec<(String, u64)> = (1..=7).map(|n| (format!("claude.Event{n}"), n)).collect();
        let unknown: Vec<(&str, u64)> = unknown.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        let lines = run(&unknown, 0, true);
        assert_eq!(
            lines[0],
            (
                "heard-claude".to_owned(),
                CheckLevel::Ok,
                "last heard by a hook 1970-01-01T00:00:00.000Z; last activity 1970-01-01T00:00:01.000Z; not known to \
                 the adapter: Event7 (7), Event6 (6), Event5 (5), Event4 (4), Event3 (3) and 2 more"
                    .to_owned()
            )
        );
        assert_eq!(lines[1].2, "no hook since the daemon started; last activity 1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn what_is_not_what_an_agent_sends_is_a_warning_of_that_agent() {
        let lines = run(&[], 3, false);
        assert_eq!((lines[0].1, lines[1].1), (CheckLevel::Ok, CheckLevel::Warn));
        assert!(lines[1].2.ends_with("; 3 that were not what it sends"));
    }
}
