//! The daemon's local interface: what travels over the API socket, and a small blocking client for it.
//!
//! Owns the wire types (JSON-RPC 2.0, newline-delimited, bounded frames), the closed list of methods, the published
//! schema and the client. It decides nothing and must not know how the daemon answers.

pub mod client;
pub mod duration;
pub mod mcp;
pub mod method;
pub mod rpc;
pub mod schema;
pub mod select;
pub mod status;
pub mod time;

pub use client::{Client, ClientError, ClientOptions, Subscription};
pub use method::{Call, Method, Scope};
pub use rpc::{ErrorCode, Failure, Message, RequestId};
pub use status::Status;
pub use time::Time;
