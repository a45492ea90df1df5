//! logind's `Inhibit`: one descriptor a lock, close-on-exec; closing it, or our death, releases it within
//! milliseconds. Facts measured on systemd 252 and 257.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use zbus::MatchRule;

use super::{Kind, Notice, OtherLock, Refused, Standing, WHO, WHY, linux_errors};
use crate::power::system_bus::{BusEvent, NoBus, SystemBus, describe};

const LOGIND: &str = "org.freedesktop.login1";
const MANAGER_PATH: &str = "/org/freedesktop/login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// logind's own default limit (`InhibitorsMax=`); list entries beyond are not looked at.
const MAX_LISTED: usize = 8192;

/// Locks of others that are reported; more are left out.
const MAX_OTHERS: usize = 64;

/// Characters kept of another program's words.
const MAX_WORDS: usize = 256;

/// Asks logind for locks.
#[derive(Debug)]
pub struct Inhibitor {
    bus: SystemBus,
}

/// One lock. Dropping it releases it.
#[derive(Debug)]
pub struct Held {
    kind: Kind,
    lock: OwnedFd,
    /// The pid that logind lists, which is the taker's, also after a hand-over.
    listed_pid: u32,
}

/// One row of `ListInhibitors`: what, who, why, mode, uid, pid.
type Listed = (String, String, String, String, u32, u32);

impl Inhibitor {
    /// Asks on the machine's system bus. Does not connect yet: the first question does.
    #[must_use]
    pub fn new() -> Self {
        Self { bus: SystemBus::new(None, owner_rule().into_iter().collect()) }
    }

    /// Asks on the bus at this D-Bus address, e.g. one that is mounted into a container elsewhere.
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self { bus: SystemBus::new(Some(address.to_owned()), owner_rule().into_iter().collect()) }
    }

    /// Connects now, to learn early whether there is a logind to ask.
    ///
    /// # Errors
    /// `Unsupported` without a bus or without logind on it; `Failed` when it does not answer.
    pub async fn connect(&self) -> Result<(), Refused> {
        self.read_back([]).await.map(|_standing| ())
    }

    /// Asks for each kind on its own, all at once: one refusal does not cost the others. The answers come in the order
    /// given. Each call is bounded.
    pub async fn take(&self, kinds: &[Kind]) -> Vec<(Kind, Result<Held, Refused>)> {
        let mut results = Vec::with_capacity(kinds.len());
        for three in kinds.chunks(3) {
            let ask = async |kind: Option<&Kind>| match kind {
                Some(kind) => Some((*kind, self.take_one(*kind).await)),
                None => None,
            };
            let (first, second, third) =
                tokio::join!(ask(three.first()), ask(three.get(1)), ask(three.get(2)));
            results.extend([first, second, third].into_iter().flatten());
        }
        results
    }

    async fn take_one(&self, kind: Kind) -> Result<Held, Refused> {
        let connection = self.bus.connection().await.map_err(no_bus)?;
        let body = (kind.name(), WHO, WHY, "block");
        let reply = connection
            .call_method(Some(LOGIND), MANAGER_PATH, Some(MANAGER), "Inhibit", &body)
            .await
            .map_err(|e| linux_errors::refused(kind, &e))?;
        let lock: zbus::OwnedFd = reply.body().deserialize().map_err(|e| linux_errors::refused(kind, &e))?;
        Ok(Held { kind, lock: lock.into(), listed_pid: std::process::id() })
    }

    /// The locks as logind lists them; ours are those of `held` and of this process.
    ///
    /// # Errors
    /// `Unsupported` without a bus or without logind on it; `Failed` when it does not answer.
    pub async fn read_back<'a>(&self, held: impl IntoIterator<Item = &'a Held>) -> Result<Standing, Refused> {
        let mut pids: Vec<u32> = held.into_iter().map(|held| held.listed_pid).collect();
        pids.push(std::process::id());
        let connection = self.bus.connection().await.map_err(no_bus)?;
        let failed = |e: &zbus::Error| linux_errors::unreadable(e);
        let list = connection.call_method(Some(LOGIND), MANAGER_PATH, Some(MANAGER), "ListInhibitors", &());
        let property = (MANAGER, "BlockInhibited");
        let blocked = connection.call_method(Some(LOGIND), MANAGER_PATH, Some(PROPERTIES), "Get", &property);
        let (list, blocked) = tokio::join!(list, blocked);
        let listed: Vec<Listed> =
            list.and_then(|reply| reply.body().deserialize()).map_err(|e| failed(&e))?;
        let blocked: Result<zbus::OwnedVariant, _> = blocked.and_then(|reply| reply.body().deserialize());
        let blocked = blocked.and_then(String::try_from).map_err(|e| failed(&e))?;
        Ok(standing(listed, &blocked, &pids))
    }

    /// Waits until something happens to logind or the bus. Cancel-safe. Silent until the first question has
    /// connected.
    pub async fn next(&self) -> Notice {
        loop {
            match self.bus.next().await {
                BusEvent::Lost => return Notice::BusLost,
                BusEvent::Back => return Notice::BusBack,
                BusEvent::Signal(message) => {
                    let body = message.body();
                    let changed: Result<(String, String, String), zbus::Error> = body.deserialize();
                    match changed {
                        Ok((name, _old, new)) if name == LOGIND => {
                            return if new.is_empty() { Notice::ServiceGone } else { Notice::ServiceBack };
                        }
                        Ok(_) => {}
                        Err(e) => {
                            tracing::debug!(error = %describe(&e), "a signal of the bus cannot be read");
                        }
                    }
                }
            }
        }
    }
}

