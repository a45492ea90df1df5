use super::*;

/// Appends to the root object, then removes what was appended: the text must be as before.
fn check_append(before: &str, item: &str, expected: &str) {
    let document = Document::parse(before).unwrap();
    let root = Container::of_object(document.root.as_ref().and_then(Value::as_object).unwrap());
    let after = document.append(&root, item);
    assert_eq!(after, expected);

    let document = Document::parse(&after).unwrap();
    let root = Container::of_object(document.root.as_ref().and_then(Value::as_object).unwrap());
    let restored = document.remove(&root, root.items.len() - 1);
    if root.items.len() > 1 {
        assert_eq!(restored, before, "not the reverse");
    } else {
        Document::parse(&restored).unwrap();
    }
}

fn check_remove(before: &str, index: usize, expected: &str) {
    let document = Document::parse(before).unwrap();
    let root = Container::of_object(document.root.as_ref().and_then(Value::as_object).unwrap());
    let after = document.remove(&root, index);
    assert_eq!(after, expected);
    Document::parse(&after).unwrap();
}

#[test]
fn append_keeps_the_files_own_layout() {
    check_append("{}", r#""h": 1"#, "{\n  \"h\": 1\n}");
    check_append("{}\r\n", r#""h": 1"#, "{\r\n  \"h\": 1\r\n}\r\n");
    check_append("{\n}", r#""h": 1"#, "{\n  \"h\": 1\n}");
    check_append("{ // none\n}", r#""h": 1"#, "{ // none\n  \"h\": 1\n}");
    check_append("{ /* none */ }", r#""h": 1"#, "{ /* none */\n  \"h\": 1\n }");
    check_append(r#"{"a":1}"#, r#""h": 1"#, r#"{"a":1, "h": 1}"#);
    check_append(r#"{"a":1,}"#, r#""h": 1"#, r#"{"a":1, "h": 1,}"#);
    check_append("{\n\t\"a\": 1\n}\n", r#""h": 1"#, "{\n\t\"a\": 1,\n\t\"h\": 1\n}\n");
    check_append("{\r\n    \"a\": 1,\r\n}", r#""h": 1"#, "{\r\n    \"a\": 1,\r\n    \"h\": 1,\r\n}");
    check_append(
        "{\n  \"a\": 1 // one\n  // more\n}",
        r#""h": 1"#,
        "{\n  \"a\": 1, // one\n  \"h\": 1\n  // more\n}",
    );
    check_append(
        "{\n  \"a\": 1, /* x */ // one\n}",
        r#""h": 1"#,
        "{\n  \"a\": 1, /* x */ // one\n  \"h\": 1,\n}",
    );
    check_append("{\"a\":1 // one\n}", r#""h": 1"#, "{\"a\":1, \"h\": 1 // one\n}");
}

#[test]
fn remove_takes_one_comma_and_no_comment() {
    check_remove(r#"{"a":1,"b":2}"#, 0, r#"{"b":2}"#);
    check_remove(r#"{"a":1,"b":2}"#, 1, r#"{"a":1}"#);
    check_remove("{\"a\":1, // c\n\"b\":2}", 1, "{\"a\":1 // c\n}");
    check_remove("{ // c\n\"b\":2 }", 0, "{ // c\n }");
    check_remove("{ // c\n\"b\":2, \"d\": 3 }", 0, "{ // c\n \"d\": 3 }");
    check_remove("{\"b\":2 /* x */, \"d\": 3}", 0, "{ /* x */ \"d\": 3}");
    check_remove("{\"a\":1 /* x */, /* y */ \"b\": 3}", 1, "{\"a\":1 /* x */ /* y */}");
}

#[test]
fn only_comments_and_trailing_commas_are_read_beyond_json() {
    for text in
        ["{a:1}", "{'a':1}", "{\"a\":1 \"b\":2}", "{\"a\":0x1}", "{\"a\":+1}", "{} {}", "{", "[", "{\"a\"}"]
    {
        assert!(matches!(Document::parse(text), Err(Refusal::Broken { .. })), "{text}");
    }
    let deep = "[".repeat(100_000);
    assert!(matches!(Document::parse(&deep), Err(Refusal::Broken { .. })));
    let large = " ".repeat(FILE_MAX_BYTES + 1);
    assert!(matches!(Document::parse(&large), Err(Refusal::TooLarge { .. })));
}
