//! Systems whose processes cannot be watched by anyone.

use std::io;

use watchkeeper_core::identity::ProcessRef;

use super::watch::Added;

#[derive(Debug)]
pub(super) struct Source;

impl Source {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn add(&self, _process: ProcessRef) -> Added {
        Added::Unknown { why: "processes cannot be identified on this system".to_owned() }
    }

    pub(super) fn remove(&self, _process: &ProcessRef) -> bool {
        false
    }

    pub(super) fn len(&self) -> usize {
        0
    }

    pub(super) fn take_all(&self) -> Vec<ProcessRef> {
        Vec::new()
    }

    pub(super) async fn exited(&self) -> io::Result<ProcessRef> {
        std::future::pending().await
    }
}
