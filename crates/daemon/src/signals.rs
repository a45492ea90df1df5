//! The signals that end or spare a daemon.

/// Why the daemon is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Terminate,
    Interrupt,
}

#[cfg(unix)]
mod platform {
    use super::StopSignal;
    use std::io;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Listens for TERM and INT; swallows HUP, since a daemon without a terminal has nobody to hang up.
    #[derive(Debug)]
    pub(crate) struct StopSignals {
        terminate: Signal,
        interrupt: Signal,
        hangup: Signal,
    }

    impl StopSignals {
        /// # Errors
        /// When the runtime cannot register a handler.
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup: signal(SignalKind::hangup())?,
            })
        }

        /// The next request to stop. Cancellation safe.
        pub(crate) async fn next(&mut self) -> StopSignal {
            loop {
                tokio::select! {
                    _ = self.terminate.recv() => return StopSignal::Terminate,
                    _ = self.interrupt.recv() => return StopSignal::Interrupt,
                    _ = self.hangup.recv() => tracing::debug!("hangup ignored"),
                }
            }
        }
    }
}

#[cfg(windows)]
mod platform {
    use super::StopSignal;
    use std::io;
    use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlShutdown, ctrl_break, ctrl_c, ctrl_shutdown};

    /// Listens for Ctrl-C, Ctrl-Break and the system's shutdown.
    #[derive(Debug)]
    pub(crate) struct StopSignals {
        interrupt: CtrlC,
        stop: CtrlBreak,
        shutdown: CtrlShutdown,
    }

    impl StopSignals {
        /// # Errors
        /// When the runtime cannot register a handler.
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()?, shutdown: ctrl_shutdown()? })
        }

        /// The next request to stop. Cancellation safe.
        pub(crate) async fn next(&mut self) -> StopSignal {
            tokio::select! {
                _ = self.interrupt.recv() => StopSignal::Interrupt,
                _ = self.stop.recv() => StopSignal::Terminate,
                _ = self.shutdown.recv() => StopSignal::Terminate,
            }
        }
    }
}

pub(crate) use platform::StopSignals;