impl Default for Inhibitor {
    fn default() -> Self {
        Self::new()
    }
}

impl Held {
    pub(super) fn adopted(kind: Kind, lock: OwnedFd, listed_pid: u32) -> Self {
        Self { kind, lock, listed_pid }
    }

    pub(super) fn into_parts(self) -> (Kind, OwnedFd, u32) {
        (self.kind, self.lock, self.listed_pid)
    }

    /// What it prevents.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether logind lists it under our own pid.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.listed_pid == std::process::id()
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }
}

/// Signals that a name's owner changed, for logind's name.
fn owner_rule() -> Option<MatchRule<'static>> {
    MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender("org.freedesktop.DBus")
        .path("/org/freedesktop/DBus")
        .interface("org.freedesktop.DBus")
        .member("NameOwnerChanged")
        .add_arg(LOGIND)
        .build()
        .ok()
}

fn no_bus(e: NoBus) -> Refused {
    Refused::Unsupported { why: e.to_string() }
}

fn standing(listed: Vec<Listed>, blocked: &str, our_pids: &[u32]) -> Standing {
    let mut standing = Standing { blocked: words(blocked), ..Standing::default() };
    for (what, who, why, mode, uid, pid) in listed.into_iter().take(MAX_LISTED) {
        // "block-weak" (since 257) lets anyone of the same user through, "delay" everyone: neither is a hold.
        if mode != "block" {
            continue;
        }
        if who == WHO && our_pids.contains(&pid) {
            standing.ours.extend(what.split(':').filter_map(Kind::of_name));
        } else if standing.others.len() < MAX_OTHERS {
            standing.others.push(OtherLock { what: words(&what), who: cut(&who), why: cut(&why), uid, pid });
        }
    }
    standing.ours.sort_unstable();
    standing.ours.dedup();
    standing
}

fn words(list: &str) -> Vec<String> {
    list.split(':').filter(|word| !word.is_empty()).take(MAX_OTHERS).map(cut).collect()
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_match_rule_is_valid() {
        assert!(owner_rule().is_some());
    }

    /// Rows: what, who, mode, pid; ours are pid 7 and 8.
    #[track_caller]
    fn check(rows: &[(&str, &str, &str, u32)], ours: &[Kind], others: &[&str]) {
        let listed = rows
            .iter()
            .map(|(what, who, mode, pid)| {
                ((*what).to_owned(), (*who).to_owned(), String::new(), (*mode).to_owned(), 0, *pid)
            })
            .collect();
        let got = standing(listed, "idle:sleep", &[7, 8]);
        assert_eq!(got.ours, ours);
        assert_eq!(got.others.iter().map(|o| o.who.as_str()).collect::<Vec<_>>(), others);
        assert_eq!(got.blocked, ["idle", "sleep"]);
    }

    #[test]
    fn ours_are_told_by_name_pid_and_mode() {
        check(&[], &[], &[]);
        check(
            &[("idle", WHO, "block", 7), ("handle-lid-switch", WHO, "block", 8)],
            &[Kind::Idle, Kind::LidSwitch],
            &[],
        );
        check(&[("sleep:idle", WHO, "block", 7), ("idle", WHO, "block", 7)], &[Kind::Idle, Kind::Sleep], &[]);
        check(&[("idle", WHO, "delay", 7), ("idle", WHO, "block-weak", 7)], &[], &[]);
        check(&[("idle", WHO, "block", 9), ("idle", "PowerDevil", "block", 7)], &[], &[WHO, "PowerDevil"]);
        check(&[("shutdown", WHO, "block", 7)], &[], &[]);
    }
}
