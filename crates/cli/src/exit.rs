//! Exit codes. They are public: scripts rely on them.

/// Done, or there was nothing to do.
pub(crate) const SUCCESS: u8 = 0;
/// It failed; for `why`: the machine is not kept awake.
pub(crate) const FAILED: u8 = 1;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// No daemon answers.
pub(crate) const UNREACHABLE: u8 = 3;
/// For `why`: not known.
pub(crate) const UNKNOWN: u8 = 4;
/// For `wait`: the time is over.
pub(crate) const TIMED_OUT: u8 = 5;
