//! What an agent appends to its transcript. An input is the file, with one byte before it that says how it arrives.

use watchkeeper_agents::{LineScanner, Observation, Parsed};
use watchkeeper_core::AgentKind;

/// What a reader keeps between two lines, as JSON, in bytes: it stands in the journal beside each cursor.
const SAVED_MAX: usize = 512 * 1024;

fn check(kind: AgentKind, input: &[u8]) {
    let Some((how, file)) = input.split_first() else { return };
    let whole = read(kind, file, usize::MAX);
    // In whatever pieces it arrives, it says the same.
    assert_eq!(read(kind, file, usize::from(*how) + 1), whole);
    // A reader that was saved and made again at the end of a line goes on as if nothing had been.
    let lines = file.split_inclusive(|b| *b == b'\n').count();
    let cut: usize = file.split_inclusive(|b| *b == b'\n').take(lines / 2).map(<[u8]>::len).sum();
    assert_eq!(read_with_restart(kind, file, cut), whole);
}

type Said = (Vec<Observation>, serde_json::Value);

fn read(kind: AgentKind, file: &[u8], piece: usize) -> Said {
    let Some(mut reader) = crate::adapter(kind).transcript("s", None) else { unreachable!("it has one") };
    let (mut scanner, mut parsed) = (LineScanner::new(), Parsed::default());
    for piece in file.chunks(piece) {
        scanner.push(piece, reader.as_mut(), &mut parsed);
    }
    finish(parsed, reader.as_ref())
}

fn read_with_restart(kind: AgentKind, file: &[u8], cut: usize) -> Said {
    let adapter = crate::adapter(kind);
    let Some(mut reader) = adapter.transcript("s", None) else { unreachable!("it has one") };
    let mut parsed = Parsed::default();
    let (before, after) = file.split_at(cut);
    LineScanner::new().push(before, reader.as_mut(), &mut parsed);
    let Some(mut again) = adapter.transcript("s", Some(&reader.save())) else {
        unreachable!("it had one before")
    };
    LineScanner::at(cut as u64).push(after, again.as_mut(), &mut parsed);
    finish(parsed, again.as_ref())
}

fn finish(parsed: Parsed, reader: &dyn watchkeeper_agents::TranscriptReader) -> Said {
    assert!(parsed.lines.iter().all(|line| line.first < parsed.observations.len()));
    let saved = reader.save();
    assert!(saved.to_string().len() <= SAVED_MAX);
    (parsed.observations, saved)
}

macro_rules! doors {
    ($($name:ident: $kind:ident),*) => {$(
        /// Any transcript of this agent, in any pieces, with a restart in its middle.
        pub fn $name(input: &[u8]) {
            check(AgentKind::$kind, input);
        }
    )*};
}

doors!(claude: Claude, codex: Codex, copilot: Copilot, gemini: Gemini, qwen: Qwen);
