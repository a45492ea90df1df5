//! The signals with which a client, a terminal or a system that shuts down ends a server: it lets go of its holds first.

#[cfg(unix)]
mod platform {
    use std::io;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    #[derive(Debug)]
    pub(super) struct Listening([Signal; 3]);

    impl Listening {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self([
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
                signal(SignalKind::hangup())?,
            ]))
        }

        pub(super) async fn next(&mut self) {
            let [terminate, interrupt, hangup] = &mut self.0;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hangup.recv() => {}
            }
        }
    }
}

#[cfg(windows)]
mod platform {
    use std::io;
    use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

    #[derive(Debug)]
    pub(super) struct Listening {
        interrupt: CtrlC,
        stop: CtrlBreak,
        closed: CtrlClose,
    }

    impl Listening {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()?, closed: ctrl_close()? })
        }

        pub(super) async fn next(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.stop.recv() => {}
                _ = self.closed.recv() => {}
            }
        }
    }
}

/// Ends when the first of them has come. Where none can be listened for, the system's own way with them stays.
pub(super) async fn told_to_end() {
    match platform::Listening::new() {
        Ok(mut listening) => listening.next().await,
        Err(_) => std::future::pending().await,
    }
}
