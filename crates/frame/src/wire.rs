//! The request frame: one hook call as bytes.
//!
//! ```text
//!  0  magic "WKHK"             4  version u16          6  header length u16
//!  8  flags u32               12  hook pid u32        16  delivery id u128
//! 32  start, boot clock ns u64                        40  boot id u128 (0 = unknown)
//! 56  wall clock ms i64       64  wait ms u32         68  agent length u8
//! 69  event length u8         70  argv items u8       71  reserved, 0
//! 72  argv length u32         76  payload length u32  80  original payload length u64
//! then agent, event, argv (each item a u32 length and its bytes), payload
//! ```
//!
//! All numbers are little endian. A reader skips header bytes beyond those it knows (a later writer of the same
//! version may add some) and refuses another version.

use core::fmt;

/// First bytes of every request.
pub const MAGIC: [u8; 4] = *b"WKHK";
/// Raised only when an older reader would misread a newer frame; additions go behind the known header instead.
pub const VERSION: u16 = 1;
/// Length of the header as this version writes it.
pub const HEADER_BYTES: usize = 88;
/// Longest header accepted from a later writer; longer is refused.
pub const HEADER_MAX_BYTES: usize = 512;
/// Longest agent name; the hook cuts and sets [`Flags::ARGS_CUT`], a decoder refuses.
pub const AGENT_MAX_BYTES: usize = 64;
/// Longest event name; the hook cuts and sets [`Flags::ARGS_CUT`], a decoder refuses.
pub const EVENT_MAX_BYTES: usize = 128;
/// Most further arguments; the hook leaves the rest out and sets [`Flags::ARGS_CUT`], a decoder refuses.
pub const ARGV_MAX_ITEMS: usize = 16;
/// Most bytes of further arguments, their lengths included; the hook cuts the item that crosses it, leaves the
/// rest out and sets [`Flags::ARGS_CUT`], a decoder refuses.
pub const ARGV_MAX_BYTES: usize = 64 * 1024;
/// Longest payload; the hook cuts it, sets [`Flags::TRUNCATED`] and states the original length; a decoder refuses.
pub const PAYLOAD_MAX_BYTES: usize = 8 * 1024 * 1024;
/// Room that the part before the payload can need.
pub const PREFIX_MAX_BYTES: usize = HEADER_BYTES + AGENT_MAX_BYTES + EVENT_MAX_BYTES + ARGV_MAX_BYTES;
/// Longest frame a decoder accepts.
pub const FRAME_MAX_BYTES: usize =
    HEADER_MAX_BYTES + AGENT_MAX_BYTES + EVENT_MAX_BYTES + ARGV_MAX_BYTES + PAYLOAD_MAX_BYTES;

/// What the hook noticed about its own message. Unknown bits are kept and mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(pub u32);

impl Flags {
    /// The payload was longer than [`PAYLOAD_MAX_BYTES`] and was cut.
    pub const TRUNCATED: Self = Self(1);
    /// Standard input had not ended when the hook had to go on.
    pub const INCOMPLETE: Self = Self(1 << 1);
    /// Agent, event or further arguments were cut or left out.
    pub const ARGS_CUT: Self = Self(1 << 2);
    /// Reading standard input failed (closed, not readable); the payload is what came before.
    pub const INPUT_FAILED: Self = Self(1 << 3);
    /// The frame went through the spool (it may also have arrived by socket: compare delivery ids).
    pub const SPOOLED: Self = Self(1 << 4);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The fixed part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    pub flags: Flags,
    /// Random, drawn once per hook call; the same by socket and by spool.
    pub delivery: u128,
    /// `CLOCK_BOOTTIME` when the hook began, nanoseconds.
    pub started_boot_ns: u64,
    /// The boot in which `started_boot_ns` counts: the kernel's boot UUID read as one hexadecimal number. Zero when
    /// the hook did not look; by socket it is then the receiver's own boot.
    pub boot_id: u128,
    /// Milliseconds since 1970 by the machine's wall clock when the hook began.
    pub wall_ms: i64,
    /// The hook's own process id, in its own pid namespace. The socket's peer credentials outrank it.
    pub hook_pid: u32,
    /// How long after its start the hook waits for an answer unless told to hold, milliseconds.
    pub wait_ms: u32,
    /// Payload bytes that the agent wrote, as far as the hook read them; more than the payload when truncated.
    pub original_payload_bytes: u64,
}

