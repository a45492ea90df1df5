//! JSON-RPC 2.0 over one connection, one message a line. Owns frames, ids and errors; knows no method.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use std::fmt;

/// Longest frame either side sends or accepts, newline included. The receiver answers a longer one with
/// [`ErrorCode::FrameTooLong`] where it can and closes the connection: the rest of the line cannot be trusted.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// The version of this interface; raised only when something is removed or changes its meaning.
pub const PROTOCOL: u32 = 1;
/// Longest request id given as text.
pub const ID_BYTES_MAX: usize = 128;

/// The caller's own name for a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    Number(i64),
    Text(String),
}

/// One frame, told apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// `id` is `None` where the request could not be read.
    Response {
        id: Option<RequestId>,
        outcome: Result<Value, Failure>,
    },
}

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: ErrorCode,
    /// A lower-case fragment without a full stop.
    pub message: String,
    /// What the caller can do about it, a sentence.
    pub hint: Option<String>,
    /// What the caller may have meant.
    pub candidates: Vec<String>,
}

/// Why a request failed. The numbers are public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    Parse,
    InvalidRequest,
    UnknownMethod,
    InvalidParams,
    Internal,
    NotInitialized,
    UnsupportedProtocol,
    FrameTooLong,
    /// The caller's scope does not allow it.
    Forbidden,
    UnknownSession,
    AmbiguousSession,
    UnknownSetting,
    BadValue,
    UnknownHold,
    /// The daemon is on its way out; ask its successor.
    ShuttingDown,
    /// A bound of the daemon is reached (connections, subscriptions, holds).
    Busy,
    /// Understood, but it cannot be done in the present state.
    Refused,
    /// A code that this version does not know.
    Other(i32),
}

impl ErrorCode {
    const KNOWN: [Self; 17] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::UnknownMethod,
        Self::InvalidParams,
        Self::Internal,
        Self::NotInitialized,
        Self::UnsupportedProtocol,
        Self::FrameTooLong,
        Self::Forbidden,
        Self::UnknownSession,
        Self::AmbiguousSession,
        Self::UnknownSetting,
        Self::BadValue,
        Self::UnknownHold,
        Self::ShuttingDown,
        Self::Busy,
        Self::Refused,
    ];

    /// The number on the wire: JSON-RPC's own codes, ours from -32001 downwards.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::UnknownMethod => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::NotInitialized => -32001,
            Self::UnsupportedProtocol => -32002,
            Self::FrameTooLong => -32003,
            Self::Forbidden => -32004,
            Self::UnknownSession => -32005,
            Self::AmbiguousSession => -32006,
            Self::UnknownSetting => -32007,
            Self::BadValue => -32008,
            Self::UnknownHold => -32009,
            Self::ShuttingDown => -32010,
            Self::Busy => -32011,
            Self::Refused => -32012,
            Self::Other(number) => number,
        }
    }

    /// The code of a number.
    #[must_use]
    pub fn of_number(number: i32) -> Self {
        Self::KNOWN.into_iter().find(|code| code.number() == number).unwrap_or(Self::Other(number))
    }

    /// The name used in the schema and in documents; `None` for an unknown number.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Parse => "parse",
            Self::InvalidRequest => "invalid_request",
            Self::UnknownMethod => "unknown_method",
            Self::InvalidParams => "invalid_params",
            Self::Internal => "internal",
            Self::NotInitialized => "not_initialized",
            Self::UnsupportedProtocol => "unsupported_protocol",
            Self::FrameTooLong => "frame_too_long",
            Self::Forbidden => "forbidden",
            Self::UnknownSession => "unknown_session",
            Self::AmbiguousSession => "ambiguous_session",
            Self::UnknownSetting => "unknown_setting",
            Self::BadValue => "bad_value",
            Self::UnknownHold => "unknown_hold",
            Self::ShuttingDown => "shutting_down",
            Self::Busy => "busy",
            Self::Refused => "refused",
            Self::Other(_) => return None,
        })
    }

    /// Every code with a name.
    #[must_use]
    pub const fn known() -> &'static [Self] {
        &Self::KNOWN
    }
}

impl Failure {
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, candidates: Vec::new() }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn with_candidates(mut self, candidates: Vec<String>) -> Self {
        self.candidates = candidates;
        self
    }
}

