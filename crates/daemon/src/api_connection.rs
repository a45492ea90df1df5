//! One client of the local interface: reads requests, hands them to the dispatcher, writes answers and pushes. Decides
//! nothing but what may be said before `initialize`.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    sync::{mpsc, oneshot, watch},
    time::timeout,
};
use watchkeeper_api::{
    Call, ErrorCode, Failure, Message, RequestId,
    method::{Changed, Lagged, Pushed, Subscribed},
    rpc::{FRAME_BYTES_MAX, PROTOCOL},
};

use crate::{
    door::{Caller, Stream},
    event::{ApiCall, Event, Pulse},
    grant::Grant,
    journal::EventReader,
};

/// A client that says nothing before `initialize` for longer is let go; afterwards it may be silent for ever.
const FIRST_CALL_WITHIN: Duration = Duration::from_secs(10);
/// A client that does not read its answers for longer is let go.
const WRITE_WITHIN: Duration = Duration::from_secs(10);
/// Answers and pushes that wait for a slow client; at the limit pushes wait, and are then told as `lagged`.
const OUTBOX: usize = 64;
/// Journal rows pushed one by one; a subscriber that is further behind is told to read them.
const PUSH_ROWS_MAX: usize = 256;

/// Serves one client until it leaves or misbehaves.
pub(crate) async fn serve(
    stream: Stream,
    caller: Caller,
    events: mpsc::Sender<Event>,
    pulse: watch::Receiver<Pulse>,
    journal: EventReader,
) {
    let (read, mut write) = tokio::io::split(stream);
    let (outbox, mut to_send) = mpsc::channel::<Vec<u8>>(OUTBOX);
    let mut connection = Connection { caller, events, pulse, journal, outbox, grant: None, pushes: None };
    let mut lines = BufReader::new(read);
    let writing = tokio::spawn(async move {
        while let Some(line) = to_send.recv().await {
            let sent = timeout(WRITE_WITHIN, write.write_all(&line)).await;
            if !matches!(sent, Ok(Ok(()))) {
                break;
            }
        }
        _ = write.shutdown().await; // the client may be gone already
    });
    let leaving = connection.events.clone();
    loop {
        let line = tokio::select! {
            line = next_line(&mut lines, connection.grant.is_some()) => line,
            () = leaving.closed() => None,
            // It does not read what it is told: nobody is there, though it may never hang up (a stopped program).
            () = connection.outbox.closed() => None,
        };
        let Some(line) = line else { break };
        if line.is_empty() {
            continue;
        }
        let overlong = line.len() >= FRAME_BYTES_MAX;
        if connection.receive(&line).await.is_none() || overlong {
            break;
        }
    }
    if let Some(pushes) = connection.pushes.take() {
        pushes.abort();
        _ = pushes.await; // aborted: that is its end
        _ = connection.events.send(Event::ObserverLeft).await; // only gone when the daemon is, too
    }
    drop(connection); // the last sender of the outbox: the writer ends when all is written
    _ = writing.await; // a panic in it has been recorded by the panic hook
}

/// The next line without its newline; `None` when the client is gone or too slow to introduce itself. A line past the frame
/// limit comes cut, and is the last.
async fn next_line<R: tokio::io::AsyncRead + Unpin>(
    lines: &mut BufReader<R>,
    introduced: bool,
) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let limit = u64::try_from(FRAME_BYTES_MAX).unwrap_or(u64::MAX);
    let mut limited = lines.take(limit);
    let reading = limited.read_until(b'\n', &mut line);
    let read = if introduced { reading.await } else { timeout(FIRST_CALL_WITHIN, reading).await.ok()? };
    match read {
        Ok(0) | Err(_) => None,
        Ok(_) => {
            if line.last() == Some(&b'\n') {
                line.pop();
            } else if line.len() < FRAME_BYTES_MAX {
                return None; // cut off in the middle
            }
            Some(line)
        }
    }
}

struct Connection {
    caller: Caller,
    events: mpsc::Sender<Event>,
    pulse: watch::Receiver<Pulse>,
    journal: EventReader,
    outbox: mpsc::Sender<Vec<u8>>,
    /// Granted by `initialize`.
    grant: Option<Grant>,
    pushes: Option<tokio::task::JoinHandle<()>>,
}

impl Connection {
    /// Handles one frame. `None`: close the connection.
    async fn receive(&mut self, line: &[u8]) -> Option<()> {
        let (id, outcome) = match Message::parse(line) {
            Err((id, failure)) => (id, Err(failure)),
            Ok(Message::Request { id, method, params }) => (Some(id), self.answer(&method, params).await),
            // Nothing that a client notifies us of or answers is expected.
            Ok(Message::Notification { .. } | Message::Response { .. }) => return Some(()),
        };
        self.send(id, outcome).await
    }

    async fn send(&self, id: Option<RequestId>, outcome: Result<Value, Failure>) -> Option<()> {
        let line = match (Message::Response { id: id.clone(), outcome }).to_line() {
            Ok(line) => line,
            Err(failure) => Message::Response { id, outcome: Err(failure) }.to_line().ok()?,
        };
        self.outbox.send(line).await.ok()
    }

