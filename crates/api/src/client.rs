//! A small blocking client. Owns one connection, its limits and its errors; knows methods only by their types.
//!
//! A [`Client`] asks and waits; [`Client::subscribe`] turns it into a [`Subscription`] that only receives, so that one
//! pipe is never read and written at the same time (Windows serialises both on one handle).

mod frames;
#[cfg_attr(unix, path = "client/unix.rs")]
#[cfg_attr(windows, path = "client/windows.rs")]
#[cfg_attr(not(any(unix, windows)), path = "client/unsupported.rs")]
mod transport;

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    method::{
        Initialize, InitializeParams, Initialized, Method, Pushed, Subscribe, SubscribeParams, Subscribed,
    },
    rpc::{ErrorCode, Failure, Message, PROTOCOL, RequestId},
};
use frames::Frames;

/// How long a connection may take when the caller names no limit: the daemon is on the same machine.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How long an answer may take when the caller names no limit: the slowest answers wait for a synced journal.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Notifications and stale answers skipped while waiting for one answer; more is a broken server.
const SKIPPED_MAX: usize = 4096;

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no daemon answers at {}", path.display())]
    Unreachable { path: PathBuf, source: io::Error },
    /// Somebody else could listen there; nothing was sent.
    #[error("{} is not safe to talk to: {why}", path.display())]
    Untrusted { path: PathBuf, why: String },
    /// The connection is of no use afterwards.
    #[error("the daemon did not answer '{method}' within {} s", within.as_secs_f32())]
    TimedOut { method: &'static str, within: Duration },
    #[error("the daemon closed the connection during '{method}'")]
    Closed { method: &'static str },
    #[error("the connection broke during '{method}'")]
    Broken { method: &'static str, source: io::Error },
    /// The other side says something that is not this protocol.
    #[error("the daemon answered '{method}' with something else: {what}")]
    Protocol { method: &'static str, what: String },
    /// The daemon refused, with its reason.
    #[error("{failure}")]
    Remote { method: &'static str, failure: Failure },
}

/// Limits of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    pub connect_within: Duration,
    pub answer_within: Duration,
    /// The caller's name and version, for the daemon's log.
    pub name: String,
    /// As in [`InitializeParams`].
    pub capability: Option<String>,
    /// As in [`InitializeParams`].
    pub provider: Option<String>,
}

/// One initialized connection.
#[derive(Debug)]
pub struct Client {
    frames: Frames,
    answer_within: Duration,
    next_id: i64,
    hello: Initialized,
}

/// A connection that only receives what the daemon pushes.
#[derive(Debug)]
pub struct Subscription {
    frames: Frames,
    /// Where it started.
    pub start: Subscribed,
}

impl ClientOptions {
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            connect_within: CONNECT_WITHIN,
            answer_within: ANSWER_WITHIN,
            name: name.into(),
            capability: None,
            provider: None,
        }
    }
}

impl ClientError {
    /// Whether nobody listens, as opposed to somebody who answers wrongly or says no.
    #[must_use]
    pub const fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// The daemon's own error code, if it was the daemon that refused.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Remote { failure, .. } => Some(failure.code),
            Self::Unreachable { .. }
            | Self::Untrusted { .. }
            | Self::TimedOut { .. }
            | Self::Closed { .. }
            | Self::Broken { .. }
            | Self::Protocol { .. } => None,
        }
    }
}

impl Client {
    /// Dials the API socket (or pipe) at `path`, checks that it is ours, and initializes. Blocks within the limits.
    ///
    /// # Errors
    /// [`ClientError`]; `Unreachable` when nobody listens.
    pub fn connect(path: &Path, options: &ClientOptions) -> Result<Self, ClientError> {
        let stream = transport::dial(path, options.connect_within).map_err(|error| match error {
            transport::DialError::Io(source) => ClientError::Unreachable { path: path.into(), source },
            transport::DialError::Untrusted(why) => ClientError::Untrusted { path: path.into(), why },
        })?;
        let frames = Frames::new(stream);
        let hello = Initialized {
            protocol: PROTOCOL,
            version: String::new(),
            capabilities: std::collections::BTreeMap::new(),
            scope: crate::Scope::Session,
        };
        let mut client = Self { frames, answer_within: options.answer_within, next_id: 1, hello };
        client.hello = client.call::<Initialize>(&InitializeParams {
            protocol: PROTOCOL,
            client: options.name.clone(),
            capability: options.capability.clone(),
            provider: options.provider.clone(),
        })?;
        Ok(client)
    }

