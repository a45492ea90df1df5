//! Agents without an adapter of their own: one file of the user's each, read once, says which fields and events of
//! their hooks and transcripts mean what. The adapter that comes of it is held to the same bounds as the built-in ones.
//!
//! Knows nothing of where the files are, nor of who reads them again.

mod file;
mod problem;
mod rules;
mod transcript;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use watchkeeper_core::{AgentKind, effect::HookAnswer, signal::SignalBody};

use self::rules::{Field, Section};
use crate::{
    adapter::{Adapter, Parsed, TranscriptReader},
    ancestry::{AncestryRules, Found, ProcessInfo, find},
    contained::AdapterRef,
    install::Installer,
    json,
    observe::{label, malformed, unknown},
};

pub use self::{
    file::FILE_BYTES_MAX,
    problem::{Problem, ProblemKind},
};

/// An agent as its file declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    kind: AgentKind,
    process: Process,
    hooks: Section,
    transcript: Option<Arc<Section>>,
}

/// The rules of ancestry, with texts of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Process {
    names: Vec<String>,
    path_contains: Vec<String>,
    /// Interpreter and tail of the script's path.
    scripts: Vec<(String, String)>,
    helpers: Vec<String>,
    shared: Vec<String>,
    print_options: Vec<String>,
}

impl Declared {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text, never empty, bounded.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        file::parse(text)
    }

    /// How many events of hooks and kinds of transcript records it gives a meaning.
    #[must_use]
    pub fn signals(&self) -> (usize, usize) {
        (self.hooks.rules.len(), self.transcript.as_ref().map_or(0, |section| section.rules.len()))
    }

    fn with_rules<T>(&self, ask: impl FnOnce(&AncestryRules<'_>) -> T) -> T {
        fn words(list: &[String]) -> Vec<&str> {
            list.iter().map(String::as_str).collect()
        }
        let process = &self.process;
        let scripts: Vec<(&str, &str)> =
            process.scripts.iter().map(|(interpreter, path)| (interpreter.as_str(), path.as_str())).collect();
        ask(&AncestryRules {
            stems: &words(&process.names),
            path_contains: &words(&process.path_contains),
            scripts: &scripts,
            helpers: &words(&process.helpers),
            shared: &words(&process.shared),
            wrapper_scripts: &[],
            print_options: &words(&process.print_options),
        })
    }
}

impl Adapter for Declared {
    fn kind(&self) -> AgentKind {
        self.kind
    }

    /// Not known, so a stop waits for the turn that may follow; that costs the grace, no more.
    fn wakes_model(&self) -> bool {
        true
    }

    fn find_agent(&self, chain: &[ProcessInfo]) -> Found {
        self.with_rules(|rules| find(rules, chain))
    }

    fn can_ask(&self, agent: &ProcessInfo) -> Option<bool> {
        self.with_rules(|rules| rules.can_ask(agent))
    }

    fn payload(&self, event: Option<&str>, _argv: &[&[u8]], payload: &[u8]) -> Parsed {
        let value = match json::parse_object(payload) {
            Ok(value) => value,
            Err(refused) => return malformed(refused),
        };
        let Some(event) = self.hooks.text(&value, Field::Event).or(event) else {
            return malformed("no event name");
        };
        let context = self.hooks.context(&value);
        if context.session.is_none() {
            return malformed("no session id");
        }
        let mut out = Parsed::default();
        match self.hooks.rule(Some(event), &value) {
            Some(rule) => self.hooks.apply(rule, event, &value, &context, &mut out),
            None => {
                unknown(&mut out, event);
                context.push(&mut out, SignalBody::Unknown { event: label(event) });
            }
        }
        out
    }

    fn transcript(&self, session: &str, _saved: Option<&Value>) -> Option<Box<dyn TranscriptReader>> {
        let section = self.transcript.clone()?;
        Some(Box::new(transcript::Reader::new(session, section)))
    }

    /// Its hooks name the file.
    fn reply(&self, _event: &str, _answer: &HookAnswer) -> Option<String> {
        None
    }

    /// The user writes its hooks down.
    fn installer(&self) -> Option<&'static Installer> {
        None
    }
}

/// The adapters in force: the built-in ones, and those that files declare. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Adapters {
    declared: Arc<BTreeMap<AgentKind, Arc<Declared>>>,
}

impl Adapters {
    /// The later of two of one name counts.
    #[must_use]
    pub fn with(declared: impl IntoIterator<Item = Arc<Declared>>) -> Self {
        Self { declared: Arc::new(declared.into_iter().map(|adapter| (adapter.kind, adapter)).collect()) }
    }

    /// `None` for kinds that have no hooks of their own, and for declared ones whose file is not there.
    #[must_use]
    pub fn get(&self, kind: AgentKind) -> Option<AdapterRef> {
        match crate::adapter(kind) {
            Some(adapter) => Some(AdapterRef::built_in(adapter)),
            None => self.declared.get(&kind).cloned().map(AdapterRef::declared),
        }
    }

    /// All kinds there are, those without an adapter included.
    pub fn kinds(&self) -> impl Iterator<Item = AgentKind> {
        AgentKind::ALL.into_iter().chain(self.declared.keys().copied())
    }
}

#[cfg(test)]
mod tests;
