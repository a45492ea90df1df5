//! Delivery ids of what has no sender that could give one: transcripts and state files. The same bytes at the same place have
//! the same id whenever they are read, in any cut and by any later version, so that what is read twice counts once.

use std::{borrow::Cow, path::Path};

use watchkeeper_core::DeliveryId;
use watchkeeper_store::FileIdentity;

/// Of what the line says that begins at `offset` of a transcript; what else the same line says counts on from there.
/// `rewrite` tells contents apart that one path had one after the other.
#[must_use]
pub(crate) fn of_line(path: &Path, file: FileIdentity, rewrite: u64, offset: u64) -> DeliveryId {
    let numbers = [file.device, file.inode, rewrite, offset];
    let print = numbers
        .iter()
        .fold(Print::of("line").part(&bytes_of(path)), |print, number| print.part(&number.to_le_bytes()));
    DeliveryId(print.0)
}

/// Of what a state file says with this content. A removal has none that could tell it from an earlier one; `moment` does.
#[must_use]
pub(crate) fn of_state_file(path: &Path, content: Option<&[u8]>, moment: u64) -> DeliveryId {
    let place = Print::of("state").part(&bytes_of(path));
    let print = match content {
        Some(content) => place.part(content),
        None => place.part(&moment.to_le_bytes()),
    };
    DeliveryId(print.0)
}

/// The number of the content that begins with `first_line` and follows on content number `before`; never zero, which is the
/// number of a file's first content.
#[must_use]
pub(crate) fn content_number(before: u64, first_line: &[u8]) -> u64 {
    let print = Print::of("content").part(&before.to_le_bytes()).part(first_line);
    // Both halves, so that no bit is lost for nothing.
    let [high, low] = [print.0 >> 64, print.0 & u128::from(u64::MAX)];
    u64::try_from(high ^ low).unwrap_or(u64::MAX).max(1)
}

/// A path's bytes as every version sees them: the system's own, or where it has none those of the text.
#[cfg(unix)]
fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    Cow::Borrowed(path.as_os_str().as_bytes())
}

/// A path's bytes as every version sees them: those of the text, or of the units where it is no text.
#[cfg(windows)]
fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    use std::os::windows::ffi::OsStrExt as _;
    match path.to_str() {
        Some(text) => Cow::Borrowed(text.as_bytes()),
        None => Cow::Owned(path.as_os_str().encode_wide().flat_map(u16::to_le_bytes).collect()),
    }
}

/// A path's bytes as every version sees them: those of the text. Paths that are no text may share theirs.
#[cfg(not(any(unix, windows)))]
fn bytes_of(path: &Path) -> Cow<'_, [u8]> {
    match path.to_string_lossy() {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// FNV-1a of 128 bits over parts with their lengths: stored ids must not change with the compiler, as the standard library's
/// hash may. It is no secret; whoever makes two lines collide silences one line of a file of his own.
#[derive(Debug, Clone, Copy)]
struct Print(u128);

impl Print {
    /// Offset basis and prime as the FNV draft gives them for 128 bits.
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn of(kind: &str) -> Self {
        Self(Self::BASIS).part(kind.as_bytes())
    }

    fn part(self, bytes: &[u8]) -> Self {
        let length = (bytes.len() as u64).to_le_bytes();
        let step = |print: u128, byte: &u8| (print ^ u128::from(*byte)).wrapping_mul(Self::PRIME);
        Self(length.iter().chain(bytes).fold(self.0, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &str, inode: u64, offset: u64) -> DeliveryId {
        of_line(Path::new(path), FileIdentity { device: 1, inode }, 0, offset)
    }

    #[test]
    fn the_same_place_gives_the_same_delivery() {
        assert_eq!(line("/t", 2, 3), line("/t", 2, 3));
        for other in [line("/t", 2, 4), line("/t", 3, 3), line("/u", 2, 3)] {
            assert_ne!(line("/t", 2, 3), other);
        }
    }

    #[test]
    fn a_state_file_is_told_by_its_content_and_its_removal_by_the_moment() {
        let path = Path::new("/s/7.json");
        let said = |content: &str, moment| of_state_file(path, Some(content.as_bytes()), moment);
        assert_eq!(said("busy", 1), said("busy", 2));
        assert_ne!(said("busy", 1), said("idle", 1));
        assert_ne!(of_state_file(path, None, 1), of_state_file(path, None, 2));
    }

    /// Journals of earlier versions hold these.
    #[test]
    fn ids_are_the_same_in_every_version() {
        assert_eq!(line("/t", 2, 3).0, 0xa6de_692b_5d82_2eb3_6830_ad00_afe6_6f5a);
        assert_eq!(content_number(0, b"{}"), 0x6b09_547f_9f4c_adb8);
    }
}
