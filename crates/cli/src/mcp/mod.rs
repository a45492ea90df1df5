//! The MCP servers: what an agent, or a program that hosts one, can ask Watchkeeper over standard input and output.
//!
//! `control` is registered by the person (`install --mcp`), `provider` by whoever hosts a model and wants its sessions
//! known. Both are clients of the daemon's local interface and hold no state of their own beyond the holds they took;
//! the daemon decides what each may see and do. The protocol itself is the `rmcp` crate's, met only in `server`.

mod arguments;
mod control;
mod parent;
mod provider;
mod room;
mod server;
mod signals;
mod tools;

pub(crate) use control::Control;
pub(crate) use parent::Parent;
pub(crate) use provider::Provider;
pub(crate) use server::serve;