/// Which part of a frame is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Header,
    Agent,
    Event,
    ArgvItems,
    Argv,
    Payload,
}

/// Why bytes are not a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// Does not begin with [`MAGIC`].
    Magic,
    /// Written in a version that this reader does not know.
    Version { found: u16 },
    /// A length above its limit (or, for the header, below its least).
    Length { part: Part, found: u64 },
    /// Ends before its announced end.
    Short { have: usize, need: usize },
    /// Has more bytes than announced.
    Long { have: usize, need: usize },
    /// The lengths inside the argument block do not fill it exactly.
    Argv,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("not a hook frame"),
            Self::Version { found } => write!(f, "hook frame of unknown version {found}"),
            Self::Length { part, found } => write!(f, "hook frame with a {part:?} length of {found}"),
            Self::Short { have, need } => write!(f, "hook frame ends after {have} of {need} bytes"),
            Self::Long { have, need } => write!(f, "hook frame has {have} bytes where {need} were announced"),
            Self::Argv => f.write_str("hook frame with inconsistent arguments"),
        }
    }
}

impl core::error::Error for FrameError {}

/// The lengths that a header announces, checked against the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    header: usize,
    agent: usize,
    event: usize,
    argv_items: usize,
    argv: usize,
    payload: usize,
}

impl Announced {
    /// Reads the lengths from the first [`HEADER_BYTES`] of a frame.
    ///
    /// # Errors
    /// Anything but a header of this version within the limits; `Short` when there are too few bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, FrameError> {
        let Some((head, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(FrameError::Short { have: bytes.len(), need: HEADER_BYTES });
        };
        if u8s::<4>(head, 0) != MAGIC {
            return Err(FrameError::Magic);
        }
        let found = u16::from_le_bytes(u8s(head, 4));
        if found != VERSION {
            return Err(FrameError::Version { found });
        }
        let header = usize::from(u16::from_le_bytes(u8s(head, 6)));
        if header < HEADER_BYTES {
            return Err(FrameError::Length { part: Part::Header, found: header as u64 });
        }
        let [agent, event, argv_items] = u8s::<3>(head, 68);
        Ok(Self {
            header: within(Part::Header, header as u64, HEADER_MAX_BYTES)?,
            agent: within(Part::Agent, agent.into(), AGENT_MAX_BYTES)?,
            event: within(Part::Event, event.into(), EVENT_MAX_BYTES)?,
            argv_items: within(Part::ArgvItems, argv_items.into(), ARGV_MAX_ITEMS)?,
            argv: within(Part::Argv, u32::from_le_bytes(u8s(head, 72)).into(), ARGV_MAX_BYTES)?,
            payload: within(Part::Payload, u32::from_le_bytes(u8s(head, 76)).into(), PAYLOAD_MAX_BYTES)?,
        })
    }

    /// Length of the whole frame; at most [`FRAME_MAX_BYTES`].
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        self.payload_at() + self.payload
    }

    /// Where the payload begins.
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.header + self.agent + self.event + self.argv
    }
}

/// A whole request, borrowed from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRef<'a> {
    pub head: Head,
    /// As given on the command line; not necessarily a known agent, not necessarily UTF-8, may be empty.
    pub agent: &'a [u8],
    /// As given on the command line; empty when none was.
    pub event: &'a [u8],
    argv: &'a [u8],
    pub payload: &'a [u8],
}