impl Message {
    /// Reads one line (without its newline). The error is what to answer: with `Parse` for what is not JSON, with
    /// `InvalidRequest` for JSON that is no message. Unknown fields are ignored; batches are refused.
    ///
    /// # Errors
    /// A [`Failure`] that can be sent as it is, with the id where that could be read.
    pub fn parse(line: &[u8]) -> Result<Self, (Option<RequestId>, Failure)> {
        if line.len() >= FRAME_BYTES_MAX {
            return Err((None, Failure::new(ErrorCode::FrameTooLong, frame_too_long(line.len()))));
        }
        // Derived structs also read arrays, which would make a batch look like a message.
        if line.trim_ascii_start().first() == Some(&b'[') {
            return Err((None, Failure::new(ErrorCode::InvalidRequest, "batches are not supported")));
        }
        let wire: Wire = serde_json::from_slice(line).map_err(|e| {
            let code = if e.is_data() { ErrorCode::InvalidRequest } else { ErrorCode::Parse };
            (None, Failure::new(code, format!("not a JSON-RPC message: {e}")))
        })?;
        let invalid = |id, why: &str| Err((id, Failure::new(ErrorCode::InvalidRequest, why)));
        if wire.jsonrpc != "2.0" {
            return invalid(wire.id, "the field 'jsonrpc' must be \"2.0\"");
        }
        match (wire.method, wire.id, wire.result, wire.error) {
            (Some(method), Some(id), None, None) => Ok(Self::Request { id, method, params: wire.params }),
            (Some(method), None, None, None) => Ok(Self::Notification { method, params: wire.params }),
            (None, id, Some(result), None) => Ok(Self::Response { id, outcome: Ok(result) }),
            (None, id, None, Some(error)) => Ok(Self::Response { id, outcome: Err(error.into()) }),
            (_, id, _, _) => invalid(id, "neither a request, a notification nor a response"),
        }
    }

    /// The frame of this message with its newline.
    ///
    /// # Errors
    /// `FrameTooLong` when it would exceed [`FRAME_BYTES_MAX`]; the sender must send less.
    pub fn to_line(&self) -> Result<Vec<u8>, Failure> {
        let mut line = serde_json::to_vec(&self.to_wire())
            .map_err(|e| Failure::new(ErrorCode::Internal, format!("cannot write the message: {e}")))?;
        line.push(b'\n');
        if line.len() > FRAME_BYTES_MAX {
            return Err(Failure::new(ErrorCode::FrameTooLong, frame_too_long(line.len())));
        }
        Ok(line)
    }

    fn to_wire(&self) -> Wire {
        let mut wire = Wire { jsonrpc: "2.0".into(), ..Wire::default() };
        match self {
            Self::Request { id, method, params } => {
                wire.id = Some(id.clone());
                wire.method = Some(method.clone());
                wire.params = params.clone();
            }
            Self::Notification { method, params } => {
                wire.method = Some(method.clone());
                wire.params = params.clone();
            }
            Self::Response { id, outcome } => {
                wire.id.clone_from(id);
                match outcome {
                    Ok(result) => wire.result = Some(result.clone()),
                    Err(failure) => wire.error = Some(failure.into()),
                }
            }
        }
        wire
    }
}

fn frame_too_long(bytes: usize) -> String {
    format!("a frame of {bytes} bytes; the limit is {FRAME_BYTES_MAX}")
}

#[derive(Default, Serialize, Deserialize)]
struct Wire {
    jsonrpc: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<RequestId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    params: Value,
    /// A result may be `null`, which is not the same as none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<WireError>,
}

#[derive(Serialize, Deserialize)]
struct WireError {
    code: i32,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<WireErrorData>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireErrorData {
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<String>,
}

fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(d).map(Some)
}

impl From<WireError> for Failure {
    fn from(wire: WireError) -> Self {
        let WireErrorData { hint, candidates } = wire.data.unwrap_or_default();
        Self { code: ErrorCode::of_number(wire.code), message: wire.message, hint, candidates }
    }
}

impl From<&Failure> for WireError {
    fn from(failure: &Failure) -> Self {
        let has_data = failure.hint.is_some() || !failure.candidates.is_empty();
        let data = has_data
            .then(|| WireErrorData { hint: failure.hint.clone(), candidates: failure.candidates.clone() });
        Self { code: failure.code.number(), message: failure.message.clone(), data }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => s.serialize_i64(*number),
            Self::Text(text) => s.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl de::Visitor<'_> for IdVisitor {
            type Value = RequestId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number or a text of at most {ID_BYTES_MAX} bytes")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<RequestId, E> {
                Ok(RequestId::Number(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<RequestId, E> {
                i64::try_from(number).map(RequestId::Number).map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RequestId, E> {
                if text.len() > ID_BYTES_MAX {
                    return Err(E::invalid_length(text.len(), &self));
                }
                Ok(RequestId::Text(text.into()))
            }
        }
        d.deserialize_any(IdVisitor)
    }
}

#[cfg(test)]
mod tests;
