//! Systems whose processes cannot be listed.

use super::tree::{Root, TreeSample};
use crate::process::Probe;

pub(super) fn sample(roots: &[Root]) -> Vec<Probe<TreeSample>> {
    roots.iter().map(|_| Probe::unknown("processes cannot be listed on this system")).collect()
}
