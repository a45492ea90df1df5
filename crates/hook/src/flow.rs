//! One call from start to end: read, hand over, wait for the word, else leave it in the spool.
//!
//! Owns the deadlines. Must not know how anything is done: that is `os`, the same functions for each system.

use watchkeeper_frame::{
    ancestry::BLOCK_MAX_BYTES,
    event::EventClass,
    reply::{REPLY_MAX_BYTES, Refusal, Reply},
    wire::{self, Draft, Flags, Head, PAYLOAD_MAX_BYTES, PREFIX_MAX_BYTES},
};

use crate::{
    args::{self, Call},
    os,
};

/// From its start to its end, unless told to hold. At the limit the event goes to the spool.
const WAIT_MS: u32 = 250;
/// Of that, how long standard input may take. At the limit the payload is sent as far as it came, marked
/// `INCOMPLETE`.
const INPUT_MS: u32 = 140;
/// Of that, when waiting for the daemon ends: the rest is for the spool.
const DELIVERY_MS: u32 = 210;
/// Of that, when no further ancestor is looked at for the spool. At the limit the chain is as long as it got, but for the
/// nearest.
const ANCESTRY_MS: u32 = 230;
/// So many ancestors are looked at however late it is: it takes microseconds, and the agent is mostly among them.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "without /proc nobody is looked at"))]
pub(crate) const ANCESTORS_NEAR: usize = 3;
/// Of a receipt: 32 digits, a blank, the word and blanks, at most 20 digits, a newline.
const RECEIPT_BYTES: usize = 64;
/// How long the agent may take to make room for what the daemon has to say. At the limit the rest is not said.
const PRINT_MS: u32 = 1_000;

/// How the input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputEnd {
    Closed,
    Late,
    Failed,
}

/// What was read: as much as fitted, and how much there was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input {
    pub(crate) kept: usize,
    pub(crate) seen: u64,
    pub(crate) end: InputEnd,
}

/// What came of one read from the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    Bytes(usize),
    Closed,
    Late,
    /// Nobody reads our standard output any more: the agent is gone, an answer would reach no one.
    #[cfg_attr(
        not(all(target_os = "linux", target_arch = "x86_64", not(watchkeeper_portable))),
        expect(dead_code, reason = "the standard library cannot watch for it")
    )]
    ReaderGone,
}

/// Why the daemon cannot be reached or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoorFailure {
    /// Nobody listens, or who listened is gone.
    Away,
    /// Somebody listens, too slowly.
    Late,
}

/// What is left for a later daemon.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64", not(watchkeeper_portable))),
    expect(dead_code, reason = "with the standard library the spool reads head and class from the frame")
)]
pub(crate) struct Leaving<'a> {
    pub(crate) head: &'a Head,
    pub(crate) class: EventClass,
    pub(crate) frame: &'a [u8],
    /// Who our ancestors are; empty when that cannot be told.
    pub(crate) ancestry: &'a [u8],
}

/// Who has the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Taken,
    /// A daemon lives, and may or may not have the event: the delivery id tells later.
    Unsure,
    /// There is no daemon, or it went while it was asked.
    Away,
}

impl From<DoorFailure> for Delivery {
    fn from(failure: DoorFailure) -> Self {
        match failure {
            DoorFailure::Away => Self::Away,
            DoorFailure::Late => Self::Unsure,
        }
    }
}

/// Does everything; returns when the program is to leave.
pub(crate) fn run<'a>(arguments: impl Iterator<Item = &'a [u8]>) {
    let started = os::boot_now_ns();
    let call = args::parse(arguments);
    if call.asks_version {
        os::print(
            concat!("watchkeeper-hook ", env!("CARGO_PKG_VERSION"), "\n").as_bytes(),
            after(started, PRINT_MS),
        );
        return;
    }
    let asks_receipt = call.asks_receipt;
    let handed = hand_over(started, call);
    if asks_receipt && let Some((delivery, outcome)) = handed {
        let mut line = [b' '; RECEIPT_BYTES];
        write_receipt(&mut line, delivery, outcome, os::boot_now_ns().saturating_sub(started));
        os::note(&line);
    }
}

