//! Where sessions live: numbered slots, and a map from key to number whose cost does not grow with their lengths.

use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    hash::{Hash as _, Hasher},
};

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
    by_hash: BTreeMap<u64, Sid>,
    /// Further ones of a hash that is taken: as good as never any.
    #[serde(skip)]
    twins: BTreeSet<(u64, Sid)>,
}

impl Table {
    pub(crate) fn find(&self, key: &SessionKey) -> Option<Sid> {
        let hash = hash(key);
        let is = |sid: &Sid| self.get(*sid).is_some_and(|s| s.key == *key);
        let first = *self.by_hash.get(&hash)?;
        if is(&first) {
            return Some(first);
        }
        let twins = self.twins.range((hash, Sid(0))..=(hash, Sid(u32::MAX)));
        twins.map(|(_, sid)| *sid).find(is)
    }

    fn enter(&mut self, hash: u64, sid: Sid) {
        match self.by_hash.entry(hash) {
            Entry::Vacant(free) => {
                free.insert(sid);
            }
            Entry::Occupied(_) => {
                self.twins.insert((hash, sid));
            }
        }
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
        self.enter(hash(&session.key), sid);
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
        if !self.twins.remove(&(hash, sid)) {
            self.by_hash.remove(&hash);
            // The next of the same hash moves up.
            let next = self.twins.range((hash, Sid(0))..=(hash, Sid(u32::MAX))).next().copied();
            if let Some((hash, next)) = next {
                self.twins.remove(&(hash, next));
                self.by_hash.insert(hash, next);
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
        self.twins.clear();
        for (hash, sid) in pairs {
            self.enter(hash, sid);
        }
    }
}

fn hash(key: &SessionKey) -> u64 {
    let mut mixer = Mixer::default();
    key.hash(&mut mixer);
    mixer.finish()
}

/// The hash of an id.
pub(crate) fn hash_of(id: &str) -> u64 {
    let mut mixer = Mixer::default();
    mixer.write(id.as_bytes());
    mixer.finish()
}

/// A hash that is the same in every run and on every machine of one word size. In the table it only finds, and equality
/// decides; of a delivery that was applied it is all that is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mixer(u64);

impl Mixer {
    /// An odd number with a fair share of ones: the fractional part of the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(Self::FACTOR);
        self.0 = mixed ^ (mixed >> 32);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The length keeps a short end apart from one padded with zeros.
        self.word(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }
}
