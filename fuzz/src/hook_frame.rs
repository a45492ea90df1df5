//! The bytes on the hook socket.

use watchkeeper_frame::{
    Request, RequestDecoder, RequestRef,
    wire::{self, PREFIX_MAX_BYTES},
};

/// Reads of this size, so that a frame arrives in many pieces.
const PIECE: usize = 7;

/// Any bytes: a request or an error, in whatever pieces they arrive, and no memory beyond what arrived.
pub fn any(input: &[u8]) {
    let whole = RequestRef::parse(input);
    if let Ok(view) = &whole {
        assert!(view.argv().count() <= usize::from(u8::MAX));
        assert_eq!(Request::from_frame(input.to_vec()).map(|r| r.as_frame().to_vec()), Ok(input.to_vec()));
        check_written_again(view);
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

/// What was read says the same when it is written and read again.
fn check_written_again(view: &RequestRef<'_>) {
    let mut buffer = vec![0; PREFIX_MAX_BYTES + view.payload.len()];
    let Some(mut draft) = wire::draft(&mut buffer, view.head, view.agent, view.event, view.argv()) else {
        unreachable!("there is room")
    };
    let Some(room) = draft.payload_room().get_mut(..view.payload.len()) else {
        unreachable!("there is room")
    };
    room.copy_from_slice(view.payload);
    let Ok(again) = RequestRef::parse(draft.seal(view.payload.len())) else { unreachable!("it is a frame") };
    assert_eq!((again.head, again.agent, again.event), (view.head, view.agent, view.event));
    assert_eq!(again.payload, view.payload);
    assert!(again.argv().eq(view.argv()));
}
