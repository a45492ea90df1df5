//! Turns hostile bytes into a bounded [`Value`]: size and depth are refused, wide containers and long strings are cut.
//!
//! Owns the limits. Knows nothing of any agent's fields.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt,
};

mod string_end;

use string_end::end_of_string;

/// Larger texts are refused unread: no agent sends them, and a hook must not cost a machine its memory.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Deeper nesting is refused, before anything recursive sees it.
pub const DEPTH_MAX: usize = 64;
/// Longer strings are cut at a character boundary.
pub const STRING_MAX: usize = 64 * 1024;
/// Further array elements are passed over.
pub const ARRAY_MAX: usize = 4096;
/// Further keys of an object are passed over.
pub const KEYS_MAX: usize = 512;
/// Values kept in all; afterwards only plain values of the two outermost levels are still kept, so that a huge tool
/// result never hides the fields behind it.
pub const VALUES_MAX: usize = 50_000;

/// Strings up to this length are kept also where nobody reads them: to leave one out costs a little itself.
const BULK_MAX: usize = 1024;

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("empty")]
    Empty,
    #[error("{bytes} bytes, more than {BYTES_MAX}")]
    TooLarge { bytes: usize },
    #[error("nested deeper than {DEPTH_MAX}")]
    TooDeep,
    #[error("not JSON at line {line}, column {column}")]
    NotJson { line: usize, column: usize },
    #[error("not a JSON object")]
    NotAnObject,
}

/// Parses one JSON object within the limits above. One whose end is missing (the hook cuts what is too long) gives the
/// fields that are complete, if there are any: a caller must take a field's absence as unknown.
///
/// # Errors
/// Why the text is no such object.
pub fn parse_object(bytes: &[u8]) -> Result<Value, Refused> {
    parse_object_without(&[], bytes)
}

/// As [`parse_object`], but strings of more than [`BULK_MAX`] bytes come out empty where `bulk` says that nobody reads them.
/// Outputs and files are most of a transcript, and to copy them is most of what reading it costs.
///
/// # Errors
/// As of [`parse_object`].
pub(crate) fn parse_object_without(bulk: &[Bulk], bytes: &[u8]) -> Result<Value, Refused> {
    if bytes.len() > BYTES_MAX {
        return Err(Refused::TooLarge { bytes: bytes.len() });
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Refused::Empty);
    }
    let bytes = &*condensed(bytes, bulk).ok_or(Refused::TooDeep)?;
    let (left, fields) = (Cell::new(VALUES_MAX), RefCell::new(Map::new()));
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = Pruned { left: &left, fields: &fields, depth: 0 }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    match read {
        // The outermost object leaves its fields outside, so that they survive an early end.
        Ok(Value::Null) if starts_object(bytes) => Ok(Value::Object(fields.into_inner())),
        Ok(_) => Err(Refused::NotAnObject),
        Err(error) if error.is_eof() && !fields.borrow().is_empty() => Ok(Value::Object(fields.into_inner())),
        Err(error) => Err(Refused::NotJson { line: error.line(), column: error.column() }),
    }
}

fn starts_object(bytes: &[u8]) -> bool {
    bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
}

/// A field whose strings nobody reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bulk {
    pub(crate) key: &'static str,
    /// So many brackets are open around the field, or more: the outermost object's own fields are at 1.
    pub(crate) depth: usize,
}

/// The text without its bulk; `None` when brackets outside strings nest deeper than [`DEPTH_MAX`]. One pass, which looks at
/// strings by the word and allocates only if something is left out; what that was is not checked any further.
fn condensed<'a>(bytes: &'a [u8], bulk: &[Bulk]) -> Option<Cow<'a, [u8]>> {
    let (mut depth, mut at) = (0_usize, 0);
    // The last string, whether a colon followed it, and up to where `kept` has everything.
    let (mut string, mut is_key, mut copied) = (0..0, false, 0);
    let mut kept = Vec::new();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(bytes, at + 1);
                let is_bulk = is_key
                    && end - at > BULK_MAX
                    && bulk.iter().any(|bulk| {
                        depth >= bulk.depth && bytes.get(string.clone()) == Some(bulk.key.as_bytes())
                    });
                if is_bulk {
                    kept.extend_from_slice(bytes.get(copied..=at).unwrap_or_default());
                    copied = end;
                }
                (string, is_key) = (at + 1..end, false);
                at = end;
            }
            b':' => is_key = true,
            b',' => is_key = false,
            b'{' | b'[' => {
                (depth, is_key) = (depth + 1, false);
                if depth > DEPTH_MAX {
                    return None;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return Some(Cow::Borrowed(bytes));
    }
    kept.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    Some(Cow::Owned(kept))
}

/// A value under the limits; what exceeds them is read and dropped, never stored.
struct Pruned<'a> {
    left: &'a Cell<usize>,
    /// The fields of the outermost object so far.
    fields: &'a RefCell<Map<String, Value>>,
    depth: usize,
}

