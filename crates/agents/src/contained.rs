//! An adapter whose faults stay its own: what panics in it says nothing, and is not asked the same again. Payloads and lines at
//! which it panicked are counted. Texts of others come this way only.

use std::{
    cell::Cell,
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::Value;
use watchkeeper_core::{AgentKind, effect::HookAnswer};

use crate::{
    adapter::{Adapter, Parsed, StateFile, TranscriptReader, TranscriptSearch},
    ancestry::{AncestryRules, Found, ProcessInfo},
    declared::Declared,
    install::Installer,
};

/// One adapter in force. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AdapterRef(Kept);

#[derive(Debug, Clone)]
enum Kept {
    BuiltIn(&'static dyn Adapter),
    Declared(Arc<Declared>),
}

impl AdapterRef {
    pub(crate) const fn built_in(adapter: &'static dyn Adapter) -> Self {
        Self(Kept::BuiltIn(adapter))
    }

    pub(crate) const fn declared(adapter: Arc<Declared>) -> Self {
        Self(Kept::Declared(adapter))
    }

    fn inner(&self) -> &dyn Adapter {
        match &self.0 {
            Kept::BuiltIn(adapter) => *adapter,
            Kept::Declared(adapter) => adapter.as_ref(),
        }
    }
}

impl Deref for AdapterRef {
    type Target = dyn Adapter;

    fn deref(&self) -> &Self::Target {
        self
    }
}

/// `None` when it panicked. An adapter has no state of its own, and a reader that panicked is not asked again, so that nobody
/// sees what was left half done.
fn contained<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}

impl Adapter for AdapterRef {
    fn kind(&self) -> AgentKind {
        self.inner().kind()
    }

    fn wakes_model(&self) -> bool {
        self.inner().wakes_model()
    }

    fn ancestry(&self) -> &'static AncestryRules<'static> {
        self.inner().ancestry()
    }

    fn find_agent(&self, chain: &[ProcessInfo]) -> Found {
        contained(|| self.inner().find_agent(chain))
            .unwrap_or(Found::Unknown { why: "the rules for this agent's processes failed" })
    }

    fn can_ask(&self, agent: &ProcessInfo) -> Option<bool> {
        contained(|| self.inner().can_ask(agent)).flatten()
    }

    fn payload(&self, event: Option<&str>, argv: &[&[u8]], payload: &[u8]) -> Parsed {
        contained(|| self.inner().payload(event, argv, payload))
            .unwrap_or_else(|| Parsed { panicked: 1, ..Parsed::default() })
    }

    fn transcript(&self, session: &str, saved: Option<&Value>) -> Option<Box<dyn TranscriptReader>> {
        let inner = contained(|| self.inner().transcript(session, saved)).flatten()?;
        let (adapter, session) = (self.clone(), session.to_owned());
        Some(Box::new(Reader { adapter, session, inner: Some(inner), uncounted: Cell::new(0) }))
    }

    fn transcript_below_home(&self, session: &str) -> Option<String> {
        contained(|| self.inner().transcript_below_home(session)).flatten()
    }

    fn transcript_search(&self, session: &str) -> Option<TranscriptSearch> {
        contained(|| self.inner().transcript_search(session)).flatten()
    }

    fn state_dirs(&self, transcript: &str) -> Vec<String> {
        contained(|| self.inner().state_dirs(transcript)).unwrap_or_default()
    }

    fn state_file(&self, file_name: &str, content: Option<&[u8]>) -> Option<StateFile> {
        contained(|| self.inner().state_file(file_name, content)).flatten()
    }

    fn reply(&self, event: &str, answer: &HookAnswer) -> Option<String> {
        contained(|| self.inner().reply(event, answer)).flatten()
    }

    fn installer(&self) -> Option<&'static Installer> {
        self.inner().installer()
    }
}

/// A reader that is replaced by a fresh one when it panics: the line is passed over, and what it remembered is forgotten.
#[derive(Debug)]
struct Reader {
    adapter: AdapterRef,
    session: String,
    /// `None`: not even a fresh one could be made.
    inner: Option<Box<dyn TranscriptReader>>,
    /// Looks at lines that panicked since the last line that was read.
    uncounted: Cell<u32>,
}

impl TranscriptReader for Reader {
    fn wants(&self, line: &[u8]) -> bool {
        let Some(inner) = &self.inner else { return false };
        contained(|| inner.wants(line)).unwrap_or_else(|| {
            self.uncounted.set(self.uncounted.get().saturating_add(1));
            false
        })
    }

