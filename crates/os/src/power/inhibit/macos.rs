//! A power assertion against idle sleep, with a timeout that is renewed: a daemon that hangs lets go.
//!
//! A closed lid sleeps whatever is asserted; only the system-wide `SleepDisabled`, which needs root, prevents it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{Kind, Notice, OtherLock, Refused, Standing, WHO, WHY, sys_macos};

/// An assertion that nobody renews is released by the system after this.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// How often it is renewed while held.
const RENEW_EVERY: Duration = Duration::from_secs(5 * 60);

/// Assertions looked at when reading back; more are not.
const MAX_LISTED: usize = 4096;

/// Assertions of others that are reported; more are left out.
const MAX_OTHERS: usize = 64;

/// Asks the system for assertions.
#[derive(Debug, Default)]
pub struct Inhibitor {
    shared: Arc<Shared>,
}

/// One assertion. Dropping it releases it.
#[derive(Debug)]
pub struct Held {
    kind: Kind,
    id: u32,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    ids: Mutex<BTreeSet<u32>>,
    /// When they are renewed next; kept here, since a wait for it may be cut off at any time.
    renewal: Mutex<Option<Instant>>,
    /// Wakes a pending `next` when an assertion is taken.
    taken: Notify,
}

impl Shared {
    fn ids(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` while nothing is held.
    fn next_renewal(&self) -> Option<Instant> {
        let mut renewal = self.renewal.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ids().is_empty() {
            *renewal = None;
            return None;
        }
        Some(*renewal.get_or_insert_with(|| Instant::now() + RENEW_EVERY))
    }

    fn renewed(&self) {
        *self.renewal.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + RENEW_EVERY);
    }
}

impl Inhibitor {
    /// Asks nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks whether assertions can be listed.
    ///
    /// # Errors
    /// `Failed` when the system does not answer.
    pub async fn connect(&self) -> Result<(), Refused> {
        self.read_back([]).await.map(|_standing| ())
    }

    /// Asks for each kind on its own, in the order given.
    pub async fn take(&self, kinds: &[Kind]) -> Vec<(Kind, Result<Held, Refused>)> {
        kinds.iter().map(|kind| (*kind, self.take_one(*kind))).collect()
    }

    fn take_one(&self, kind: Kind) -> Result<Held, Refused> {
        match kind {
            Kind::Idle => {}
            Kind::LidSwitch => {
                return Err(Refused::Unsupported {
                    why: "closing the lid sleeps a Mac whatever a program asserts".to_owned(),
                });
            }
            Kind::Sleep => {
                return Err(Refused::Unsupported {
                    why: "macOS lets no program veto a sleep that a person asks for".to_owned(),
                });
            }
        }
        let id = sys_macos::prevent_idle_sleep(WHO, WHY, TIMEOUT.as_secs_f64())
            .map_err(|refusal| Refused::Failed { why: format!("IOPMAssertionCreate: {:#x}", refusal.0) })?;
        self.shared.ids().insert(id);
        self.shared.taken.notify_one();
        Ok(Held { kind, id, shared: Arc::clone(&self.shared) })
    }

    /// The assertions as the system lists them; ours are those of this process.
    ///
    /// # Errors
    /// `Failed` when the system does not answer.
    pub async fn read_back<'a>(
        &self,
        _held: impl IntoIterator<Item = &'a Held>,
    ) -> Result<Standing, Refused> {
        let listed = sys_macos::all(MAX_LISTED).map_err(|refusal| Refused::Failed {
            why: format!("IOPMCopyAssertionsByProcess: {:#x}", refusal.0),
        })?;
        let mut standing = Standing::default();
        for assertion in listed {
            let is_block = sys_macos::is_no_idle_sleep(&assertion.kind);
            if is_block && !standing.blocked.iter().any(|kind| kind == Kind::Idle.name()) {
                standing.blocked.push(Kind::Idle.name().to_owned());
            }
            if assertion.pid == std::process::id() {
                if is_block && assertion.name == WHO && standing.ours.is_empty() {
                    standing.ours.push(Kind::Idle);
                }
            } else if standing.others.len() < MAX_OTHERS {
                standing.others.push(OtherLock {
                    what: vec![assertion.kind],
                    who: assertion.name,
                    why: String::new(),
                    // Not told.
                    uid: u32::MAX,
                    pid: assertion.pid,
                });
            }
        }
        Ok(standing)
    }

    /// Renews the held assertions for ever; returns only when one could not be renewed. Cancel-safe.
    pub async fn next(&self) -> Notice {
        loop {
            let Some(at) = self.shared.next_renewal() else {
                self.shared.taken.notified().await;
                continue;
            };
            sleep_until(at).await;
            let ids: Vec<u32> = self.shared.ids().iter().copied().collect();
            self.shared.renewed();
            if ids.into_iter().any(|id| sys_macos::renew(id, TIMEOUT.as_secs_f64()).is_err()) {
                return Notice::ServiceBack;
            }
        }
    }
}

impl Held {
    /// What it prevents.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Always: assertions end with their process, so none is handed over.
    #[must_use]
    pub fn is_own(&self) -> bool {
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.ids().remove(&self.id);
        if let Err(refusal) = sys_macos::release(self.id) {
            tracing::warn!(code = refusal.0, "an assertion could not be released; it ends by its timeout");
        }
    }
}
