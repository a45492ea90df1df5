//! The bytes on the hook socket.

use watchkeeper_frame::{Request, RequestDecoder, RequestRef};

/// Reads of this size, so that a frame arrives in many pieces.
const PIECE: usize = 7;

/// Any bytes: a request or an error, in whatever pieces they arrive, and no memory beyond what arrived.
pub fn any(input: &[u8]) {
    let whole = RequestRef::parse(input);
    if let Ok(view) = &whole {
        assert!(view.argv().count() <= usize::from(u8::MAX));
        assert_eq!(Request::from_frame(input.to_vec()).map(|r| r.as_frame().to_vec()), Ok(input.to_vec()));
    }
    let mut decoder = RequestDecoder::new();
    let mut arrived = 0;
    for piece in input.chunks(PIECE) {
        let mut rest = piece;
        while !rest.is_empty() {
            arrived += rest.len();
            let Ok((taken, request)) = decoder.feed(rest) else { return assert!(whole.is_err()) };
            if request.is_none() && taken == 0 {
                break;
            }
            if request.is_some() && taken == rest.len() && arrived == input.len() {
                return;
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
        assert!(decoder.capacity_bytes() <= 2 * input.len().max(512), "more memory than bytes");
    }
}
