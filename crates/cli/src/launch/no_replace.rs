//! Systems on which a program cannot hand what it holds to a successor: the daemon is stopped and started.

use std::convert::Infallible;

use watchkeeper_api::Client;

use crate::instance::Instance;

/// How a daemon was replaced.
#[expect(dead_code, reason = "the same shape as on Linux")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    Ready,
    Impossible,
    Ended,
    NotReady,
}

/// Why the daemon could not be asked: never.
pub(crate) type ReplaceError = Infallible;

/// Cannot be done.
pub(crate) fn replace(_client: Client, _instance: &Instance) -> Result<Replaced, ReplaceError> {
    Ok(Replaced::Impossible)
}
