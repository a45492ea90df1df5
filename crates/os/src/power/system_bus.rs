//! One connection to the D-Bus system bus: made when first needed, made again when it was lost.
//!
//! Owns the limits of every call. Does not know what is asked over it.

use std::{
    io,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use futures_core::Stream;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};
use zbus::{Connection, MatchRule, Message, MessageStream, connection};

/// Connecting, with authentication. At the limit the attempt has failed.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// Any one call, with polkit's decision in it (no dialogue is ever asked for). At the limit the call has failed; what
/// comes later, descriptors included, is dropped.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(3);

/// First pause before a lost bus is tried again; doubled each time.
const RECONNECT_FIRST: Duration = Duration::from_millis(250);

/// The longest such pause.
const RECONNECT_MAX: Duration = Duration::from_secs(60);

/// Why the bus cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("no D-Bus system bus: {why}")]
pub(super) struct NoBus {
    pub(super) why: String,
}

/// What a wait on the bus gave.
#[derive(Debug)]
pub(super) enum BusEvent {
    /// A signal that one of the match rules asks for.
    Signal(Message),
    /// The connection is gone.
    Lost,
    /// It is there again; subscriptions are renewed, signals in between were missed.
    Back,
}

/// A connection with fixed subscriptions.
#[derive(Debug)]
pub(super) struct SystemBus {
    /// `None`: the machine's own (`DBUS_SYSTEM_BUS_ADDRESS`, else the well-known socket).
    address: Option<String>,
    rules: Vec<MatchRule<'static>>,
    state: Mutex<State>,
    /// Held while connecting, so that there is never a second connection.
    connecting: tokio::sync::Mutex<()>,
    connected: Notify,
}

#[derive(Debug)]
struct State {
    open: Option<Open>,
    /// Set when an open connection was lost: only then is it tried again without being asked for.
    retry: Option<Retry>,
    /// It came back and `next` has not said so yet.
    back: bool,
}

#[derive(Debug, Clone, Copy)]
struct Retry {
    at: Instant,
    pause: Duration,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    streams: Vec<MessageStream>,
}

impl SystemBus {
    pub(super) fn new(address: Option<String>, rules: Vec<MatchRule<'static>>) -> Self {
        Self {
            address,
            rules,
            state: Mutex::new(State { open: None, retry: None, back: false }),
            connecting: tokio::sync::Mutex::new(()),
            connected: Notify::new(),
        }
    }

    /// The connection, made now if there is none. Bounded by [`CONNECT_LIMIT`] and one [`CALL_LIMIT`] per rule.
    pub(super) async fn connection(&self) -> Result<Connection, NoBus> {
        let gate = self.connecting.lock().await;
        if let Some(open) = &self.state().open
            && !open.connection.is_closed()
        {
            return Ok(open.connection.clone());
        }
        let opened = self.open().await;
        let mut state = self.state();
        let result = match opened {
            Ok(open) => {
                let connection = open.connection.clone();
                state.open = Some(open);
                state.back |= state.retry.take().is_some();
                Ok(connection)
            }
            Err(e) => {
                if let Some(retry) = &mut state.retry {
                    retry.pause = (retry.pause * 2).min(RECONNECT_MAX);
                    retry.at = Instant::now() + retry.pause;
                }
                Err(e)
            }
        };
        drop(state);
        drop(gate);
        self.connected.notify_one();
        result
    }

    async fn open(&self) -> Result<Open, NoBus> {
        let builder = match &self.address {
            Some(address) => connection::Builder::address(address.as_str()),
            None => connection::Builder::system(),
        };
        let builder = builder.method_timeout(CALL_LIMIT);
        let connection = match timeout(CONNECT_LIMIT, builder.build()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(e)) => return Err(NoBus { why: describe(&e) }),
            Err(_) => return Err(NoBus { why: format!("no answer within {} s", CONNECT_LIMIT.as_secs()) }),
        };
        let mut streams = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let subscribed =
                timeout(CALL_LIMIT, MessageStream::for_match_rule(rule.clone(), &connection, None));
            match subscribed.await {
                Ok(Ok(stream)) => streams.push(stream),
                Ok(Err(e)) => return Err(NoBus { why: format!("subscribing: {}", describe(&e)) }),
                Err(_) => return Err(NoBus { why: "no answer to a subscription".to_owned() }),
            }
        }
        Ok(Open { connection, streams })
    }

    /// Waits for a signal, for the loss of the connection, or for its return. Cancel-safe. Never returns while there
    /// was no connection yet: [`connection`](Self::connection) makes one. Signals wait in zbus's own bounded queue
    /// while nobody waits here, and its reader waits with them: a caller with rules keeps calling this.
    pub(super) async fn next(&self) -> BusEvent {
        loop {
            let retry = {
                let mut state = self.state();
                if std::mem::take(&mut state.back) {
                    return BusEvent::Back;
                }
                state.retry
            };
            let again = async {
                match retry {
                    Some(retry) => sleep_until(retry.at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = self.receive() => return event,
                () = self.connected.notified() => {}
                () = again => {
                    // How it went is in the state, where the next turn of this loop looks.
                    drop(self.connection().await);
                }
            }
        }
    }

    async fn receive(&self) -> BusEvent {
        std::future::poll_fn(|cx| {
            let mut state = self.state();
            let Some(open) = &mut state.open else { return Poll::Pending };
            let mut lost = false;
            for stream in &mut open.streams {
                match Pin::new(stream).poll_next(cx) {
                    Poll::Ready(Some(Ok(message))) => return Poll::Ready(BusEvent::Signal(message)),
                    Poll::Ready(Some(Err(_)) | None) => lost = true,
                    Poll::Pending => {}
                }
            }
            if !lost {
                return Poll::Pending;
            }
            state.open = None;
            state.retry = Some(Retry { at: Instant::now() + RECONNECT_FIRST, pause: RECONNECT_FIRST });
            Poll::Ready(BusEvent::Lost)
        })
        .await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error of zbus as one line for people.
pub(super) fn describe(error: &zbus::Error) -> String {
    if is_timeout(error) {
        return format!("no answer within {} s", CALL_LIMIT.as_secs());
    }
    if let zbus::Error::MethodError(name, Some(text), _) = error {
        return format!("{text} ({name})");
    }
    error.to_string()
}

pub(super) fn is_timeout(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::InputOutput(e) if e.kind() == io::ErrorKind::TimedOut)
}