impl<'a> RequestRef<'a> {
    /// Decodes exactly one frame.
    ///
    /// # Errors
    /// Anything but one whole frame and nothing behind it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let announced = Announced::read(bytes)?;
        let need = announced.frame_bytes();
        let have = bytes.len();
        if have > need {
            return Err(FrameError::Long { have, need });
        }
        let short = FrameError::Short { have, need };
        let (header, rest) = bytes.split_at_checked(announced.header).ok_or(short)?;
        let (agent, rest) = rest.split_at_checked(announced.agent).ok_or(short)?;
        let (event, rest) = rest.split_at_checked(announced.event).ok_or(short)?;
        let (argv, payload) = rest.split_at_checked(announced.argv).ok_or(short)?;
        if payload.len() != announced.payload {
            return Err(short);
        }
        let mut items = Argv { rest: argv };
        if items.by_ref().take(announced.argv_items).count() != announced.argv_items || !items.rest.is_empty()
        {
            return Err(FrameError::Argv);
        }
        let Some((fixed, _)) = header.split_first_chunk::<HEADER_BYTES>() else { return Err(short) };
        Ok(Self { head: Head::read(fixed), agent, event, argv, payload })
    }

    /// Further arguments after the event, in order.
    #[must_use]
    pub const fn argv(&self) -> Argv<'a> {
        Argv { rest: self.argv }
    }
}

/// Walks an argument block; ends early at a length that does not fit.
#[derive(Debug, Clone, Copy)]
pub struct Argv<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Argv<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.rest.split_first_chunk::<4>()?;
        let (item, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        self.rest = rest;
        Some(item)
    }
}

impl Head {
    fn read(h: &[u8; HEADER_BYTES]) -> Self {
        Self {
            flags: Flags(u32::from_le_bytes(u8s(h, 8))),
            hook_pid: u32::from_le_bytes(u8s(h, 12)),
            delivery: u128::from_le_bytes(u8s(h, 16)),
            started_boot_ns: u64::from_le_bytes(u8s(h, 32)),
            boot_id: u128::from_le_bytes(u8s(h, 40)),
            wall_ms: i64::from_le_bytes(u8s(h, 56)),
            wait_ms: u32::from_le_bytes(u8s(h, 64)),
            original_payload_bytes: u64::from_le_bytes(u8s(h, 80)),
        }
    }
}

/// A frame under construction: everything before the payload is written, the payload goes directly behind it.
#[derive(Debug)]
pub struct Draft<'a> {
    buffer: &'a mut [u8],
    payload_at: usize,
    head: Head,
}

/// Begins a frame in `buffer`, cutting what is over-long (see the limits). The payload room is what remains of
/// `buffer`, at most [`PAYLOAD_MAX_BYTES`]. `None` when `buffer` is shorter than [`PREFIX_MAX_BYTES`].
#[must_use]
pub fn draft<'a, 'b>(
    buffer: &'a mut [u8],
    head: Head,
    agent: &[u8],
    event: &[u8],
    argv: impl IntoIterator<Item = &'b [u8]>,
) -> Option<Draft<'a>> {
    if buffer.len() < PREFIX_MAX_BYTES {
        return None;
    }
    let mut head = head;
    let mut cut = false;
    let mut shorten = |bytes: &[u8], max: usize| {
        cut |= bytes.len() > max;
        bytes.len().min(max)
    };
    let agent_len = shorten(agent, AGENT_MAX_BYTES);
    let event_len = shorten(event, EVENT_MAX_BYTES);
    let mut at = HEADER_BYTES;
    put(buffer, &mut at, agent.get(..agent_len)?);
    put(buffer, &mut at, event.get(..event_len)?);
    let argv_at = at;
    let mut items: u8 = 0;
    for item in argv {
        let room = ARGV_MAX_BYTES - (at - argv_at);
        if usize::from(items) == ARGV_MAX_ITEMS || room <= 4 {
            cut = true;
            break;
        }
        let len = item.len().min(room - 4);
        cut |= len < item.len();
        put(buffer, &mut at, &le32(len));
        put(buffer, &mut at, item.get(..len)?);
        items += 1;
    }
    if cut {
        head.flags = head.flags.with(Flags::ARGS_CUT);
    }
    let [agent_len, ..] = agent_len.to_le_bytes();
    let [event_len, ..] = event_len.to_le_bytes();
    let fixed = buffer.first_chunk_mut::<HEADER_BYTES>()?;
    fixed.fill(0);
    set(fixed, 0, &MAGIC);
    set(fixed, 4, &VERSION.to_le_bytes());
    let [header_low, header_high, ..] = HEADER_BYTES.to_le_bytes();
    set(fixed, 6, &[header_low, header_high]);
    set(fixed, 68, &[agent_len, event_len, items]);
    set(fixed, 72, &le32(at - argv_at));
    let mut draft = Draft { buffer, payload_at: at, head };
    draft.seal_head(0);
    Some(draft)
}

