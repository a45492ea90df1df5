//! Where sessions live: numbered slots, and a map from key to number whose cost does not grow with their lengths.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::{identity::SessionKey, session::Session};

/// Number of a session's slot. Reused after the session was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Sid(pub(crate) u32);

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Table {
    slots: Vec<Option<Box<Session>>>,
    free: Vec<u32>,
    /// Keys are compared after their hashes, so that equal hashes cost time, never truth.
    #[serde(skip)]
    by_hash: BTreeMap<u64, Vec<Sid>>,
}

impl Table {
    pub(crate) fn find(&self, key: &SessionKey) -> Option<Sid> {
        let same = self.by_hash.get(&hash(key))?;
        same.iter().copied().find(|sid| self.get(*sid).is_some_and(|s| s.key == *key))
    }

    pub(crate) fn get(&self, sid: Sid) -> Option<&Session> {
        self.slots.get(sid.0 as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, sid: Sid) -> Option<&mut Session> {
        self.slots.get_mut(sid.0 as usize)?.as_deref_mut()
    }

    /// `None` when no number is left.
    pub(crate) fn insert(&mut self, session: Session) -> Option<Sid> {
        let number = match self.free.last() {
            Some(number) => *number,
            None => u32::try_from(self.slots.len()).ok()?,
        };
        let sid = Sid(number);
        self.by_hash.entry(hash(&session.key)).or_default().push(sid);
        match self.slots.get_mut(number as usize) {
            Some(slot) => {
                *slot = Some(Box::new(session));
                self.free.pop();
            }
            None => self.slots.push(Some(Box::new(session))),
        }
        Some(sid)
    }

    pub(crate) fn remove(&mut self, sid: Sid) -> Option<Session> {
        let session = self.slots.get_mut(sid.0 as usize)?.take()?;
        self.free.push(sid.0);
        let hash = hash(&session.key);
        if let Some(same) = self.by_hash.get_mut(&hash) {
            same.retain(|s| *s != sid);
            if same.is_empty() {
                self.by_hash.remove(&hash);
            }
        }
        Some(*session)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Sid, &Session)> {
        self.slots.iter().zip(0u32..).filter_map(|(slot, n)| Some((Sid(n), slot.as_deref()?)))
    }

    pub(crate) fn numbers(&self) -> Vec<Sid> {
        self.iter().map(|(sid, _)| sid).collect()
    }

    /// After reading a snapshot, which carries no hashes.
    pub(crate) fn rebuild(&mut self) {
        let pairs: Vec<(u64, Sid)> = self.iter().map(|(sid, s)| (hash(&s.key), sid)).collect();
        self.by_hash.clear();
        for (hash, sid) in pairs {
            self.by_hash.entry(hash).or_default().push(sid);
        }
    }
}

/// FNV-1a, 64 bits: the same on every machine and in every run.
pub(crate) fn hash(key: &SessionKey) -> u64 {
    let mut h = Fnv::default();
    h.bytes(&[key.agent as u8]);
    if let Some(namespace) = &key.namespace {
        h.bytes(namespace.as_bytes());
        h.bytes(&[0xff]);
    }
    h.bytes(key.id.as_bytes());
    h.0
}

/// The FNV-1a hash (public domain; offset basis and prime as published).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv(pub(crate) u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
