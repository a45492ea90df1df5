//! Things that began and have not ended, as a transcript's reader remembers them: tool calls by their ids, each with a word
//! that belongs to it (mostly the tool's name). Bounded, and saved with the reader.

use serde_json::{Value, json};
use std::collections::VecDeque;

use crate::{
    json::{items, text},
    observe::{id, label},
};

/// Remembered at once; the oldest are forgotten, and their end then has no name or says nothing.
const REMEMBERED_MAX: usize = 128;

/// Oldest first.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(VecDeque<(String, String)>);

impl OpenCalls {
    /// As `save` left them under `key` of a reader's memory.
    pub(crate) fn restored(saved: Option<&Value>, key: &str) -> Self {
        let call = |call: &Value| Some((id(call, "id")?.to_owned(), label(text(call, "of")?)));
        let calls = items(saved.unwrap_or(&Value::Null), key).filter_map(call).take(REMEMBERED_MAX);
        Self(calls.collect())
    }

    pub(crate) fn save(&self) -> Value {
        self.0.iter().map(|(id, of)| json!({ "id": id, "of": of })).collect()
    }

    pub(crate) fn begin(&mut self, id: &str, of: &str) {
        if self.0.len() >= REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((id.to_owned(), of.to_owned()));
    }

    /// What belonged to it; `None` when it is not known.
    pub(crate) fn end(&mut self, id: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == id)?;
        self.0.remove(at).map(|(_, of)| of)
    }

    pub(crate) fn holds(&self, id: &str) -> bool {
        self.0.iter().any(|(known, _)| known == id)
    }

    /// Ends all to which this belonged.
    pub(crate) fn end_all_of(&mut self, of: &str) {
        self.0.retain(|(_, known)| known != of);
    }

    /// Hands all of them over.
    pub(crate) fn move_to(&mut self, other: &mut Self) {
        for (id, of) in std::mem::take(&mut self.0) {
            other.begin(&id, &of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(from: usize, to: usize) -> OpenCalls {
        let mut calls = OpenCalls::default();
        (from..to).for_each(|n| calls.begin(&n.to_string(), "t"));
        calls
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut calls = numbered(0, REMEMBERED_MAX + 2);
        assert_eq!((calls.holds("1"), calls.holds("2")), (false, true));
        numbered(500, 501).move_to(&mut calls);
        assert_eq!((calls.holds("2"), calls.holds("3"), calls.holds("500")), (false, true, true));
        assert_eq!(calls.0.len(), REMEMBERED_MAX);
    }

    #[test]
    fn a_restart_loses_none_and_takes_no_more() {
        let mut calls = OpenCalls::default();
        calls.begin("a", "Bash");
        calls.begin("b", "Bash");
        calls.begin("c", "Edit");
        let saved = json!({ "calls": calls.save() });
        let mut restored = OpenCalls::restored(Some(&saved), "calls");
        assert_eq!((restored.end("a").as_deref(), restored.end("a")), (Some("Bash"), None));
        restored.end_all_of("Bash");
        assert_eq!((restored.holds("b"), restored.holds("c")), (false, true));
        let many: Value = (0..1000).map(|n| json!({ "id": n.to_string(), "of": "t" })).collect();
        let hostile = json!({ "calls": many, "other": [{ "id": "" , "of": "x" }, { "id": "a" }, 7] });
        assert_eq!(OpenCalls::restored(Some(&hostile), "calls").0.len(), REMEMBERED_MAX);
        assert_eq!(OpenCalls::restored(Some(&hostile), "other").0.len(), 0);
        assert_eq!(OpenCalls::restored(None, "calls").0.len(), 0);
    }
}
