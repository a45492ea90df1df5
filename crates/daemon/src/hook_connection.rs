//! One hook at the door: its frame is read within a bound, handed to the dispatcher, and the answer written back.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
    time::timeout,
};
use watchkeeper_core::DeliveryId;
use watchkeeper_frame::{Refusal, Reply, Request, RequestDecoder};

use crate::{
    door::{Caller, Stream},
    event::{Event, HookCall, HookReply},
};

/// A hook writes its frame at once; one that has not within this is broken or hostile and is let go.
const FRAME_WITHIN: Duration = Duration::from_secs(3);
/// A hook that does not read its answer within this is let go.
const WRITE_WITHIN: Duration = Duration::from_secs(1);
/// Read at once; a usual payload fits.
const READ_BYTES: usize = 8 * 1024;

/// The hooks whose frames are on their way to the dispatcher, numbered in the order in which they were let in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readers(Arc<Mutex<Reading>>);

#[derive(Debug, Default)]
struct Reading {
    /// The number of the last hook that was let in.
    last: u64,
    numbers: BTreeSet<u64>,
}

/// One hook whose frame is on its way.
#[derive(Debug)]
pub(crate) struct Reader {
    readers: Readers,
    number: u64,
}

impl Readers {
    /// A hook is let in.
    #[must_use]
    pub(crate) fn begin(&self) -> Reader {
        let mut reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reading.last += 1;
        let number = reading.last;
        reading.numbers.insert(number);
        Reader { readers: self.clone(), number }
    }

    /// The number of the last hook that was let in; zero before the first.
    #[must_use]
    pub(crate) fn last(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Whether none of the hooks up to `number` is still on its way.
    #[must_use]
    pub(crate) fn are_through(&self, number: u64) -> bool {
        let reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reading.numbers.first().is_none_or(|first| *first > number)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.readers.0.lock().unwrap_or_else(PoisonError::into_inner).numbers.remove(&self.number);
    }
}

/// Serves one hook from its knock to its leave.
pub(crate) async fn serve(
    mut stream: Stream,
    caller: Caller,
    events: mpsc::Sender<Event>,
    on_its_way: Reader,
) {
    let request = match timeout(FRAME_WITHIN, read_request(&mut stream)).await {
        Ok(Ok(request)) => request,
        Ok(Err(why)) => {
            _ = answer(&mut stream, &HookReply::Refused(Refusal::Malformed)).await; // it may be gone already
            _ = events.send(Event::HookUnusable { why }).await; // only gone when the daemon is
            return;
        }
        Err(_) => {
            _ = events.send(Event::HookUnusable { why: "hook.slow_frame" }).await;
            return;
        }
    };
    let delivery = DeliveryId(request.head().delivery);
    let (reply, mut replies) = mpsc::channel(2);
    let waiting = reply.downgrade();
    let call = HookCall { request, caller, reply };
    if events.send(Event::Hook(Box::new(call))).await.is_err() {
        _ = answer(&mut stream, &HookReply::Refused(Refusal::ShuttingDown)).await;
        return;
    }
    drop(on_its_way); // the dispatcher's queue has it
    while let Some(reply) = next_reply(&mut stream, &mut replies).await {
        let waits = matches!(reply, HookReply::Wait { .. });
        if answer(&mut stream, &reply).await.is_none() || !waits {
            return;
        }
    }
    _ = events.send(Event::HookGone { delivery, waiting }).await; // only gone when the daemon is
}

/// The next reply; `None` when the hook left first. It writes nothing after its frame, so that anything to read is its end.
async fn next_reply(stream: &mut Stream, replies: &mut mpsc::Receiver<HookReply>) -> Option<HookReply> {
    let mut byte = [0; 1];
    let leaving = std::pin::pin!(stream.read(&mut byte));
    let replying = std::pin::pin!(replies.recv());
    first_of(replying, leaving).await
}

/// Polls the reply first: an answer that is ready counts even if the hook is just leaving.
async fn first_of<T>(
    mut reply: std::pin::Pin<&mut impl Future<Output = Option<T>>>,
    mut leaving: std::pin::Pin<&mut impl Future<Output = std::io::Result<usize>>>,
) -> Option<T> {
    std::future::poll_fn(move |context| {
        if let std::task::Poll::Ready(reply) = reply.as_mut().poll(context) {
            return std::task::Poll::Ready(reply);
        }
        leaving.as_mut().poll(context).map(|_| None)
    })
    .await
}

async fn read_request(stream: &mut Stream) -> Result<Request, &'static str> {
    let mut decoder = RequestDecoder::new();
    let mut buffer = [0; READ_BYTES];
    loop {
        let read = stream.read(&mut buffer).await.map_err(|_| "hook.read_failed")?;
        if read == 0 {
            return Err(if decoder.is_mid_frame() { "hook.half_frame" } else { "hook.said_nothing" });
        }
        let bytes = buffer.get(..read).unwrap_or_default();
        match decoder.feed(bytes) {
            Ok((_, Some(request))) => return Ok(request),
            Ok((_, None)) => {}
            Err(_) => return Err("hook.bad_frame"),
        }
    }
}

async fn answer(stream: &mut Stream, reply: &HookReply) -> Option<()> {
    let wire = match reply {
        HookReply::Taken => Reply::Taken,
        HookReply::Wait { ms } => Reply::Hold { ms: *ms },
        HookReply::Print(text) => Reply::Print(text.as_bytes()),
        HookReply::Refused(refusal) => Reply::Refused(*refusal),
    };
    // A text past the limit of the frame cannot be told; the hook is then only released.
    let bytes = wire.to_bytes().or_else(|| Reply::Taken.to_bytes())?;
    timeout(WRITE_WITHIN, stream.write_all(&bytes)).await.ok()?.ok()
}
