//! A tool's arguments, read with bounds: what is missing, too long, of another type or not asked for is said by name.

use serde_json::{Map, Value};
use watchkeeper_core::view::ShownState;

use crate::complaint::Complaint;

/// Longest text of one argument, in bytes; the daemon cuts what it keeps of it further.
const TEXT_BYTES_MAX: usize = 4096;
/// Unknown names shown in an error.
const NAMES_SHOWN_MAX: usize = 4;
/// Characters shown of a name that a client made up.
const NAME_CHARS_MAX: usize = 64;

/// The arguments of one call.
#[derive(Debug)]
pub(super) struct Arguments {
    tool: &'static str,
    given: Map<String, Value>,
}

impl Arguments {
    /// Refuses names that the tool does not take: a misspelt option must not be passed over in silence.
    pub(super) fn of(
        tool: &'static str,
        given: Map<String, Value>,
        known: &[&str],
    ) -> Result<Self, Complaint> {
        let unknown: Vec<String> = given
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
            .take(NAMES_SHOWN_MAX)
            .map(|name| format!("'{}'", shown(name)))
            .collect();
        if unknown.is_empty() {
            return Ok(Self { tool, given });
        }
        let takes = if known.is_empty() { "no arguments".to_owned() } else { known.join(", ") };
        Err(Complaint::new(format!("cannot call {tool}"))
            .because(format!("it has no argument {}", unknown.join(", ")))
            .todo(format!("It takes {takes}.")))
    }

    /// A text that may be left out; blank counts as left out.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Complaint> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() > TEXT_BYTES_MAX => {
                Err(self.wrong(name, &format!("has more than {TEXT_BYTES_MAX} bytes")))
            }
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Err(self.wrong(name, "is not a text"))
            }
        }
    }

    pub(super) fn needed_text(&self, name: &str) -> Result<String, Complaint> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// False when left out.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Complaint> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Err(self.wrong(name, "is neither true nor false"))
            }
        }
    }

    /// A whole number from 1 on that must be there.
    pub(super) fn needed_count(&self, name: &str) -> Result<u64, Complaint> {
        let value = self.given.get(name).ok_or_else(|| self.wrong(name, "is missing"))?;
        value
            .as_u64()
            .filter(|number| *number > 0)
            .ok_or_else(|| self.wrong(name, "is not a whole number from 1 on"))
    }

    pub(super) fn state(&self, name: &str) -> Result<Option<ShownState>, Complaint> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = STATES.into_iter().find(|state| state.name() == text);
        found.map(Some).ok_or_else(|| self.wrong(name, &format!("is none of {}", state_names().join(", "))))
    }

    /// An object that must be there.
    pub(super) fn needed_object(&self, name: &str) -> Result<&Map<String, Value>, Complaint> {
        let value = self.given.get(name).ok_or_else(|| self.wrong(name, "is missing"))?;
        value.as_object().ok_or_else(|| self.wrong(name, "is not an object"))
    }

    pub(super) fn wrong(&self, name: &str, why: &str) -> Complaint {
        Complaint::new(format!("cannot call {}", self.tool))
            .because(format!("the argument '{}' {why}", shown(name)))
            .todo("Look at the tool's input schema.")
    }
}

const STATES: [ShownState; 5] =
    [ShownState::Working, ShownState::Background, ShownState::Waiting, ShownState::Idle, ShownState::Ended];

pub(super) fn state_names() -> Vec<&'static str> {
    STATES.iter().map(|state| state.name()).collect()
}

/// A name that a client made up, fit to be shown.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(given: Value) -> Result<Arguments, Complaint> {
        let Value::Object(given) = given else { panic!("{given}") };
        Arguments::of("tool", given, &["a", "b"])
    }

    /// `expected`: the text, or a part of the complaint.
    fn check(given: Value, expected: Result<Option<&str>, &str>) {
        let got = arguments(given.clone()).and_then(|arguments| arguments.text("a"));
        match (got, expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got.as_deref(), expected, "{given}"),
            (Err(complaint), Err(part)) => assert!(complaint.json().contains(part), "{}", complaint.json()),
            (got, expected) => panic!("{given}: {got:?}, not {expected:?}"),
        }
    }

    #[test]
    fn texts_are_bounded_and_typed() {
        check(json!({}), Ok(None));
        check(json!({"a": null}), Ok(None));
        check(json!({"a": " \n"}), Ok(None));
        check(json!({"a": " x "}), Ok(Some("x")));
        check(json!({"a": 1}), Err("is not a text"));
        check(json!({"a": ["x"]}), Err("is not a text"));
        check(json!({"a": "x".repeat(TEXT_BYTES_MAX + 1)}), Err("more than 4096 bytes"));
        check(json!({"c": "x"}), Err("no argument 'c'"));
        check(json!({"\u{1b}[31m": "x"}), Err("u{1b}"));
        check(json!({"c".repeat(10_000): "x"}), Err("'cccc"));
    }

    #[test]
    fn flags_numbers_and_objects_are_typed() {
        let given = |value: Value| arguments(json!({ "a": value })).unwrap();
        assert_eq!(given(json!(true)).flag("a"), Ok(true));
        assert_eq!(given(json!(null)).flag("b"), Ok(false));
        assert!(given(json!("true")).flag("a").is_err());
        assert_eq!(given(json!(5)).needed_count("a"), Ok(5));
        for wrong in [json!(0), json!(-1), json!(1.5), json!("5"), json!(1e300)] {
            assert!(given(wrong.clone()).needed_count("a").is_err(), "{wrong}");
        }
        assert!(given(json!([])).needed_object("a").is_err());
        assert_eq!(given(json!("idle")).state("a"), Ok(Some(ShownState::Idle)));
        assert!(given(json!("asleep")).state("a").is_err());
    }
}
