//! What a configuration says, whatever its spaces and comments: for comparing a text before and after an edit.

use jsonc_parser::{
    ast::{ObjectProp, Value},
    common::Ranged as _,
};

/// A piece of what a text says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Member(String),
    Element,
    /// As it is written.
    Leaf(String),
    /// Of a member or an element.
    End,
}

/// What a text says, one list a member of its root, in file order: equal lists say the same, duplicates and order included.
/// Empty containers are left out, since they may go with an entry of ours.
pub(super) fn said(root: &Value<'_>, text: &str) -> Vec<Vec<Part>> {
    let Some(root) = root.as_object() else {
        let mut parts = Vec::new();
        tell(root, text, &mut parts);
        return vec![parts];
    };
    let of_member = |member: &ObjectProp<'_>| {
        let mut parts = Vec::new();
        tell_member(member, text, &mut parts);
        parts
    };
    root.properties.iter().map(of_member).filter(|parts| !parts.is_empty()).collect()
}

fn tell(value: &Value<'_>, text: &str, out: &mut Vec<Part>) {
    match value {
        Value::Object(object) => object.properties.iter().for_each(|member| tell_member(member, text, out)),
        Value::Array(array) => {
            for element in &array.elements {
                tell_inner(Part::Element, element, text, out);
            }
        }
        Value::StringLit(_) | Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => {
            out.push(Part::Leaf(value.text(text).to_owned()));
        }
    }
}

fn tell_member(member: &ObjectProp<'_>, text: &str, out: &mut Vec<Part>) {
    tell_inner(Part::Member(member.name.as_str().to_owned()), &member.value, text, out);
}

fn tell_inner(begin: Part, value: &Value<'_>, text: &str, out: &mut Vec<Part>) {
    out.push(begin);
    let length = out.len();
    tell(value, text, out);
    if out.len() > length {
        out.push(Part::End);
    } else {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::jsonc::Document;

    fn check(one: &str, other: &str, same: bool) {
        let parts = |text: &str| said(Document::parse(text).unwrap().root.as_ref().unwrap(), text);
        assert_eq!(parts(one) == parts(other), same, "{one} {other}");
    }

    #[test]
    fn only_what_is_said_counts() {
        check(r#"{"a":[1,{"b":2}]}"#, "{ /* x */ \"a\" : [ 1, { \"b\" : 2 }, ], }", true);
        check(r#"{"a":{"b":[[],{}]},"c":1}"#, r#"{"c":1}"#, true);
        check(r#"{"a":[[1],[2]]}"#, r#"{"a":[[1,2]]}"#, false);
        check(r#"{"a":{"b":1},"c":2}"#, r#"{"a":{"b":1,"c":2}}"#, false);
        check(r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false);
        check(r#"{"a":1,"a":1}"#, r#"{"a":1}"#, false);
        check(r#"{"a":1.0}"#, r#"{"a":1}"#, false);
        check(r#"["a"]"#, r#""a""#, false);
    }

    /// As long as its text, not as the paths to its leaves.
    #[test]
    fn a_long_name_is_said_once() {
        let (name, leaves) = ("n".repeat(1 << 20), vec!["1"; 1 << 18].join(","));
        let text = format!("{{\"{name}\":[{leaves}]}}");
        check(&text, &text, true);
    }
}
