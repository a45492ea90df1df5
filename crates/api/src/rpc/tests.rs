use super::*;
use serde_json::json;

fn check(line: &str, expected: Result<Message, ErrorCode>) {
    let got = Message::parse(line.as_bytes()).map_err(|(_, failure)| failure.code);
    assert_eq!(got, expected, "{line}");
}

#[test]
fn tells_messages_apart() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"status","new_field":[1]}"#,
        Ok(Message::Request { id: RequestId::Number(1), method: "status".into(), params: Value::Null }),
    );
    check(
        r#"{"jsonrpc":"2.0","method":"changed","params":{"revision":4}}"#,
        Ok(Message::Notification { method: "changed".into(), params: json!({"revision": 4}) }),
    );
    check(
        r#"{"jsonrpc":"2.0","id":"a","result":null}"#,
        Ok(Message::Response { id: Some(RequestId::Text("a".into())), outcome: Ok(Value::Null) }),
    );
}

#[test]
fn refuses_what_is_no_message() {
    check("", Err(ErrorCode::Parse));
    check("{", Err(ErrorCode::Parse));
    check("\u{0}\u{1}", Err(ErrorCode::Parse));
    check("[]", Err(ErrorCode::InvalidRequest));
    check("{}", Err(ErrorCode::InvalidRequest));
    check(r#"{"jsonrpc":"1.0","id":1,"method":"status"}"#, Err(ErrorCode::InvalidRequest));
    check(r#"{"jsonrpc":"2.0","id":{},"method":"status"}"#, Err(ErrorCode::InvalidRequest));
    check(r#"{"jsonrpc":"2.0","id":1}"#, Err(ErrorCode::InvalidRequest));
    check(r#"{"jsonrpc":"2.0","id":1,"method":"x","result":1}"#, Err(ErrorCode::InvalidRequest));
    check(
        &format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#, "i".repeat(200)),
        Err(ErrorCode::InvalidRequest),
    );
    check(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), Err(ErrorCode::InvalidRequest));
    check(&" ".repeat(FRAME_BYTES_MAX), Err(ErrorCode::FrameTooLong));
}

#[test]
fn writes_what_it_reads() {
    let failure = Failure::new(ErrorCode::UnknownSession, "no such session")
        .with_hint("Run `watchkeeper status`.")
        .with_candidates(vec!["claude:1".into()]);
    for message in [
        Message::Request { id: RequestId::Number(-3), method: "why".into(), params: json!({}) },
        Message::Response { id: None, outcome: Err(failure) },
        Message::Response {
            id: Some(RequestId::Number(1)),
            outcome: Err(Failure::new(ErrorCode::Other(7), "from the future")),
        },
    ] {
        let line = message.to_line().unwrap();
        assert_eq!(line.last(), Some(&b'\n'));
        assert_eq!(Message::parse(&line[..line.len() - 1]).unwrap(), message);
    }
}

#[test]
fn never_writes_an_overlong_frame() {
    let big = Value::String("x".repeat(FRAME_BYTES_MAX));
    let message = Message::Notification { method: "event".into(), params: big };
    assert_eq!(message.to_line().unwrap_err().code, ErrorCode::FrameTooLong);
}

#[test]
fn codes_have_distinct_numbers() {
    for code in ErrorCode::known() {
        assert_eq!(ErrorCode::of_number(code.number()), *code);
        assert!(code.name().is_some());
    }
}
