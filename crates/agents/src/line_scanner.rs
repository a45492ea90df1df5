//! Splits appended bytes into lines in bounded memory and hands the wanted ones to a transcript reader.
//!
//! A line may have any length and arrive in any pieces. A look at its start decides whether it is kept; the others are
//! passed over as they come. Knows nothing of records; the torn last line waits for its rest.

use memchr::{memchr, memmem};

use crate::adapter::{Line, Parsed, TranscriptReader};

/// How much of a line the reader sees before it decides (or the whole line, if shorter).
pub const PREFIX_MAX: usize = 512;
/// A wanted line that grows longer than this is passed over and counted in [`LineScanner::too_long`].
pub const LINE_MAX: usize = 4 * 1024 * 1024;
/// The buffer kept between lines; a larger one is given back after the line that needed it.
const BUFFER_KEPT_MAX: usize = 256 * 1024;

/// Whether one of the marks stands anywhere in `text`: a reader's cheap look.
pub(crate) fn holds_any(text: &[u8], marks: &[&[u8]]) -> bool {
    marks.iter().any(|mark| memmem::find(text, mark).is_some())
}

/// The splitter of one file.
#[derive(Debug, Default)]
pub struct LineScanner {
    buffer: Vec<u8>,
    state: State,
    /// Where the line being read begins in its file.
    begin: u64,
    pending: u64,
    too_long: u64,
}

/// What is known about the line being read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not enough of it to decide.
    #[default]
    Begun,
    Wanted,
    PassedOver,
}

impl LineScanner {
    /// For a file that is read from its begin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For a file that is read from `offset`, where a line begins.
    #[must_use]
    pub fn at(offset: u64) -> Self {
        Self { begin: offset, ..Self::default() }
    }

    /// For a file that is read from `offset`, somewhere in its middle: what comes before the first newline is passed over.
    #[must_use]
    pub fn inside_a_line(offset: u64) -> Self {
        Self { state: State::PassedOver, ..Self::at(offset) }
    }

