//! Decides what a full spool gives up.
//!
//! At the limit the oldest ordinary event leaves (newer activity says more, and starts and ends decide about
//! sessions); an ordinary event that finds only starts and ends is itself dropped; a start or end that finds only its
//! like takes the place of the oldest. Every event given up adds one byte to [`super::DROPPED_FILE`].

use super::{SPOOL_MAX_BYTES, SPOOL_MAX_FILES, name::SpoolName};

/// What the names in the spool say together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Census {
    files: usize,
    bytes: u64,
    oldest_ordinary: Option<SpoolName>,
    oldest_kept: Option<SpoolName>,
}

/// Whether one more event fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Free,
    /// This file must go; then count again.
    After(SpoolName),
    /// The new event is to be dropped.
    None,
}

impl Census {
    /// Counts one directory entry; names of other files do not count.
    pub fn see(&mut self, entry: &[u8]) {
        let Some(name) = SpoolName::parse(entry) else { return };
        self.files += 1;
        self.bytes += u64::from(name.file_bytes);
        let oldest = if name.kept { &mut self.oldest_kept } else { &mut self.oldest_ordinary };
        let age = |name: &SpoolName| (name.wall_ms, name.arrival());
        if oldest.is_none_or(|old| age(&name) < age(&old)) {
            *oldest = Some(name);
        }
    }

    /// What is to be done before `new` is written.
    #[must_use]
    pub fn room_for(&self, new: &SpoolName) -> Room {
        if self.files < SPOOL_MAX_FILES && self.bytes + u64::from(new.file_bytes) <= SPOOL_MAX_BYTES {
            return Room::Free;
        }
        match (self.oldest_ordinary, self.oldest_kept) {
            (Some(ordinary), _) => Room::After(ordinary),
            (None, Some(kept)) if new.kept => Room::After(kept),
            _ => Room::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(at: u64, kept: bool) -> SpoolName {
        SpoolName { wall_ms: at, boot: 1, started_boot_ns: at, kept, file_bytes: 1_000, delivery: at.into() }
    }

    fn check(names: &[SpoolName], new: SpoolName, expected: Room) {
        let mut census = Census::default();
        names.iter().for_each(|name| census.see(&name.write()));
        census.see(b"tmp-00");
        census.see(b"dropped");
        assert_eq!(census.room_for(&new), expected);
    }

    #[test]
    fn the_least_valuable_leaves_first() {
        let full = u64::try_from(SPOOL_MAX_FILES).unwrap();
        let kept: [SpoolName; SPOOL_MAX_FILES] = core::array::from_fn(|i| name(full - i as u64, true));
        let mut mixed = kept;
        mixed[7] = name(900, false);
        mixed[9] = name(800, false);
        let new = full + 5;
        check(&kept[1..], name(new, false), Room::Free);
        check(&kept, name(new, false), Room::None);
        check(&kept, name(new, true), Room::After(name(1, true)));
        check(&mixed, name(new, false), Room::After(name(800, false)));
        check(&mixed, name(new, true), Room::After(name(800, false)));
    }

    #[test]
    fn bytes_count_too() {
        let mut large = name(1, false);
        large.file_bytes = (1 << 24) - 1;
        let names = [large; 16];
        check(&names[..15], large, Room::Free);
        check(&names, name(2, true), Room::After(large));
    }
}
