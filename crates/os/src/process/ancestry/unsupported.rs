//! Systems whose processes cannot be read.

use super::walk::Step;

pub(super) fn read(_pid: u32) -> Step {
    Step::Unreadable
}
