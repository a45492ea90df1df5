//! The process that started the server: a provider's sessions end with it, and so does the server itself, also when
//! something else keeps its standard input open.

use watchkeeper_core::ProcessRef;
use watchkeeper_os::{
    clock,
    process::{ancestry, exit_watch},
};

/// The parent as it was when the server began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parent {
    process: Option<ProcessRef>,
}

impl Parent {
    /// Looks it up now. An unknown parent is watched by nobody; then the end of standard input is the only sign.
    pub(crate) fn find() -> Self {
        let chain = ancestry::chain_of(std::process::id());
        let process = chain.rows.get(1).filter(|row| row.start != 0).map(|row| ProcessRef {
            pid: row.pid,
            start: row.start,
            boot: clock::now().boot_id,
        });
        Self { process }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.map(|process| process.pid)
    }

    /// Ends when it has gone; never when it is not known or cannot be watched.
    pub(crate) async fn gone(&self) {
        let Some(process) = self.process else { return std::future::pending().await };
        let Ok(exits) = exit_watch::ExitWatch::new() else { return std::future::pending().await };
        match exits.watch(process) {
            Ok(exit_watch::Watch::AlreadyGone) => {}
            Ok(exit_watch::Watch::Kernel | exit_watch::Watch::Polled { .. }) => {
                while exits.next().await != process {}
            }
            Err(_) => std::future::pending().await,
        }
    }
}
