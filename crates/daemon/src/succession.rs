//! From one life of the daemon to the next without letting go of the machine: what the next one is, what it is given, and
//! how long it may keep what it has not asked for.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::{self, RecvTimeoutError},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use watchkeeper_api::{
    ErrorCode, Failure,
    method::{RestartParams, Restarting},
};
use watchkeeper_os::power::inhibit::{HANDS_OVER, HandOver, HandOverError, Held};

use crate::dispatcher::Dispatcher;

/// Locks of a predecessor are let go when the state is not rebuilt within this: nobody then knows whether they are wanted.
const REBUILT_WITHIN: Duration = Duration::from_secs(30);

/// The capability of becoming one's own successor.
pub(crate) const RESTART: &str = "restart";
/// With this option, and the text that follows it, a program is started that is to take over locks.
pub const HANDED_OPTION: &str = "--handed";
/// With this option, and the path of a datagram socket, a program is started whose readiness somebody waits for.
pub const NOTIFY_OPTION: &str = "--notify";

/// Where this daemon comes from and what it can become.
#[derive(Debug, Default)]
pub struct Origin {
    /// The process is this daemon and nothing else: the signals that end a process are the daemon's.
    pub owns_process: bool,
    /// This program, found before anybody replaced it; `None`: the process is not only a daemon, and must stay what it is.
    pub successor_program: Option<PathBuf>,
    /// What makes that program the daemon of the same instance.
    pub successor_arguments: Vec<OsString>,
    /// The word that followed [`HANDED_OPTION`].
    pub handed: Option<String>,
    /// The word that followed [`NOTIFY_OPTION`].
    pub notify: Option<PathBuf>,
    /// Successors that could not be started, so that this daemon went on itself.
    pub failed_restarts: u64,
}

/// Who is to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Successor {
    /// `None`: the program that the daemon came from.
    pub program: Option<PathBuf>,
    pub notify: Option<PathBuf>,
}

impl Origin {
    /// What a predecessor left open for us. A description that cannot be believed is none: why, is the caller's to record
    /// when there is a place for it.
    pub(crate) fn adopt(&mut self) -> (HandOver, Option<HandOverError>) {
        let text = self.handed.take().unwrap_or_default();
        match HandOver::from_text(&text) {
            Ok(handed) => (handed, None),
            Err(error) => (HandOver::default(), Some(error)),
        }
    }

    /// Becomes the successor. Returns only when that fails, with what was to be handed over.
    pub(crate) fn give_way(&mut self, successor: Successor, handed: HandOver) -> HandOver {
        let Some(program) = successor.program.or_else(|| self.successor_program.clone()) else {
            return handed;
        };
        let (handed, error) = handed.exec(|text| {
            let mut command = Command::new(&program);
            command.args(&self.successor_arguments);
            if !text.is_empty() {
                command.args([HANDED_OPTION, text]);
            }
            if let Some(notify) = &successor.notify {
                command.arg(NOTIFY_OPTION).arg(notify);
            }
            command
        });
        crate::exceptions::record_error("restart", &error);
        self.failed_restarts += 1;
        self.notify = successor.notify;
        handed
    }
}

/// Handed locks until it is known whether they are wanted.
#[derive(Debug)]
pub(crate) struct Custody {
    handed: Arc<Mutex<HandOver>>,
    /// Ends the waiting thread when it is dropped.
    _taken: mpsc::Sender<()>,
}

impl Custody {
    pub(crate) fn of(handed: HandOver) -> Self {
        Self::within(REBUILT_WITHIN, handed)
    }

    fn within(limit: Duration, handed: HandOver) -> Self {
        let nothing = handed.is_empty();
        let handed = Arc::new(Mutex::new(handed));
        let (taken, end) = mpsc::channel();
        if !nothing {
            let kept = Arc::clone(&handed);
            let waiting = move || {
                if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) && !take(&kept).is_empty() {
                    tracing::error!("the state is not rebuilt yet; the locks of the predecessor are let go");
                }
            };
            if let Err(error) = std::thread::Builder::new().name("custody".to_owned()).spawn(waiting) {
                // Without the limit nothing is kept.
                crate::exceptions::record_error("hand-over", &error);
                drop(take(&handed));
            }
        }
        Self { handed, _taken: taken }
    }

    pub(crate) fn take(self) -> Vec<Held> {
        take(&self.handed)
    }
}

fn take(handed: &Mutex<HandOver>) -> Vec<Held> {
    std::mem::take(&mut *handed.lock().unwrap_or_else(PoisonError::into_inner)).into_held()
}

impl Dispatcher {
    /// Whether this process can become another program that takes over.
    pub(crate) const fn can_restart(&self) -> bool {
        self.succeeds && HANDS_OVER
    }

    /// The daemon ends as one that has a successor.
    pub(crate) fn restart(&mut self, params: &RestartParams) -> Result<Restarting, Failure> {
        if !self.can_restart() {
            let why = "this daemon cannot hand over what it holds to another program";
            return Err(Failure::new(ErrorCode::Refused, why).with_hint("Stop it and start it again."));
        }
        if self.is_stopping() {
            return Err(Failure::new(ErrorCode::ShuttingDown, "the daemon is on its way out"));
        }
        let absolute = |path: &Option<String>| {
            let path = path.as_deref().map(Path::new);
            match path {
                Some(path) if !path.is_absolute() => {
                    Err(Failure::new(ErrorCode::InvalidParams, "a path must be absolute"))
                }
                Some(_) | None => Ok(path.map(Path::to_owned)),
            }
        };
        let successor = Successor { program: absolute(&params.program)?, notify: absolute(&params.notify)? };
        tracing::info!(?successor, "restarting");
        self.successor = Some(successor);
        self.stop("a successor takes over".to_owned());
        Ok(Restarting { pid: std::process::id() })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Read as _;

    use watchkeeper_os::power::inhibit::Kind;

    use super::*;

    /// A lock as logind gives it, and the end at which logind sees its release.
    fn lock() -> Result<(HandOver, std::io::PipeReader), Box<dyn std::error::Error>> {
        let (reader, writer) = std::io::pipe()?;
        Ok((HandOver::from_parts(vec![(Kind::Idle, writer.into(), std::process::id())])?, reader))
    }

    #[test]
    fn what_nobody_takes_in_time_is_let_go() {
        let (handed, mut end) = lock().unwrap();
        let custody = Custody::within(Duration::from_millis(10), handed);
        assert_eq!(end.read(&mut [0]).unwrap(), 0, "the release is seen");
        assert!(custody.take().is_empty());
    }

    #[test]
    fn what_is_taken_in_time_stays_held() {
        let (handed, mut end) = lock().unwrap();
        let held = Custody::within(Duration::from_secs(3600), handed).take();
        assert_eq!(held.iter().map(Held::kind).collect::<Vec<_>>(), [Kind::Idle]);
        drop(held);
        assert_eq!(end.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_description_that_cannot_be_believed_is_none() {
        for text in ["idle", "idle:1:99999", "idle:1:0", "\u{0}"] {
            let mut origin = Origin { handed: Some(text.to_owned()), ..Origin::default() };
            let (handed, refused) = origin.adopt();
            assert!(handed.is_empty() && refused.is_some(), "{text:?}");
        }
    }
}