    /// Bytes since the last newline. A cursor that survives a restart is the file offset minus this.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Wanted lines that were passed over for their length.
    #[must_use]
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Takes the next bytes of the file; complete wanted lines go to `reader` in order.
    pub fn push(&mut self, bytes: &[u8], reader: &mut dyn TranscriptReader, out: &mut Parsed) {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let (piece, behind) = rest.split_at(end);
            if self.pending == 0 && self.state == State::Begun && piece.len() <= LINE_MAX {
                self.whole(piece, reader, out);
            } else {
                self.extend(piece, reader);
                self.finish(reader, out);
            }
            rest = behind.get(1..).unwrap_or_default();
        }
        self.extend(rest, reader);
    }

    /// A line that came in one piece need not be kept.
    fn whole(&mut self, line: &[u8], reader: &mut dyn TranscriptReader, out: &mut Parsed) {
        if !line.is_empty() && reader.wants(line.get(..PREFIX_MAX).unwrap_or(line)) {
            self.read(line, reader, out);
        }
        self.begin += line.len() as u64 + 1;
    }

    fn read(&self, line: &[u8], reader: &mut dyn TranscriptReader, out: &mut Parsed) {
        let first = out.observations.len();
        reader.line(line, out);
        if out.observations.len() > first {
            out.lines.push(Line { first, offset: self.begin });
        }
    }

    /// Adds a piece of the current line.
    fn extend(&mut self, piece: &[u8], reader: &dyn TranscriptReader) {
        self.pending += piece.len() as u64;
        match self.state {
            State::PassedOver => {}
            State::Wanted => self.keep(piece),
            State::Begun => {
                let room = PREFIX_MAX - self.buffer.len().min(PREFIX_MAX);
                let (start, behind) = piece.split_at(room.min(piece.len()));
                self.buffer.extend_from_slice(start);
                if self.buffer.len() >= PREFIX_MAX {
                    self.decide(reader);
                    if self.state == State::Wanted {
                        self.keep(behind);
                    }
                }
            }
        }
    }

    fn decide(&mut self, reader: &dyn TranscriptReader) {
        if reader.wants(&self.buffer) {
            self.state = State::Wanted;
        } else {
            self.state = State::PassedOver;
            self.buffer.clear();
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.buffer.len() + piece.len() > LINE_MAX {
            self.too_long += 1;
            self.state = State::PassedOver;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(piece);
        }
    }

    /// The newline came.
    fn finish(&mut self, reader: &mut dyn TranscriptReader, out: &mut Parsed) {
        if self.state == State::Begun {
            self.decide(reader);
        }
        if self.state == State::Wanted && !self.buffer.is_empty() {
            self.read(&self.buffer, reader, out);
        }
        self.begin += self.pending + 1;
        self.state = State::Begun;
        self.pending = 0;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_KEPT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// Wants lines that start with `w` and remembers them.
    #[derive(Debug, Default)]
    struct Recorder(Vec<Vec<u8>>);

    impl TranscriptReader for Recorder {
        fn wants(&self, line: &[u8]) -> bool {
            assert!(line.len() <= PREFIX_MAX);
            line.first() == Some(&b'w')
        }

        fn line(&mut self, line: &[u8], _out: &mut Parsed) {
            self.0.push(line.to_vec());
        }

        fn save(&self) -> Value {
            Value::Null
        }
    }

    fn scan(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, LineScanner) {
        let (mut scanner, mut recorder) = (LineScanner::new(), Recorder::default());
        for piece in pieces {
            scanner.push(piece, &mut recorder, &mut Parsed::default());
        }
        (recorder.0, scanner)
    }

    fn check(pieces: &[&[u8]], expected: &[&[u8]], pending: u64) {
        let (lines, scanner) = scan(pieces);
        assert_eq!(lines, expected);
        assert_eq!(scanner.pending(), pending);
    }

    #[test]
    fn a_torn_line_waits_for_its_rest() {
        check(&[b"w1\nno\nw2"], &[b"w1"], 2);
        check(&[b"w1\nno\nw2", b"3\n"], &[b"w1", b"w23"], 0);
        check(&[b"\n\nw\n"], &[b"w"], 0);
    }

    #[test]
    fn long_lines_cost_no_memory() {
        let long = vec![b'w'; LINE_MAX];
        let (lines, scanner) = scan(&[&long, b"\nw\n"]);
        assert_eq!((lines.len(), scanner.too_long()), (2, 0));
        let (lines, scanner) = scan(&[&long, b"w", &long, b"\nw\n"]);
        assert_eq!((lines, scanner.too_long()), (vec![b"w".to_vec()], 1));
        assert!(scanner.buffer.capacity() <= BUFFER_KEPT_MAX);
        let unwanted = vec![b'x'; 3 * LINE_MAX];
        let (lines, scanner) = scan(&[&unwanted, b"x"]);
        assert_eq!((lines.len(), scanner.too_long(), scanner.pending()), (0, 0, 3 * LINE_MAX as u64 + 1));
        assert!(scanner.buffer.capacity() <= BUFFER_KEPT_MAX);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            lines in prop::collection::vec(prop::collection::vec(prop::sample::select(&b"wx\"{\xff"[..]), 0..1200), 0..8),
            cuts in prop::collection::vec(0_usize..9000, 0..12),
        ) {
            let whole = lines.join(&b'\n');
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(whole.len())).collect();
            cuts.sort_unstable();
            cuts.push(whole.len());
            let mut start = 0;
            let mut pieces: Vec<&[u8]> = Vec::new();
            for cut in cuts {
                pieces.push(&whole[start..cut]);
                start = cut;
            }
            let complete = lines.split_last().map(|(_, complete)| complete).unwrap_or_default();
            let wanted: Vec<Vec<u8>> = complete.iter().filter(|line| line.starts_with(b"w")).cloned().collect();
            prop_assert_eq!(scan(&pieces).0, wanted.clone());
            prop_assert_eq!(scan(&[&whole]).0, wanted);
        }
    }
}