/// Hands one event over, to the daemon or to the spool; `None` when there was not even memory for it.
fn hand_over<'a>(started: u64, call: Call<'a, impl Iterator<Item = &'a [u8]>>) -> Option<(u128, Delivery)> {
    let memory = os::memory(PREFIX_MAX_BYTES + PAYLOAD_MAX_BYTES + BLOCK_MAX_BYTES + REPLY_MAX_BYTES)?;
    let (frame, rest) = memory.split_at_mut_checked(PREFIX_MAX_BYTES + PAYLOAD_MAX_BYTES)?;
    let (block, scratch) = rest.split_at_mut_checked(BLOCK_MAX_BYTES)?;
    let Call { instance, agent, event, rest: argv, .. } = call;
    let head = Head {
        flags: Flags::default(),
        delivery: os::delivery_id(),
        started_boot_ns: started,
        boot_id: 0,
        wall_ms: os::wall_now_ms(),
        hook_pid: os::pid(),
        wait_ms: WAIT_MS,
        original_payload_bytes: 0,
    };
    let mut draft = wire::draft(frame, head, agent, event, argv)?;
    let kept = read_input(&mut draft, scratch, after(started, INPUT_MS));
    let delivery = deliver(&instance, draft.seal(kept), scratch, after(started, DELIVERY_MS));
    if delivery == Delivery::Taken {
        return Some((head.delivery, delivery));
    }
    let head = draft.head_mut();
    head.flags = head.flags.with(Flags::SPOOLED);
    head.boot_id = os::boot_id();
    let head = *head;
    let class = EventClass::of(event);
    let ancestry = os::ancestry(block, scratch, after(started, ANCESTRY_MS));
    let event = Leaving { head: &head, class, frame: draft.seal(kept), ancestry };
    os::spool(&instance, &event, scratch, after(started, WAIT_MS));
    if delivery == Delivery::Away && class == EventClass::Starts {
        os::start_daemon(&instance, scratch);
    }
    Some((head.delivery, delivery))
}

/// `<delivery, 32 hex digits> <taken, unsure or away> <nanoseconds from start to now>`, closed by a newline.
fn write_receipt(line: &mut [u8; RECEIPT_BYTES], delivery: u128, outcome: Delivery, spent_ns: u64) {
    let digit = |value: u8| value + if value < 10 { b'0' } else { b'a' - 10 };
    let (id, rest) = line.split_at_mut(32);
    for (at, place) in id.iter_mut().rev().enumerate() {
        *place = digit((delivery >> (4 * at) & 0xf) as u8);
    }
    let word: &[u8] = match outcome {
        Delivery::Taken => b"taken",
        Delivery::Unsure => b"unsure",
        Delivery::Away => b"away",
    };
    for (place, letter) in rest.iter_mut().skip(1).zip(word) {
        *place = *letter;
    }
    if let Some((last, number)) = rest.split_last_mut() {
        *last = b'\n';
        let mut left = spent_ns;
        for place in number.iter_mut().rev() {
            *place = digit((left % 10) as u8);
            left /= 10;
            if left == 0 {
                break;
            }
        }
    }
}

/// Reads standard input into the draft and notes in its head how that went.
fn read_input(draft: &mut Draft<'_>, scratch: &mut [u8], deadline_ns: u64) -> usize {
    let room = draft.payload_room();
    let input = os::read_input(room, scratch, deadline_ns);
    let head = draft.head_mut();
    head.original_payload_bytes = input.seen;
    if input.seen > input.kept as u64 {
        head.flags = head.flags.with(Flags::TRUNCATED);
    }
    head.flags = head.flags.with(match input.end {
        InputEnd::Closed => Flags::default(),
        InputEnd::Late => Flags::INCOMPLETE,
        InputEnd::Failed => Flags::INPUT_FAILED,
    });
    input.kept
}

fn deliver(instance: &args::Instance<'_>, frame: &[u8], replies: &mut [u8], deadline_ns: u64) -> Delivery {
    let mut door = match os::Door::open(instance, replies, deadline_ns) {
        Ok(door) => door,
        Err(failure) => return failure.into(),
    };
    if let Err(failure) = door.send(frame, deadline_ns) {
        return failure.into();
    }
    let mut deadline_ns = deadline_ns;
    let mut durable = false;
    let mut have = 0;
    loop {
        let received = match replies.get_mut(have..) {
            Some(room) if !room.is_empty() => door.receive(room, deadline_ns, durable),
            _ => Received::Closed,
        };
        match received {
            Received::Bytes(len) => have += len,
            Received::Closed | Received::Late | Received::ReaderGone if durable => return Delivery::Taken,
            Received::Closed => return Delivery::Away,
            Received::Late | Received::ReaderGone => return Delivery::Unsure,
        }
        while let Some(bytes) = replies.get(..have) {
            let (reply, len) = match Reply::parse(bytes) {
                Ok(Some(reply)) => reply,
                Ok(None) => break,
                Err(_) if durable => return Delivery::Taken,
                Err(_) => return Delivery::Unsure,
            };
            match reply {
                Reply::Taken => return Delivery::Taken,
                Reply::Hold { ms } => {
                    durable = true;
                    deadline_ns = after(os::boot_now_ns(), ms);
                }
                Reply::Print(text) => {
                    door.print(text, after(os::boot_now_ns(), PRINT_MS));
                    return Delivery::Taken;
                }
                Reply::Refused(_) if durable => return Delivery::Taken,
                Reply::Refused(Refusal::ShuttingDown) => return Delivery::Away,
                Reply::Refused(
                    Refusal::Overloaded
                    | Refusal::Storage
                    | Refusal::Malformed
                    | Refusal::Forbidden
                    | Refusal::Other(_),
                ) => return Delivery::Unsure,
            }
            replies.copy_within(len..have, 0);
            have -= len;
        }
    }
}

fn after(start_ns: u64, ms: u32) -> u64 {
    start_ns.saturating_add(u64::from(ms) * 1_000_000)
}