    /// What the daemon said when this connection began.
    #[must_use]
    pub const fn hello(&self) -> &Initialized {
        &self.hello
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// [`ClientError`]; after anything but `Remote` the connection is of no use any more.
    pub fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Output, ClientError> {
        let method = M::NAME;
        let what = |e: serde_json::Error| ClientError::Protocol { method, what: e.to_string() };
        let id = RequestId::Number(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        let params = serde_json::to_value(params).map_err(what)?;
        let request = Message::Request { id: id.clone(), method: method.into(), params };
        let line = request.to_line().map_err(|failure| ClientError::Remote { method, failure })?;
        let deadline = Instant::now().checked_add(self.answer_within);
        self.frames.send(&line, deadline).map_err(|error| self.broken(method, error))?;
        for _ in 0..SKIPPED_MAX {
            let message = self.receive(method, deadline)?;
            if let Message::Response { id: answered, outcome } = message
                && (answered.as_ref() == Some(&id) || answered.is_none())
            {
                let value = outcome.map_err(|failure| ClientError::Remote { method, failure })?;
                return serde_json::from_value(value).map_err(what);
            }
        }
        Err(ClientError::Protocol { method, what: "only other messages came".into() })
    }

    /// Subscribes; from here on the connection only receives.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn subscribe(mut self, params: &SubscribeParams) -> Result<Subscription, ClientError> {
        let start = self.call::<Subscribe>(params)?;
        Ok(Subscription { frames: self.frames, start })
    }

    fn receive(&mut self, method: &'static str, deadline: Option<Instant>) -> Result<Message, ClientError> {
        match self.frames.receive(deadline) {
            Ok(Some(line)) => parse(method, &line),
            Ok(None) => Err(ClientError::Closed { method }),
            Err(error) => Err(self.broken(method, error)),
        }
    }

    fn broken(&self, method: &'static str, source: io::Error) -> ClientError {
        if ran_out(&source) {
            ClientError::TimedOut { method, within: self.answer_within }
        } else if hung_up(&source) {
            ClientError::Closed { method }
        } else {
            ClientError::Broken { method, source }
        }
    }
}

impl Subscription {
    /// The next push; `None` when none came within `within` (`None`: waits for ever). Cancelled only by the daemon.
    ///
    /// # Errors
    /// `Closed` when the daemon is gone; the caller may connect again and go on from the last sequence number.
    pub fn next(&mut self, within: Option<Duration>) -> Result<Option<Pushed>, ClientError> {
        const METHOD: &str = Subscribe::NAME;
        let deadline = within.and_then(|within| Instant::now().checked_add(within));
        loop {
            let line = match self.frames.receive(deadline) {
                Ok(Some(line)) => line,
                Ok(None) => return Err(ClientError::Closed { method: METHOD }),
                Err(error) if ran_out(&error) => return Ok(None),
                Err(error) if hung_up(&error) => return Err(ClientError::Closed { method: METHOD }),
                Err(source) => return Err(ClientError::Broken { method: METHOD, source }),
            };
            if let Message::Notification { method, params } = parse(METHOD, &line)? {
                return Pushed::parse(&method, params)
                    .map(Some)
                    .map_err(|failure| ClientError::Protocol { method: METHOD, what: failure.message });
            }
        }
    }
}

fn ran_out(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

fn hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn parse(method: &'static str, line: &[u8]) -> Result<Message, ClientError> {
    Message::parse(line).map_err(|(_, failure)| ClientError::Protocol { method, what: failure.message })
}

#[cfg(test)]
mod tests;
