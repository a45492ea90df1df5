//! `RLIMIT_NOFILE`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::OpenFiles;

/// The most that macOS accepts as a soft limit whatever the hard one says (`OPEN_MAX` of `<sys/syslimits.h>`).
#[cfg(target_os = "macos")]
const SYSTEM_MAX: Option<u64> = Some(10_240);
#[cfg(not(target_os = "macos"))]
const SYSTEM_MAX: Option<u64> = None;

/// Raises the soft limit to the hard one. Children inherit it: a program that uses `select` may mind, so restore
/// `before` in children that are not ours. When the system refuses, the limit stays and `after` says so.
pub fn raise() -> OpenFiles {
    let limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    let wanted = match (limit.maximum, SYSTEM_MAX) {
        (Some(hard), Some(most)) => Some(hard.min(most)),
        (None, most) => most,
        (hard, None) => hard,
    };
    let is_more = match (before, wanted) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(now), Some(then)) => then > now,
    };
    if is_more
        && let Err(errno) = setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum: limit.maximum })
    {
        tracing::warn!(error = %errno, "the descriptor limit cannot be raised");
    }
    OpenFiles { before, after: getrlimit(Resource::Nofile).current }
}
