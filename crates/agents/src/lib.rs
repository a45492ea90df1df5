//! One folder per coding agent, each with the same four files: `payload.rs` (hook payload → observations),
//! `transcript.rs` (appended lines → observations, with a resumable cursor), `ancestry.rs` (which process is the
//! agent), `install.rs` (file text → plan → file text). Everything is pure: no file, clock or process is touched.
//!
//! Agents' output is hostile until parsed: any bytes give observations or are passed over and counted; nothing panics.

pub mod adapter;
pub mod ancestry;
pub mod hook_time;
pub mod install;
pub mod json;
pub mod line_scanner;
pub mod maturity;
pub mod nearest;

pub mod claude;
pub mod codex;
pub mod copilot;
pub mod declared;
pub mod gemini;
pub mod opencode;
pub mod qwen;

mod contained;
mod content_parts;
mod known_fields;
mod observe;
mod open_calls;
mod reply;
mod task_notification;

pub use adapter::{Adapter, Observation, Parsed, StateFile, TranscriptReader, TranscriptSearch, adapter};
pub use contained::AdapterRef;
pub use declared::{Adapters, Declared};
pub use line_scanner::LineScanner;
