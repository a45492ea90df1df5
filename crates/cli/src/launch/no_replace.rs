//! Systems on which a program cannot hand what it holds to a successor: the daemon is stopped and started.

use std::convert::Infallible;

use watchkeeper_api::Client;

use super::Replaced;
use crate::instance::Instance;

/// Why the daemon could not be asked: never.
pub(crate) type ReplaceError = Infallible;

/// Cannot be done.
pub(crate) fn replace(_client: Client, _instance: &Instance) -> Result<Replaced, ReplaceError> {
    Ok(Replaced::Impossible)
}