impl Pruned<'_> {
    fn child(&self) -> Pruned<'_> {
        Pruned { left: self.left, fields: self.fields, depth: self.depth + 1 }
    }

    /// Takes one value from the budget; `false` when a container must be dropped.
    fn take(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

impl<'de> DeserializeSeed<'de> for Pruned<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pruned<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        if !self.take() && self.depth > 1 {
            return Ok(Value::Null);
        }
        Ok(Value::String(clipped(v, STRING_MAX).to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        let room = self.take();
        while room && kept.len() < ARRAY_MAX && self.left.get() > 0 {
            match seq.next_element_seed(self.child())? {
                Some(value) => {
                    self.take();
                    kept.push(value);
                }
                None => return Ok(Value::Array(kept)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        if self.depth == 0 {
            // Reads on past the budget: its plain fields decide what the text is.
            while let Some(key) = map.next_key::<String>()? {
                if self.fields.borrow().len() >= KEYS_MAX {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                let value = map.next_value_seed(self.child())?;
                self.fields.borrow_mut().insert(key, value);
            }
            return Ok(Value::Null);
        }
        let mut kept = Map::new();
        let room = self.take();
        while let Some(key) = map.next_key::<String>()? {
            if !room || kept.len() >= KEYS_MAX || self.left.get() == 0 {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value_seed(self.child())?;
            kept.insert(key, value);
        }
        Ok(Value::Object(kept))
    }
}

/// The longest start of `text` within `max` bytes that ends at a character boundary.
#[must_use]
pub fn clipped(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The string at `key`; `None` when it is missing, empty or something else.
#[must_use]
pub fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|s| !s.is_empty())
}

/// The truth of the flag at `key`; anything but `true` is false.
#[must_use]
pub fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}

/// The elements at `key`; none when it is missing or something else.
pub fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], expected: Result<Value, Refused>) {
        assert_eq!(parse_object(input), expected, "{}", String::from_utf8_lossy(clip_for_message(input)));
    }

    fn clip_for_message(input: &[u8]) -> &[u8] {
        input.get(..80).unwrap_or(input)
    }

    #[test]
    fn refuses_what_is_no_object() {
        check(b"", Err(Refused::Empty));
        check(b" \n", Err(Refused::Empty));
        check(b"[1]", Err(Refused::NotAnObject));
        check(b"{\"a\":", Err(Refused::NotJson { line: 1, column: 5 }));
        check(b"null", Err(Refused::NotAnObject));
        check(b"{\"a\":1,}", Err(Refused::NotJson { line: 1, column: 8 }));
        check(b"{} x", Err(Refused::NotJson { line: 1, column: 4 }));
        check(b"\xff\xfe\x00", Err(Refused::NotJson { line: 1, column: 1 }));
    }

    #[test]
    fn keeps_the_whole_fields_of_a_cut_text() {
        check(br#"{"a":1,"b":{"c":2},"d":"cut off he"#, Ok(serde_json::json!({"a": 1, "b": {"c": 2}})));
        check(br#"{"a":[1,2"#, Err(Refused::NotJson { line: 1, column: 9 }));
        check(b" {} ", Ok(serde_json::json!({})));
    }

    #[test]
    fn refuses_depth_and_size_before_parsing() {
        let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        let object = |inner: Vec<u8>| [b"{\"a\":".to_vec(), inner, b"}".to_vec()].concat();
        check(&object(deep(DEPTH_MAX)), Err(Refused::TooDeep));
        check(&vec![b'{'; 5_000_000], Err(Refused::TooDeep));
        assert!(parse_object(&object(deep(DEPTH_MAX - 1))).is_ok());
        // Brackets inside strings are text.
        check(br#"{"a":"[[[[\"[[[["}"#, Ok(serde_json::json!({"a": "[[[[\"[[[["})));
        let large = BYTES_MAX + 1;
        check(&vec![b' '; large], Err(Refused::TooLarge { bytes: large }));
    }

    #[test]
    fn cuts_what_is_wide_and_keeps_what_follows() {
        let wide = format!("{{\"big\":[{}[]],\"after\":\"kept\"}}", "[[1]],".repeat(VALUES_MAX));
        let value = parse_object(wide.as_bytes()).unwrap();
        assert_eq!(text(&value, "after"), Some("kept"));
        assert!(items(&value, "big").count() <= ARRAY_MAX);
        let long = format!("{{\"s\":\"{}\",\"after\":true}}", "é".repeat(STRING_MAX));
        let value = parse_object(long.as_bytes()).unwrap();
        assert_eq!(text(&value, "s").map(str::len), Some(STRING_MAX));
        assert!(flag(&value, "after"));
    }

    const OUTPUT: [Bulk; 1] = [Bulk { key: "output", depth: 2 }];

    fn check_bulk(input: &str, expected: &str) {
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(parse_object_without(&OUTPUT, input.as_bytes()).unwrap(), expected, "{input:.80}");
        // Where nobody says that it is bulk, it is none.
        assert_eq!(parse_object(input.as_bytes()).unwrap(), serde_json::from_str::<Value>(input).unwrap());
    }

    #[test]
    fn bulk_is_left_out_where_it_is_said_to_be() {
        let long = format!("\\\"[{{: {}\\\\", "é".repeat(BULK_MAX));
        check_bulk(
            &format!(r#"{{"a":{{"output":"{long}","b":["{long}"]}},"z":"output"}}"#),
            &format!(r#"{{"a":{{"output":"","b":["{long}"]}},"z":"output"}}"#),
        );
        for kept in [
            format!(r#"{{"output":"{long}"}}"#),
            format!(r#"{{"a":{{"outputs":"{long}","b":"output","c":"{long}"}}}}"#),
            format!(r#"{{"a":{{"output":["{long}","{long}"]}}}}"#),
            format!(r#"{{"a":["output","{long}"]}}"#),
            r#"{"a":{"output":"short"}}"#.to_owned(),
        ] {
            check_bulk(&kept, &kept);
        }
        let cut = format!(r#"{{"a":1,"b":{{"output":"{long}"#);
        assert_eq!(parse_object_without(&OUTPUT, cut.as_bytes()), Ok(serde_json::json!({"a": 1})));
    }
}
