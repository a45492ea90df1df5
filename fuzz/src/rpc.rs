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
            let answer = Message::Response { id, outcome: Err(failure) };
            assert!(answer.to_line().is_ok(), "an answer that cannot be sent");
        }
    }
}
