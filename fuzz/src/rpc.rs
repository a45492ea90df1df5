//! Lines on the API socket.

use watchkeeper_api::rpc::Message;

/// Any line: a message that survives being written and read again, or an error that can be sent.
pub fn any(input: &[u8]) {
    match Message::parse(input) {
        Ok(message) => {
            let Ok(line) = message.to_line() else { return };
            let again = line.strip_suffix(b"\n").map(Message::parse);
            assert_eq!(again, Some(Ok(message)));
        }
        Err((id, failure)) => {
            assert!(failure.code.name().is_some(), "an error of ours has a name");
            let failure = failure.with_hint("h").with_candidates(vec!["c".to_owned()]);
            let answer = Message::Response { id, outcome: Err(failure) };
            let Ok(line) = answer.to_line() else { panic!("an answer that cannot be sent") };
            assert_eq!(line.strip_suffix(b"\n").map(Message::parse), Some(Ok(answer)));
        }
    }
}
