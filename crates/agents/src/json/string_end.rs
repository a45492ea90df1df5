//! Where a string of a JSON text ends, found at the speed of memory: a transcript is mostly tools' outputs, and those are full of
//! escaped quotes, so that to stop at each costs more than to read the file. Knows nothing else of JSON.

/// Bytes that are looked at together; the compiler makes few instructions of such a loop.
const BLOCK: usize = 64;

/// The place of the closing quote of the string that begins at `from`, behind its opening quote; the end of the text if there is
/// none.
pub(super) fn end_of_string(text: &[u8], from: usize) -> usize {
    let (blocks, rest) = text.get(from..).unwrap_or_default().as_chunks::<BLOCK>();
    let mut at = from;
    for block in blocks {
        if may_end_in(text, from, at, block)
            && let Some(end) =
                quotes_in(block).map(|place| at + place).find(|quote| closes(text, from, *quote))
        {
            return end;
        }
        at += BLOCK;
    }
    let quotes = rest.iter().zip(at..).filter(|(byte, _)| **byte == b'"').map(|(_, at)| at);
    quotes.into_iter().find(|quote| closes(text, from, *quote)).unwrap_or(text.len())
}

/// Whether the block at `at` has a quote that is not certainly an escaped one: a single backslash stands before that.
fn may_end_in(text: &[u8], from: usize, at: usize, block: &[u8; BLOCK]) -> bool {
    // What is before the string's first block is not the string's.
    if at == from {
        return true;
    }
    let shifted = |by: usize| text.get(at - by..)?.first_chunk::<BLOCK>();
    let (Some(before), Some(before_that)) = (shifted(1), shifted(2)) else { return true };
    block.iter().zip(before).zip(before_that).fold(false, |any, ((byte, before), before_that)| {
        any | ((*byte == b'"') & !((*before == b'\\') & (*before_that != b'\\')))
    })
}

/// Whether the quote ends the string: an even number of backslashes stands before it.
fn closes(text: &[u8], from: usize, quote: usize) -> bool {
    let before = text.get(from..quote).unwrap_or_default();
    // A quote before this one bounds the count: it is no backslash.
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
}

/// The places of the quotes in a block, in order.
fn quotes_in(block: &[u8; BLOCK]) -> impl Iterator<Item = usize> {
    block
        .as_chunks::<8>()
        .0
        .iter()
        .zip(0..)
        .flat_map(|(word, index)| quotes_among(*word).map(move |at| 8 * index + at))
}

/// The places of the quotes among eight bytes, by arithmetic on all of them at once.
fn quotes_among(word: [u8; 8]) -> impl Iterator<Item = usize> {
    const ALL_QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    const LOW_BITS: u64 = u64::from_le_bytes([0x7f; 8]);
    // Zero where a quote was. Adding to the low bits carries into the high one of every byte that has any, and no further.
    let differs = u64::from_le_bytes(word) ^ ALL_QUOTES;
    let mut found = !(((differs & LOW_BITS) + LOW_BITS) | differs | LOW_BITS);
    std::iter::from_fn(move || {
        let place = (found != 0).then(|| found.trailing_zeros() as usize / 8)?;
        found &= found - 1;
        Some(place)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Escape by escape, as the grammar says it.
    fn by_the_letter(text: &[u8], from: usize) -> usize {
        let mut at = from;
        while let Some(byte) = text.get(at) {
            match byte {
                b'"' => return at,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        text.len()
    }

    fn check(text: &[u8], from: usize) {
        let from = from.min(text.len());
        assert_eq!(
            end_of_string(text, from),
            by_the_letter(text, from),
            "{:?}",
            String::from_utf8_lossy(text)
        );
    }

    #[test]
    fn backslashes_on_the_edge_of_a_block() {
        for length in 0..3 * BLOCK {
            for backslashes in 0..5 {
                let mut text = vec![b'a'; length];
                text.extend(std::iter::repeat_n(b'\\', backslashes));
                text.extend(b"\"aaa\"");
                text.extend([b'a'; 2 * BLOCK]);
                for from in 0..3 {
                    check(&text, from);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_string_ends_where_the_grammar_says(
            text in prop::collection::vec(
                prop_oneof![
                    6 => Just(&b"aaaaaaaaaaaa"[..]), 4 => Just(&b"\\\""[..]), 2 => Just(&b"\\\\"[..]),
                    1 => Just(&b"\\"[..]), 1 => Just(&b"\""[..]), 1 => Just(&b"\xa2\x21\x23\x5d"[..]),
                ],
                0..80,
            ),
            from in 0_usize..200,
        ) {
            check(&text.concat(), from);
        }
    }
}