impl Draft<'_> {
    /// Where the payload is to be written; bytes that do not fit are to be read and counted, not kept.
    pub fn payload_room(&mut self) -> &mut [u8] {
        let end = self.buffer.len().min(self.payload_at + PAYLOAD_MAX_BYTES);
        self.buffer.get_mut(self.payload_at..end).unwrap_or_default()
    }

    /// The fixed part, to be changed before or after sealing.
    pub fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    /// Writes head and payload length; returns the finished frame. `kept` is cut to the room there is. May be called
    /// again after a change of the head.
    pub fn seal(&mut self, kept: usize) -> &[u8] {
        let kept = kept.min(self.payload_room().len());
        self.seal_head(kept);
        self.buffer.get(..self.payload_at + kept).unwrap_or_default()
    }

    fn seal_head(&mut self, kept: usize) {
        let head = self.head;
        let Some(fixed) = self.buffer.first_chunk_mut::<HEADER_BYTES>() else { return };
        set(fixed, 8, &head.flags.0.to_le_bytes());
        set(fixed, 12, &head.hook_pid.to_le_bytes());
        set(fixed, 16, &head.delivery.to_le_bytes());
        set(fixed, 32, &head.started_boot_ns.to_le_bytes());
        set(fixed, 40, &head.boot_id.to_le_bytes());
        set(fixed, 56, &head.wall_ms.to_le_bytes());
        set(fixed, 64, &head.wait_ms.to_le_bytes());
        set(fixed, 76, &le32(kept));
        set(fixed, 80, &head.original_payload_bytes.to_le_bytes());
    }
}

fn within(part: Part, found: u64, max: usize) -> Result<usize, FrameError> {
    match usize::try_from(found) {
        Ok(len) if len <= max => Ok(len),
        _ => Err(FrameError::Length { part, found }),
    }
}

/// `N` bytes at a constant offset; zeros where the offset is wrong, which the layout test would show.
fn u8s<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|b| b.first_chunk::<N>()).copied().unwrap_or([0; N])
}

fn set(bytes: &mut [u8; HEADER_BYTES], at: usize, value: &[u8]) {
    if let Some(target) = bytes.get_mut(at..at + value.len()) {
        target.copy_from_slice(value);
    }
}

fn put(buffer: &mut [u8], at: &mut usize, bytes: &[u8]) {
    if let Some(target) = buffer.get_mut(*at..*at + bytes.len()) {
        target.copy_from_slice(bytes);
        *at += bytes.len();
    }
}

/// Lengths here are below [`FRAME_MAX_BYTES`], so the upper half is zero.
fn le32(len: usize) -> [u8; 4] {
    let [a, b, c, d, ..] = len.to_le_bytes();
    [a, b, c, d]
}

#[cfg(feature = "std")]
#[cfg(test)]
mod tests;
