//! The signals that end or spare a daemon. They are the process's, so only a process that is nothing but a daemon listens.

use std::{io, time::Duration};

/// A wait, however short, lets the runtime see what the handlers wrote down before.
const NOTICED_WITHIN: Duration = Duration::from_millis(1);

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
    pub(super) struct Listening {
        terminate: Signal,
        interrupt: Signal,
        hangup: Signal,
    }

    impl Listening {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup: signal(SignalKind::hangup())?,
            })
        }

        pub(super) async fn next(&mut self) -> StopSignal {
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
    pub(super) struct Listening {
        interrupt: CtrlC,
        stop: CtrlBreak,
        shutdown: CtrlShutdown,
    }

    impl Listening {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()?, shutdown: ctrl_shutdown()? })
        }

        pub(super) async fn next(&mut self) -> StopSignal {
            tokio::select! {
                _ = self.interrupt.recv() => StopSignal::Interrupt,
                _ = self.stop.recv() => StopSignal::Terminate,
                _ = self.shutdown.recv() => StopSignal::Terminate,
            }
        }
    }
}

/// The signals that this daemon listens for.
#[derive(Debug)]
pub(crate) struct StopSignals(Option<platform::Listening>);

impl StopSignals {
    /// Listens if the process is the daemon's own (`owns_process`); else they stay what they were to whoever it belongs to.
    ///
    /// # Errors
    /// When the runtime cannot register a handler.
    pub(crate) fn new(owns_process: bool) -> io::Result<Self> {
        Ok(Self(owns_process.then(platform::Listening::new).transpose()?))
    }

    /// The next request to stop; never, when it does not listen. Cancellation safe.
    pub(crate) async fn next(&mut self) -> StopSignal {
        match &mut self.0 {
            Some(listening) => listening.next().await,
            None => std::future::pending().await,
        }
    }

    /// What was asked for so far; also what came while the runtime was kept from noticing.
    pub(crate) async fn heard(&mut self) -> Option<StopSignal> {
        tokio::time::timeout(NOTICED_WITHIN, self.next()).await.ok()
    }
}