    fn line(&mut self, line: &[u8], out: &mut Parsed) {
        out.panicked = out.panicked.saturating_add(self.uncounted.take());
        let Some(inner) = &mut self.inner else { return };
        let before = out.observations.len();
        if contained(|| inner.line(line, out)).is_none() {
            out.observations.truncate(before);
            out.panicked = out.panicked.saturating_add(1);
            self.inner = contained(|| self.adapter.inner().transcript(&self.session, None)).flatten();
        }
    }

    fn save(&self) -> Value {
        let saved = self.inner.as_ref().and_then(|inner| contained(|| inner.save()));
        saved.unwrap_or(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{claude::Claude, line_scanner::LineScanner};

    const PLANTED: &str = "a planted panic";

    /// Panics wherever somebody's text says so.
    #[derive(Debug)]
    struct Broken;

    fn read(text: &[u8]) {
        assert!(!text.starts_with(b"{\"type\":\"user\",\"bad\""), "{PLANTED}");
    }

    impl Adapter for Broken {
        fn kind(&self) -> AgentKind {
            AgentKind::Claude
        }
        fn wakes_model(&self) -> bool {
            true
        }
        fn find_agent(&self, _chain: &[ProcessInfo]) -> Found {
            panic!("{PLANTED}")
        }
        fn can_ask(&self, _agent: &ProcessInfo) -> Option<bool> {
            panic!("{PLANTED}")
        }
        fn payload(&self, _event: Option<&str>, _argv: &[&[u8]], _payload: &[u8]) -> Parsed {
            panic!("{PLANTED}")
        }
        fn transcript(&self, session: &str, saved: Option<&Value>) -> Option<Box<dyn TranscriptReader>> {
            Some(Box::new(BrokenReader(Claude.transcript(session, saved)?)))
        }
        fn transcript_below_home(&self, _session: &str) -> Option<String> {
            panic!("{PLANTED}")
        }
        fn state_dirs(&self, _transcript: &str) -> Vec<String> {
            panic!("{PLANTED}")
        }
        fn state_file(&self, _file_name: &str, _content: Option<&[u8]>) -> Option<StateFile> {
            panic!("{PLANTED}")
        }
        fn reply(&self, _event: &str, _answer: &HookAnswer) -> Option<String> {
            panic!("{PLANTED}")
        }
        fn installer(&self) -> Option<&'static Installer> {
            None
        }
    }

    #[derive(Debug)]
    struct BrokenReader(Box<dyn TranscriptReader>);

    impl TranscriptReader for BrokenReader {
        fn wants(&self, line: &[u8]) -> bool {
            assert!(!line.starts_with(b"worse"), "{PLANTED}");
            self.0.wants(line)
        }
        fn line(&mut self, line: &[u8], out: &mut Parsed) {
            self.0.line(line, out);
            read(line);
        }
        fn save(&self) -> Value {
            self.0.save()
        }
    }

    static BROKEN: Broken = Broken;

    #[test]
    fn what_panics_says_nothing() {
        let adapter = AdapterRef::built_in(&BROKEN);
        let parsed = adapter.payload(None, &[], b"{}");
        assert_eq!((parsed.panicked, parsed.observations.len()), (1, 0));
        assert!(matches!(adapter.find_agent(&[]), Found::Unknown { .. }));
        assert_eq!(adapter.transcript_below_home("s"), None);
        assert_eq!(adapter.state_dirs("/t"), Vec::<String>::new());
        assert_eq!(adapter.state_file("1.json", None), None);
        assert_eq!(adapter.reply("Stop", &HookAnswer::Nothing), None);
    }

    #[test]
    fn a_line_that_panics_is_passed_over_and_those_behind_it_are_read() {
        let record = |more: &str| {
            format!(
                "{{\"type\":\"user\",{more}\"sessionId\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"promptId\":\"p\",\
                 \"message\":{{\"role\":\"user\",\"content\":\"words\"}}}}\n"
            )
        };
        let (good, bad) = (record(""), record("\"bad\":1,"));
        let mut reader = AdapterRef::built_in(&BROKEN).transcript("s", None).unwrap();
        let (mut scanner, mut out) = (LineScanner::new(), Parsed::default());
        scanner.push([&*good, &*bad, "worse\n", &*good].concat().as_bytes(), reader.as_mut(), &mut out);
        assert_eq!((out.observations.len(), out.panicked), (2, 2));
        let begins: Vec<u64> = out.lines.iter().map(|line| line.offset).collect();
        assert_eq!(begins, [0, (good.len() + bad.len() + "worse\n".len()) as u64]);
        assert_eq!(out.lines[1].first, 1);
        assert_ne!(reader.save(), Value::Null);
    }
}
