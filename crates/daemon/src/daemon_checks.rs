//! What `doctor` is told that only the daemon knows.

use std::collections::BTreeMap;

use watchkeeper_api::method::{Check, CheckLevel};
use watchkeeper_core::{AgentKind, Wall};

use crate::{
    agent_checks::{self, Heard},
    counters::Counters,
    dispatcher::Dispatcher,
    keep_awake,
};

impl Dispatcher {
    /// The checks that only the daemon can make.
    pub(crate) fn checks(&self) -> Vec<Check> {
        let mut checks = vec![keep_awake::check(&self.core.machine())];
        let coverage = self.watch_coverage();
        let level = if coverage.live == coverage.watched { CheckLevel::Ok } else { CheckLevel::Warn };
        let detail =
            format!("{} of {} live sessions have a watched process", coverage.watched, coverage.live);
        checks.push(check("watch-coverage", level, detail, None));
        let polled = self.exits.polled_len();
        if polled > 0 {
            let detail = format!("{polled} processes are polled every 5 s");
            checks.push(check("exit-notices", CheckLevel::Warn, detail, None));
        }
        checks.push(self.journal_check());
        checks.push(spool_check(&self.counters));
        checks.push(transcript_check(self.follower.len(), self.follower.is_blind(), &self.counters));
        let steps = self.counters.get("clock.stepped");
        let detail = format!("the wall clock was set {steps} times since the start");
        checks.push(check("clock", CheckLevel::Ok, detail, None));
        checks.push(match self.configuration.error() {
            None => check("configuration", CheckLevel::Ok, "in force", None),
            Some(error) => check(
                "configuration",
                CheckLevel::Fail,
                error,
                Some("mend the file; it is read again at once"),
            ),
        });
        let panics = ["core.panicked", "adapter.panicked", "task.panicked"];
        let panics: u64 = panics.iter().map(|name| self.counters.get(name)).sum();
        if panics > 0 {
            let log = self.place.state.join("exceptions.log");
            let detail = format!("{panics}; see {}", log.display());
            checks.push(check("panics", CheckLevel::Warn, detail, Some("please report them")));
        }
        checks.extend(self.declared.checks());
        let mut activity: BTreeMap<AgentKind, Wall> = BTreeMap::new();
        for session in self.core.sessions() {
            let last = activity.entry(session.key.agent).or_insert(session.last_activity);
            *last = (*last).max(session.last_activity);
        }
        let hooks = self.heard.iter().map(|(agent, now)| (*agent, now.wall)).collect();
        let (unknown, malformed) = (&self.unknown, &self.malformed);
        checks.extend(agent_checks::checks(&Heard { hooks, activity, unknown, malformed }));
        checks
    }

    fn journal_check(&self) -> Check {
        let failed = self.counters.get("journal.failed");
        let detail = format!("row {} is durable; {failed} failed writes", self.durable.0);
        if self.journal.is_behind() {
            let detail = format!("behind: the disk does not take what is new; {detail}");
            let fix = "see that the disk has room and answers; the hooks keep what they bring until then";
            return check("journal", CheckLevel::Fail, detail, Some(fix));
        }
        check("journal", if failed == 0 { CheckLevel::Ok } else { CheckLevel::Warn }, detail, None)
    }
}

/// What became of the events that hooks left on the disk.
fn spool_check(counters: &Counters) -> Check {
    let [taken, dropped, bad, left] =
        ["spool.taken", "spool.dropped", "spool.bad", "spool.left"].map(|name| counters.get(name));
    let mut detail = format!("{taken} events of hooks were taken from it since the start");
    for (count, what) in [
        (dropped, "dropped by hooks that found it full"),
        (bad, "damaged, set aside"),
        (left, "left for a later look, or for a newer version"),
    ] {
        if count > 0 {
            detail.push_str(&format!("; {count} {what}"));
        }
    }
    let (level, fix) = if dropped + bad + left == 0 {
        (CheckLevel::Ok, None)
    } else {
        (
            CheckLevel::Warn,
            Some("a state that one of these told may be missing until the next event of its session"),
        )
    };
    check("spool", level, detail, fix)
}

fn transcript_check(followed: usize, is_blind: bool, counters: &Counters) -> Check {
    let missed = counters.get("transcript.not_followed");
    let mut detail = format!("{followed} are followed");
    if is_blind {
        detail.push_str("; some of their folders give no notices and are looked at now and then");
    }
    if missed > 0 {
        detail.push_str(&format!("; {missed} could not be followed: their sessions go by hooks alone"));
    }
    let level = if is_blind || missed > 0 { CheckLevel::Warn } else { CheckLevel::Ok };
    check("transcripts", level, detail, None)
}

fn check(name: &str, level: CheckLevel, detail: impl Into<String>, fix: Option<&str>) -> Check {
    Check { name: name.to_owned(), level, detail: detail.into(), fix: fix.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_spool_lost_is_said() {
        let mut counters = Counters::default();
        counters.add_many("spool.taken", 4);
        assert_eq!(spool_check(&counters).level, CheckLevel::Ok);
        counters.add_many("spool.dropped", 3);
        let said = spool_check(&counters);
        assert_eq!(said.level, CheckLevel::Warn);
        assert!(said.detail.ends_with("; 3 dropped by hooks that found it full"), "{}", said.detail);
        assert!(said.fix.is_some());
    }

    #[test]
    fn transcripts_that_nobody_reads_are_said() {
        let mut counters = Counters::default();
        assert_eq!(transcript_check(2, false, &counters).level, CheckLevel::Ok);
        assert_eq!(transcript_check(2, true, &counters).level, CheckLevel::Warn);
        counters.add("transcript.not_followed");
        assert!(transcript_check(2, false, &counters).detail.contains("1 could not be followed"));
    }
}
