//! What the daemon answers: one frame, or a hold followed by one.
//!
//! ```text
//! 0  magic "WK"   2  version u8   3  kind u8   4  body length u32 (little endian)   8  body
//! ```

use core::fmt;

/// First bytes of every reply.
pub const MAGIC: [u8; 2] = *b"WK";
/// A daemon answers in the version of the request that it read.
pub const VERSION: u8 = 1;
/// Length of the fixed part.
pub const HEADER_BYTES: usize = 8;
/// Most bytes that a hook prints for the daemon; an encoder and a decoder refuse more.
pub const PRINT_MAX_BYTES: usize = 256 * 1024;
/// Longest reply.
pub const REPLY_MAX_BYTES: usize = HEADER_BYTES + PRINT_MAX_BYTES;
/// Longest hold that a hook obeys, milliseconds; longer ones are cut to it. Six hours: a person may be away for an
/// afternoon, and no agent waits for a hook that long unless its own timeout was set so.
pub const HOLD_MAX_MS: u32 = 6 * 60 * 60 * 1000;

/// The daemon's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The event is durable. Nothing follows.
    Taken,
    /// The event is durable, and the hook is to wait up to so many milliseconds from now for another reply. A further
    /// hold replaces the bound.
    Hold { ms: u32 },
    /// The event is durable; write these bytes to standard output and leave.
    Print(&'a [u8]),
    /// The event is *not* durable: put it into the spool.
    Refused(Refusal),
}

/// Why the daemon did not take an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Too many events in flight.
    Overloaded,
    /// On its way out.
    ShuttingDown,
    /// The journal cannot be written.
    Storage,
    /// The frame could not be decoded (a daemon older than the hook).
    Malformed,
    /// The peer is not the daemon's user.
    Forbidden,
    /// A reason that this version does not know.
    Other(u8),
}

/// Why bytes are not a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyError {
    /// Does not begin as a reply of this version.
    Header,
    /// A kind that this version does not know.
    Kind { found: u8 },
    /// A body length that does not belong to this kind.
    Length { kind: u8, found: u32 },
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("not a reply to a hook"),
            Self::Kind { found } => write!(f, "reply of unknown kind {found}"),
            Self::Length { kind, found } => write!(f, "reply of kind {kind} with a body of {found} bytes"),
        }
    }
}

impl core::error::Error for ReplyError {}

const TAKEN: u8 = 1;
const HOLD: u8 = 2;
const PRINT: u8 = 3;
const REFUSED: u8 = 4;

impl<'a> Reply<'a> {
    /// Decodes the reply at the front of `bytes` and says how long it is; `None` while it is not complete.
    ///
    /// # Errors
    /// As soon as the bytes cannot become a reply.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, ReplyError> {
        let Some((&[m0, m1, version, kind, l0, l1, l2, l3], rest)) =
            bytes.split_first_chunk::<HEADER_BYTES>()
        else {
            return Ok(None);
        };
        if [m0, m1] != MAGIC || version != VERSION {
            return Err(ReplyError::Header);
        }
        let found = u32::from_le_bytes([l0, l1, l2, l3]);
        let len = found as usize;
        let fits = match kind {
            TAKEN => len == 0,
            HOLD => len == 4,
            PRINT => len <= PRINT_MAX_BYTES,
            REFUSED => len == 1,
            found => return Err(ReplyError::Kind { found }),
        };
        if !fits {
            return Err(ReplyError::Length { kind, found });
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let reply = match (kind, body) {
            (HOLD, &[a, b, c, d]) => Self::Hold { ms: u32::from_le_bytes([a, b, c, d]).min(HOLD_MAX_MS) },
            (PRINT, body) => Self::Print(body),
            (REFUSED, &[code]) => Self::Refused(Refusal::of_code(code)),
            _ => Self::Taken,
        };
        Ok(Some((reply, HEADER_BYTES + len)))
    }

