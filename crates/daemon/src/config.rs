//! The person's configuration: one table of settings, one TOML file, overrides from the environment.
//!
//! Owns names, types, ranges, defaults and the file's comments. Knows nothing of the running daemon: whoever reloads
//! keeps the last good settings.

mod error;
mod file;
mod schema;

pub use error::{ConfigError, Problem, ProblemKind};
pub use file::{Change, Environment, FILE_BYTES_MAX, FILE_NAME, Loaded, load, load_with, set, unset};
pub use schema::{Kind, SETTINGS, Setting, find, find_or_suggest, schema};
