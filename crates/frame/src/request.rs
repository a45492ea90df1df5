//! A request that owns its bytes, and the decoder that builds it from partial reads.

use std::ops::Range;

use crate::wire::{Announced, FrameError, HEADER_BYTES, Head, RequestRef};

/// One hook call, owned. Dereference with [`Request::view`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    bytes: Vec<u8>,
    head: Head,
    payload: Range<usize>,
}

impl Request {
    /// Takes over exactly one frame.
    ///
    /// # Errors
    /// As [`RequestRef::parse`].
    pub fn from_frame(bytes: Vec<u8>) -> Result<Self, FrameError> {
        let view = RequestRef::parse(&bytes)?;
        let (head, payload) = (view.head, bytes.len() - view.payload.len()..bytes.len());
        Ok(Self { bytes, head, payload })
    }

    /// The fixed part.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// What the agent wrote to the hook's standard input.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(self.payload.clone()).unwrap_or_default()
    }

    /// Agent, event, further arguments and payload, borrowed.
    ///
    /// # Errors
    /// None in practice: the bytes were checked when this was made.
    pub fn view(&self) -> Result<RequestRef<'_>, FrameError> {
        RequestRef::parse(&self.bytes)
    }

    /// The whole frame, as it would go into the spool or a recording.
    #[must_use]
    pub fn as_frame(&self) -> &[u8] {
        &self.bytes
    }
}

/// Builds requests from reads of any size.
///
/// Memory: at most twice what has arrived, and never more than the announced length, which itself is refused when it
/// is above its limit; a peer that announces much and sends nothing costs nothing.
#[derive(Debug, Default)]
pub struct RequestDecoder {
    buffer: Vec<u8>,
    announced: Option<Announced>,
}

impl RequestDecoder {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes from the front of `input`; returns how many, and a request when one became complete. Bytes behind a
    /// complete request are not taken: call again. After an error the stream is out of step and must be closed.
    ///
    /// # Errors
    /// As soon as the header shows that no acceptable frame can follow.
    pub fn feed(&mut self, input: &[u8]) -> Result<(usize, Option<Request>), FrameError> {
        let mut taken = 0;
        let announced = match self.announced {
            Some(announced) => announced,
            None => {
                taken = self.take(input, HEADER_BYTES);
                if self.buffer.len() < HEADER_BYTES {
                    return Ok((taken, None));
                }
                *self.announced.insert(Announced::read(&self.buffer)?)
            }
        };
        taken += self.take(input.get(taken..).unwrap_or_default(), announced.frame_bytes());
        if self.buffer.len() < announced.frame_bytes() {
            return Ok((taken, None));
        }
        self.announced = None;
        Request::from_frame(std::mem::take(&mut self.buffer)).map(|request| (taken, Some(request)))
    }

    /// Whether a frame has begun and not ended: a peer that leaves now has sent half a frame.
    #[must_use]
    pub fn is_mid_frame(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Bytes held in memory.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Appends from `input` until the buffer has `target` bytes; returns how many were taken.
    fn take(&mut self, input: &[u8], target: usize) -> usize {
        let len = input.len().min(target.saturating_sub(self.buffer.len()));
        let need = self.buffer.len() + len;
        if need > self.buffer.capacity() {
            let grown = need.max(self.buffer.capacity().saturating_mul(2)).min(target);
            self.buffer.reserve_exact(grown - self.buffer.len());
        }
        self.buffer.extend_from_slice(input.get(..len).unwrap_or_default());
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        generator::Generator,
        wire::{self, PAYLOAD_MAX_BYTES, Part},
    };

    fn check(seed: u64) {
        let mut random = Generator::new(seed);
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..=random.below(4) {
            let frame = random.frame();
            stream.extend_from_slice(&frame);
            expected.push(Request::from_frame(frame).unwrap());
        }
        let mut decoder = RequestDecoder::new();
        let mut seen = Vec::new();
        let mut rest = stream.as_slice();
        let mut arrived = 0;
        while !rest.is_empty() {
            let len = random.below(300).min(rest.len() - 1) + 1;
            let mut part = &rest[..len];
            rest = &rest[len..];
            while !part.is_empty() {
                let (taken, request) = decoder.feed(part).unwrap();
                arrived += taken;
                part = &part[taken..];
                seen.extend(request);
                assert!(decoder.capacity_bytes() <= 2 * arrived.max(HEADER_BYTES), "seed {seed}");
            }
        }
        assert_eq!(seen, expected, "seed {seed}");
        assert!(!decoder.is_mid_frame());
    }

    #[test]
    fn any_split_gives_the_same_requests() {
        (0..300).for_each(check);
    }

    #[test]
    fn an_announcement_alone_allocates_nothing() {
        let mut frame = Generator::new(1).frame();
        frame[76..80].copy_from_slice(&u32::try_from(PAYLOAD_MAX_BYTES).unwrap().to_le_bytes());
        let mut decoder = RequestDecoder::new();
        decoder.feed(&frame[..HEADER_BYTES]).unwrap();
        assert!(decoder.capacity_bytes() <= HEADER_BYTES);
        assert!(decoder.is_mid_frame());
    }

    #[test]
    fn too_much_is_refused_at_the_header() {
        let mut frame = Generator::new(1).frame();
        frame[76..80].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(
            RequestDecoder::new().feed(&frame[..HEADER_BYTES]),
            Err(FrameError::Length { part: Part::Payload, found: u32::MAX.into() })
        );
    }

    #[test]
    fn noise_never_panics_and_never_grows() {
        for seed in 0..2_000 {
            let mut random = Generator::new(seed);
            let noise = random.noisy_frame();
            let mut decoder = RequestDecoder::new();
            let mut rest = noise.as_slice();
            while !rest.is_empty() {
                let Ok((taken, _)) = decoder.feed(rest) else { break };
                assert!(taken > 0, "seed {seed}: no progress");
                rest = &rest[taken..];
            }
            assert!(decoder.capacity_bytes() <= 2 * noise.len().max(HEADER_BYTES));
            _ = wire::RequestRef::parse(&noise);
        }
    }
}