    /// Writes the reply to the front of `out`; returns its length, or `None` when `out` is too short or the text to
    /// print is above [`PRINT_MAX_BYTES`].
    #[must_use]
    pub fn encode(&self, out: &mut [u8]) -> Option<usize> {
        let mut small = [0; 4];
        let (kind, body): (u8, &[u8]) = match *self {
            Reply::Taken => (TAKEN, &[]),
            Reply::Hold { ms } => {
                small = ms.to_le_bytes();
                (HOLD, &small)
            }
            Reply::Print(text) => (PRINT, text),
            Reply::Refused(reason) => {
                small[0] = reason.code();
                (REFUSED, small.get(..1)?)
            }
        };
        if body.len() > PRINT_MAX_BYTES {
            return None;
        }
        let len = u32::try_from(body.len()).ok()?.to_le_bytes();
        let (header, rest) = out.split_first_chunk_mut::<HEADER_BYTES>()?;
        *header = [MAGIC[0], MAGIC[1], VERSION, kind, len[0], len[1], len[2], len[3]];
        rest.get_mut(..body.len())?.copy_from_slice(body);
        Some(HEADER_BYTES + body.len())
    }

    /// The reply as bytes; `None` when the text to print is above [`PRINT_MAX_BYTES`].
    #[cfg(feature = "std")]
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let text = match self {
            Reply::Print(text) => text.len(),
            Reply::Taken | Reply::Hold { .. } | Reply::Refused(_) => 4,
        };
        let mut out = vec![0; HEADER_BYTES + text];
        let len = self.encode(&mut out)?;
        out.truncate(len);
        Some(out)
    }
}

impl Refusal {
    const fn code(self) -> u8 {
        match self {
            Self::Overloaded => 1,
            Self::ShuttingDown => 2,
            Self::Storage => 3,
            Self::Malformed => 4,
            Self::Forbidden => 5,
            Self::Other(code) => code,
        }
    }

    const fn of_code(code: u8) -> Self {
        match code {
            1 => Self::Overloaded,
            2 => Self::ShuttingDown,
            3 => Self::Storage,
            4 => Self::Malformed,
            5 => Self::Forbidden,
            other => Self::Other(other),
        }
    }
}

#[cfg(feature = "std")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;

    fn check(reply: &Reply<'_>) {
        let bytes = reply.to_bytes().unwrap();
        for len in 0..bytes.len() {
            assert_eq!(Reply::parse(&bytes[..len]), Ok(None), "{reply:?} cut at {len}");
        }
        let mut longer = bytes.clone();
        longer.push(b'W');
        assert_eq!(Reply::parse(&longer), Ok(Some((*reply, bytes.len()))));
    }

    #[test]
    fn replies_survive_the_round_trip() {
        check(&Reply::Taken);
        check(&Reply::Hold { ms: 0 });
        check(&Reply::Hold { ms: HOLD_MAX_MS });
        check(&Reply::Print(b""));
        check(&Reply::Print(b"{\"decision\":\"block\"}\n"));
        (0..=255).for_each(|code| check(&Reply::Refused(Refusal::of_code(code))));
    }

    #[test]
    fn limits_hold_on_both_sides() {
        let text = vec![b'x'; PRINT_MAX_BYTES + 1];
        assert!(Reply::Print(&text[1..]).to_bytes().is_some());
        assert_eq!(Reply::Print(&text).to_bytes(), None);
        assert_eq!(
            Reply::parse(b"WK\x01\x03\xff\xff\xff\xff"),
            Err(ReplyError::Length { kind: 3, found: u32::MAX })
        );
        let forever = Reply::Hold { ms: u32::MAX }.to_bytes().unwrap();
        assert_eq!(Reply::parse(&forever), Ok(Some((Reply::Hold { ms: HOLD_MAX_MS }, 12))));
    }

    #[test]
    fn what_is_no_reply_is_named() {
        assert_eq!(Reply::parse(b"HTTP/1.1"), Err(ReplyError::Header));
        assert_eq!(Reply::parse(b"WK\x02\x01\0\0\0\0"), Err(ReplyError::Header));
        assert_eq!(Reply::parse(b"WK\x01\x09\0\0\0\0"), Err(ReplyError::Kind { found: 9 }));
        assert_eq!(Reply::parse(b"WK\x01\x01\x01\0\0\0"), Err(ReplyError::Length { kind: 1, found: 1 }));
    }

    #[test]
    fn noise_never_panics() {
        for seed in 0..5_000 {
            let mut random = Generator::new(seed);
            let mut bytes = random.bytes(40);
            if let Some(start) = bytes.first_chunk_mut::<3>() {
                *start = *b"WK\x01";
            }
            _ = Reply::parse(&bytes);
        }
    }
}
