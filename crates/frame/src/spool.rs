//! The spool: events of hooks that found no daemon, one file each.
//!
//! A file is the request frame, mostly a block that says from which process it comes ([`crate::ancestry`]), and a trailer:
//! magic `WKSP`, the length of what stands before it as u32, and the [`checksum`] of that as u64, little endian. It is
//! written under another name, renamed to a name that says what is needed to put files in order and to choose which leaves
//! first, without opening any, and then synced: a name that a power cut leaves without its content is told by the trailer,
//! and nothing less than a power cut loses what the kernel has. A listing sorted by name is in order of the hooks' starts
//! while nobody steps the wall clock; [`drain_order`](store::Spool::drain_order) is right also when somebody does.

mod census;
mod name;
#[cfg(feature = "std")]
pub mod store;

pub use census::{Census, Room};
pub use name::{NAME_BYTES, SpoolName};
#[cfg(feature = "std")]
pub use store::{Corruption, Event, Listing, Spool, SpoolError, Spooled, TEMPORARY_MAX_AGE};

use crate::{
    ancestry::BLOCK_MAX_BYTES,
    wire::{Announced, FRAME_MAX_BYTES},
};

/// Most files that hooks leave; see [`Census`] for what happens at the limit.
pub const SPOOL_MAX_FILES: usize = 4_096;
/// Most bytes that hooks leave; see [`Census`] for what happens at the limit.
pub const SPOOL_MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Length of the trailer.
pub const TRAILER_BYTES: usize = 16;
/// Longest file.
pub const FILE_MAX_BYTES: usize = FRAME_MAX_BYTES + BLOCK_MAX_BYTES + TRAILER_BYTES;
/// Name prefix of a file that is being written. One that is older than any hook's life is rubbish.
pub const TEMPORARY_PREFIX: &str = "tmp-";
/// Grows by one byte for each event that was dropped for want of room.
pub const DROPPED_FILE: &str = "dropped";
/// The count of dropped events stays at this many.
pub const DROPPED_MAX: u64 = 1_000_000;

/// Begins a [`checksum`].
pub const CHECKSUM_SEED: u64 = 0xcbf2_9ce4_8422_2325;
const TRAILER_MAGIC: [u8; 4] = *b"WKSP";

/// FNV-1a over 64 bits, continued from `hash`: finds torn and rotten files; is no defence against a forger, who could
/// as well run the hook.
#[must_use]
pub fn checksum(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The trailer that belongs behind `frame` and `ancestry`.
#[must_use]
pub fn trailer(frame: &[u8], ancestry: &[u8]) -> [u8; TRAILER_BYTES] {
    let mut out = [0; TRAILER_BYTES];
    let [l0, l1, l2, l3, ..] = (frame.len() + ancestry.len()).to_le_bytes();
    let (head, sum) = out.split_at_mut(8);
    let [m0, m1, m2, m3] = TRAILER_MAGIC;
    head.copy_from_slice(&[m0, m1, m2, m3, l0, l1, l2, l3]);
    sum.copy_from_slice(&checksum(checksum(CHECKSUM_SEED, frame), ancestry).to_le_bytes());
    out
}

/// The frame and what stands behind it in the bytes of a file; `None` when the trailer does not fit them. What begins as
/// no frame of this version is given whole.
#[must_use]
pub fn parts_of_file(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let (content, found) = file.split_last_chunk::<TRAILER_BYTES>()?;
    if trailer(content, &[]) != *found {
        return None;
    }
    let end = Announced::read(content).map_or(content.len(), |announced| announced.frame_bytes());
    Some(content.split_at_checked(end).unwrap_or((content, &[])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;

    #[test]
    fn any_single_change_is_noticed() {
        for seed in 0..30 {
            let mut random = Generator::new(seed);
            let (frame, ancestry) = (random.frame(), random.bytes(200));
            let mut file = frame.clone();
            file.extend_from_slice(&ancestry);
            file.extend_from_slice(&trailer(&frame, &ancestry));
            assert_eq!(parts_of_file(&file), Some((frame.as_slice(), ancestry.as_slice())));
            for len in [0, 15, 16, file.len() - 1] {
                assert_eq!(parts_of_file(&file[..len]), None, "seed {seed}, cut at {len}");
            }
            let at = random.below(file.len());
            file[at] ^= 1 << random.below(8);
            assert_eq!(parts_of_file(&file), None, "seed {seed}, changed at {at}");
        }
    }
}