    async fn answer(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        let call = Call::parse(method, params)?;
        match (&call, &self.grant) {
            (Call::Initialize(params), _) if params.protocol != PROTOCOL => {
                return Err(Failure::new(
                    ErrorCode::UnsupportedProtocol,
                    format!("the caller speaks protocol {}, this daemon speaks {PROTOCOL}", params.protocol),
                )
                .with_hint(
                    "Use the watchkeeper program that belongs to the running daemon, or restart the daemon.",
                ));
            }
            (Call::Initialize(_), _) => {}
            (_, None) => {
                return Err(Failure::new(ErrorCode::NotInitialized, "the first call must be 'initialize'"));
            }
            (call, Some(grant)) => grant.check(call)?,
        }
        let subscription = if let Call::Subscribe(params) = &call { Some(params.from) } else { None };
        if subscription.is_some() && self.pushes.is_some() {
            return Err(Failure::new(ErrorCode::Refused, "this connection has a subscription already"));
        }
        let (reply, answered) = oneshot::channel();
        let asked = ApiCall { caller: self.caller, grant: self.grant.clone(), call, reply };
        let gone = || Failure::new(ErrorCode::ShuttingDown, "the daemon is going away");
        self.events.send(Event::Api(Box::new(asked))).await.map_err(|_| gone())?;
        let answer = answered.await.map_err(|_| gone())??;
        if let Some(grant) = answer.granted {
            self.grant = Some(grant);
        }
        if let Some(from) = subscription {
            let subscribed: Option<Subscribed> = serde_json::from_value(answer.value.clone()).ok();
            let session = answer.only_session;
            let pushing = Pushing {
                pulse: self.pulse.clone(),
                journal: self.journal.clone(),
                outbox: self.outbox.clone(),
                position: from.map(|from| from.min(subscribed.map_or(u64::MAX, |s| s.seq))),
                session,
            };
            self.pushes = Some(tokio::spawn(pushing.run()));
        }
        Ok(answer.value)
    }
}

/// Pushes of one subscription: woken by the pulse, it reads the journal by position, so that nothing can be lost between.
struct Pushing {
    pulse: watch::Receiver<Pulse>,
    journal: EventReader,
    outbox: mpsc::Sender<Vec<u8>>,
    /// Rows up to here have been pushed; `None`: rows are not wanted.
    position: Option<u64>,
    session: Option<watchkeeper_core::SessionKey>,
}

impl Pushing {
    async fn run(mut self) {
        self.pulse.mark_changed();
        while self.pulse.changed().await.is_ok() {
            let pulse = *self.pulse.borrow_and_update();
            if self.push(&Pushed::Changed(Changed { revision: pulse.revision })).await.is_none()
                || self.push_rows(pulse.seq).await.is_none()
            {
                return;
            }
        }
    }

    async fn push_rows(&mut self, newest: u64) -> Option<()> {
        let Some(position) = self.position else { return Some(()) };
        if newest <= position {
            return Some(());
        }
        let (journal, session) = (self.journal.clone(), self.session.clone());
        // From a cold disk a page takes milliseconds, in which nothing else would happen on this thread.
        let reading = move || journal.rows(position, session.as_ref(), None, PUSH_ROWS_MAX);
        let page = tokio::task::spawn_blocking(reading).await.ok()??;
        for row in page.rows {
            self.push(&Pushed::Event(Box::new(row))).await?;
        }
        self.position = Some(page.next.max(position));
        if page.more {
            self.position = Some(newest);
            self.push(&Pushed::Lagged(Lagged { from: page.next })).await?;
        }
        Some(())
    }

    async fn push(&self, pushed: &Pushed) -> Option<()> {
        let line = pushed.to_message().and_then(|m| m.to_line()).ok()?;
        self.outbox.send(line).await.ok()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::{event::Answer, grant::Grant};
    use watchkeeper_api::Scope;

    /// More than a socket holds, in fewer answers than may wait.
    const ANSWERS: u32 = 8;
    const ANSWER_BYTES: usize = 200_000;

    /// Answers everything at length.
    async fn answer(mut asked: mpsc::Receiver<Event>) {
        while let Some(event) = asked.recv().await {
            let Event::Api(call) = event else { continue };
            let granted = matches!(call.call, Call::Initialize(_)).then_some(Grant::Scope(Scope::Machine));
            let value = Value::String("x".repeat(ANSWER_BYTES));
            _ = call.reply.send(Ok(Answer { value, granted, only_session: None })); // the connection may be over
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_and_says_nothing_more_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let store = crate::journal::open(folder.path()).unwrap().store;
        let journal = EventReader::new(store.reader().unwrap());
        let (mut client, stream) = tokio::net::UnixStream::pair().unwrap();
        let (events, asked) = mpsc::channel(1);
        tokio::spawn(answer(asked));
        let (_pulses, pulse) = watch::channel(Pulse::default());
        let serving = tokio::spawn(serve(stream, Caller { pid: None }, events, pulse, journal));
        let hello = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{{\"protocol\":{PROTOCOL},\"client\":\"test\"}}}}\n"
        );
        client.write_all(hello.as_bytes()).await.unwrap();
        for id in 1..ANSWERS {
            let status = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"status\"}}\n");
            client.write_all(status.as_bytes()).await.unwrap();
        }
        timeout(WRITE_WITHIN * 3, serving).await.unwrap().unwrap();
        drop(client); // it never hung up
    }
}
