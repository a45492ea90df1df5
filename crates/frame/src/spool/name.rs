//! A spool file's name: `<wall ms>-<boot>-<boot clock ns>-<k|o><file length>-<delivery id>.frame`, all in hexadecimal
//! of fixed width, so that names sort as their numbers.

use crate::{event::EventClass, wire::Head};

/// Length of every name.
pub const NAME_BYTES: usize = 12 + 1 + 8 + 1 + 16 + 1 + 1 + 6 + 1 + 32 + 6;
const SUFFIX: &[u8] = b".frame";
const WALL_MAX: u64 = (1 << 48) - 1;
const LENGTH_MAX: u32 = (1 << 24) - 1;

/// What a name says. The order of fields is not the order of arrival: see [`SpoolName::arrival`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolName {
    /// The hook's wall clock when it began, milliseconds since 1970, at least zero.
    pub wall_ms: u64,
    /// The upper 32 bits of the boot id; zero when the hook could not read it.
    pub boot: u32,
    /// The hook's boot clock when it began, nanoseconds.
    pub started_boot_ns: u64,
    /// Whether a full spool keeps it before others.
    pub kept: bool,
    /// Length of the file.
    pub file_bytes: u32,
    pub delivery: u128,
}

impl SpoolName {
    /// The name for a frame with this head; numbers too great for their field stay at its greatest value.
    #[must_use]
    pub fn new(head: &Head, class: EventClass, file_bytes: usize) -> Self {
        let [.., a, b, c, d] = (head.boot_id >> 96).to_be_bytes();
        Self {
            wall_ms: u64::try_from(head.wall_ms).unwrap_or(0).min(WALL_MAX),
            boot: u32::from_be_bytes([a, b, c, d]),
            started_boot_ns: head.started_boot_ns,
            kept: class.is_kept(),
            file_bytes: u32::try_from(file_bytes).unwrap_or(LENGTH_MAX).min(LENGTH_MAX),
            delivery: head.delivery,
        }
    }

    /// Sorts by arrival within one boot; between boots by the wall clock only.
    #[must_use]
    pub const fn arrival(&self) -> (u64, u128) {
        (self.started_boot_ns, self.delivery)
    }

    /// The name as bytes.
    #[must_use]
    pub fn write(&self) -> [u8; NAME_BYTES] {
        let mut out = [b'-'; NAME_BYTES];
        let mut at = 0;
        hex(&mut out, &mut at, u128::from(self.wall_ms), 12);
        at += 1;
        hex(&mut out, &mut at, u128::from(self.boot), 8);
        at += 1;
        hex(&mut out, &mut at, u128::from(self.started_boot_ns), 16);
        at += 1;
        if let Some(class) = out.get_mut(at) {
            *class = if self.kept { b'k' } else { b'o' };
        }
        at += 1;
        hex(&mut out, &mut at, u128::from(self.file_bytes), 6);
        at += 1;
        hex(&mut out, &mut at, self.delivery, 32);
        if let Some(end) = out.last_chunk_mut::<6>() {
            end.copy_from_slice(SUFFIX);
        }
        out
    }

    /// Reads a name; `None` for any other file.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let name: &[u8; NAME_BYTES] = name.try_into().ok()?;
        let mut parts = name.strip_suffix(SUFFIX)?.split(|b| *b == b'-');
        let wall = number(parts.next()?, 12)?;
        let boot = number(parts.next()?, 8)?;
        let started = number(parts.next()?, 16)?;
        let (class, length) = parts.next()?.split_first()?;
        let length = number(length, 6)?;
        let delivery = number(parts.next()?, 32)?;
        let kept = match class {
            b'k' => true,
            b'o' => false,
            _ => return None,
        };
        Some(Self {
            wall_ms: u64::try_from(wall).ok()?,
            boot: u32::try_from(boot).ok()?,
            started_boot_ns: u64::try_from(started).ok()?,
            kept,
            file_bytes: u32::try_from(length).ok()?,
            delivery,
        })
    }
}

fn hex(out: &mut [u8; NAME_BYTES], at: &mut usize, value: u128, digits: usize) {
    for place in (0..digits).rev() {
        let [digit, ..] = ((value >> (4 * place)) & 0xf).to_le_bytes();
        if let Some(target) = out.get_mut(*at) {
            *target = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        }
        *at += 1;
    }
}

/// Exactly `digits` lower-case hexadecimal digits.
fn number(text: &[u8], digits: usize) -> Option<u128> {
    if text.len() != digits {
        return None;
    }
    text.iter().try_fold(0u128, |value, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(value << 4 | u128::from(digit))
    })
}

#[cfg(feature = "std")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;

    #[test]
    fn a_name_reads_as_documented() {
        let head = Head {
            delivery: 0xabc,
            started_boot_ns: 0x1234,
            boot_id: 0xdead_beef << 96 | 7,
            wall_ms: 0x1_0000,
            ..Head::default()
        };
        let name = SpoolName::new(&head, EventClass::Ends, 0x200);
        let expected =
            "000000010000-deadbeef-0000000000001234-k000200-00000000000000000000000000000abc.frame";
        assert_eq!(std::str::from_utf8(&name.write()).unwrap(), expected);
        assert_eq!(SpoolName::parse(expected.as_bytes()), Some(name));
    }

    #[test]
    fn names_sort_as_their_numbers_and_survive_the_round_trip() {
        for seed in 0..500 {
            let mut random = Generator::new(seed);
            let (one, two) = (random.head(), random.head());
            let [one, two] = [one, two].map(|head| SpoolName::new(&head, EventClass::Ordinary, 90));
            assert_eq!(SpoolName::parse(&one.write()), Some(one), "seed {seed}");
            if one.wall_ms != two.wall_ms {
                assert_eq!(one.write() < two.write(), one.wall_ms < two.wall_ms, "seed {seed}");
            }
        }
    }

    #[test]
    fn other_files_are_no_names() {
        let good = SpoolName::new(&Head::default(), EventClass::Starts, 1).write();
        assert!(SpoolName::parse(&good).is_some());
        for at in 0..good.len() {
            let mut other = good;
            other[at] = b'Z';
            assert_eq!(SpoolName::parse(&other), None, "changed at {at}");
            assert_eq!(SpoolName::parse(&good[..at]), None);
        }
    }
}
