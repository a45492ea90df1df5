//! CRC-32 (the reflected polynomial 0xEDB88320 of IEEE 802.3) over rows and snapshots.
//!
//! SQLite notices damage to its own structure, not to the bytes of a blob; this does. Eight bytes a step, since it is
//! on the path of every entry.

static TABLES: [[u32; 256]; 8] = tables();

/// A running checksum.
pub(crate) struct Crc(u32);

impl Crc {
    pub(crate) const fn new() -> Self {
        Self(!0)
    }

    pub(crate) fn add(mut self, bytes: &[u8]) -> Self {
        let (words, tail) = bytes.as_chunks::<8>();
        for &[b0, b1, b2, b3, b4, b5, b6, b7] in words {
            let low = self.0 ^ u32::from_le_bytes([b0, b1, b2, b3]);
            let [a, b, c, d] = low.to_le_bytes();
            self.0 =
                at(7, a) ^ at(6, b) ^ at(5, c) ^ at(4, d) ^ at(3, b4) ^ at(2, b5) ^ at(1, b6) ^ at(0, b7);
        }
        for &byte in tail {
            let [low, ..] = self.0.to_le_bytes();
            self.0 = (self.0 >> 8) ^ at(0, low ^ byte);
        }
        self
    }

    pub(crate) const fn value(&self) -> u32 {
        !self.0
    }
}

fn at(table: usize, byte: u8) -> u32 {
    TABLES[table][usize::from(byte)]
}

#[expect(clippy::cast_possible_truncation, reason = "the index is below 256")]
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        tables[0][i] = value;
        i += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut i = 0;
        while i < 256 {
            let previous = tables[table - 1][i];
            tables[table][i] = (previous >> 8) ^ tables[0][(previous & 0xff) as usize];
            i += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], expected: u32) {
        assert_eq!(Crc::new().add(input).value(), expected, "{input:?}");
    }

    /// The check values published with the polynomial.
    #[test]
    fn known_values() {
        check(b"", 0);
        check(b"a", 0xE8B7_BE43);
        check(b"123456789", 0xCBF4_3926);
        check(b"The quick brown fox jumps over the lazy dog", 0x414F_A339);
    }

    #[test]
    fn pieces_give_the_same_as_the_whole() {
        let text = b"The quick brown fox jumps over the lazy dog";
        for cut in 0..text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(Crc::new().add(head).add(tail).value(), 0x414F_A339);
        }
    }
}
