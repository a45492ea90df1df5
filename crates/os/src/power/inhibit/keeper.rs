//! The owner of the hold: takes what is wanted, reads it back, and takes again what the system lost.

use std::collections::BTreeMap;

use super::{Held, Inhibitor, Kind, Notice, Refused, Standing};

/// Holds the wanted locks until it is told otherwise or dropped.
#[derive(Debug)]
pub struct Keeper {
    inhibitor: Inhibitor,
    wanted: Vec<Kind>,
    held: BTreeMap<Kind, Held>,
    refused: BTreeMap<Kind, Refused>,
}

/// What holds after a change or a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Kinds that the system itself lists as ours or, when it could not be asked (`unconfirmed`), that it gave us.
    pub held: Vec<Kind>,
    /// Wanted kinds that are not held, with the reason.
    pub refused: Vec<(Kind, Refused)>,
    /// Kinds that had been lost and were taken again by this call.
    pub retaken: Vec<Kind>,
    /// Why the locks could not be read back; `None`: they were.
    pub unconfirmed: Option<String>,
    /// The whole list that was read back.
    pub standing: Option<Standing>,
}

/// What the keeper's wait gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upkeep {
    pub notice: Notice,
    /// How the hold stands after the keeper has looked; `None` when nothing is wanted, or nobody can be asked yet.
    pub report: Option<Report>,
}

impl Keeper {
    /// Starts with nothing held.
    #[must_use]
    pub fn new(inhibitor: Inhibitor) -> Self {
        Self { inhibitor, wanted: Vec::new(), held: BTreeMap::new(), refused: BTreeMap::new() }
    }

    /// Starts with locks that a predecessor handed over. They stand until [`set`](Self::set): own locks are taken
    /// before the handed ones are let go.
    #[must_use]
    pub fn with_handed(inhibitor: Inhibitor, handed: impl IntoIterator<Item = Held>) -> Self {
        let held: BTreeMap<Kind, Held> = handed.into_iter().map(|held| (held.kind(), held)).collect();
        Self { inhibitor, wanted: held.keys().copied().collect(), held, refused: BTreeMap::new() }
    }

    /// Makes exactly `wanted` held: takes what is missing, each kind asked for on its own, then lets go of the rest,
    /// then reads back. A lock that was handed over is replaced by an own one, which is taken first; where that is
    /// refused the handed one is kept. Costs two rounds of calls to the system, each bounded.
    pub async fn set(&mut self, wanted: &[Kind]) -> Report {
        self.wanted = wanted.to_vec();
        self.wanted.sort_unstable();
        self.wanted.dedup();
        let missing: Vec<Kind> = self
            .wanted
            .iter()
            .copied()
            .filter(|kind| !self.held.get(kind).is_some_and(Held::is_own))
            .collect();
        self.take(&missing).await;
        let wanted = &self.wanted;
        self.held.retain(|kind, _| wanted.contains(kind));
        self.refused.retain(|kind, _| wanted.contains(kind));
        self.report(Vec::new()).await
    }

    /// Reads the wanted locks back, takes again what is not listed, and tries again what was refused. The new lock
    /// is held before the lost one's remains are dropped.
    pub async fn verify(&mut self) -> Report {
        let first = self.report(Vec::new()).await;
        if first.unconfirmed.is_some() {
            return first;
        }
        let missing: Vec<Kind> =
            self.wanted.iter().copied().filter(|kind| !first.held.contains(kind)).collect();
        if missing.is_empty() {
            return first;
        }
        let lost: Vec<Kind> = missing.iter().copied().filter(|kind| self.held.contains_key(kind)).collect();
        self.take(&missing).await;
        let retaken = lost.into_iter().filter(|kind| !self.refused.contains_key(kind)).collect();
        self.report(retaken).await
    }

    /// Waits until something happens to the service behind the locks, and verifies them if any are wanted. The wait
    /// is cancel-safe; the verification after it is not, so that a caller who drops this future after the notice
    /// must call [`verify`](Self::verify) itself. [`notice`](Self::notice) gives the wait alone.
    pub async fn next(&mut self) -> Upkeep {
        let notice = self.notice().await;
        let report = match notice {
            Notice::ServiceBack | Notice::BusBack if !self.wanted.is_empty() => Some(self.verify().await),
            Notice::ServiceBack | Notice::BusBack | Notice::ServiceGone | Notice::BusLost => None,
        };
        Upkeep { notice, report }
    }

    /// Waits until something happens to the service behind the locks. Cancel-safe. After `ServiceBack` and `BusBack`
    /// call [`verify`](Self::verify).
    pub async fn notice(&self) -> Notice {
        self.inhibitor.next().await
    }

    /// The locks themselves, for a successor; this keeper holds nothing any more.
    #[must_use]
    pub fn into_held(self) -> Vec<Held> {
        self.held.into_values().collect()
    }

    /// Who asks the system, e.g. to connect before the first lock is wanted.
    #[must_use]
    pub fn inhibitor(&self) -> &Inhibitor {
        &self.inhibitor
    }

    /// What is wanted.
    #[must_use]
    pub fn wanted(&self) -> &[Kind] {
        &self.wanted
    }

    async fn take(&mut self, kinds: &[Kind]) {
        for (kind, result) in self.inhibitor.take(kinds).await {
            match result {
                Ok(held) => {
                    self.refused.remove(&kind);
                    // An older lock of this kind is dropped here, after its successor stands.
                    drop(self.held.insert(kind, held));
                }
                Err(refused) => {
                    self.refused.insert(kind, refused);
                }
            }
        }
    }

    async fn report(&self, retaken: Vec<Kind>) -> Report {
        if self.wanted.is_empty() {
            return Report {
                held: Vec::new(),
                refused: Vec::new(),
                retaken,
                unconfirmed: None,
                standing: None,
            };
        }
        let read = self.inhibitor.read_back(self.held.values()).await;
        let (held, unconfirmed, standing) = match read {
            Ok(standing) => {
                let held: Vec<Kind> =
                    self.wanted.iter().copied().filter(|kind| standing.ours.contains(kind)).collect();
                (held, None, Some(standing))
            }
            Err(why) => (self.held.keys().copied().collect(), Some(why.to_string()), None),
        };
        let refused = self
            .wanted
            .iter()
            .filter(|kind| !held.contains(kind))
            .map(|kind| {
                let lost = || Refused::Failed { why: format!("the system no longer lists our {kind} lock") };
                (*kind, self.refused.get(kind).cloned().unwrap_or_else(lost))
            })
            .collect();
        Report { held, refused, retaken, unconfirmed, standing }
    }
}
