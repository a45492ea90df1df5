//! Power requests. They end with their handle, so with the process.
//!
//! No request keeps a laptop up whose lid is closed or that a person puts to sleep; the lid's action is a lasting
//! setting of the power scheme, which is not changed here. On battery under Modern Standby requests end five minutes
//! after the sleep timeout (documentation of `PowerSetRequest`).

use std::{
    io,
    os::windows::io::OwnedHandle,
    sync::mpsc::{SyncSender, sync_channel},
    thread,
};

use super::{Kind, Notice, Refused, Standing, WHY, sys_windows};

/// Makes power requests.
#[derive(Debug, Default)]
pub struct Inhibitor(());

/// One request. Dropping it ends it.
#[derive(Debug)]
pub struct Held {
    kind: Kind,
    _request: Request,
}

#[derive(Debug)]
enum Request {
    Power {
        _handle: OwnedHandle,
    },
    /// An execution state belongs to a thread: it lives until this channel closes.
    Thread {
        _end: SyncSender<()>,
    },
}

impl Inhibitor {
    /// Asks nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing to connect to.
    ///
    /// # Errors
    /// Never.
    pub async fn connect(&self) -> Result<(), Refused> {
        Ok(())
    }

    /// Asks for each kind on its own, in the order given.
    pub async fn take(&self, kinds: &[Kind]) -> Vec<(Kind, Result<Held, Refused>)> {
        kinds.iter().map(|kind| (*kind, take_one(*kind))).collect()
    }

    /// Windows shows its requests to administrators only.
    ///
    /// # Errors
    /// Always `Unsupported`.
    pub async fn read_back<'a>(
        &self,
        _held: impl IntoIterator<Item = &'a Held>,
    ) -> Result<Standing, Refused> {
        Err(Refused::Unsupported { why: "Windows lists power requests to administrators only".to_owned() })
    }

    /// Never returns: no service stands between a request and the system.
    pub async fn next(&self) -> Notice {
        std::future::pending().await
    }
}

impl Held {
    /// What it prevents.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Always: requests end with their process, so none is handed over.
    #[must_use]
    pub fn is_own(&self) -> bool {
        true
    }
}

fn take_one(kind: Kind) -> Result<Held, Refused> {
    let request = match kind {
        Kind::Idle => match sys_windows::require_system(WHY) {
            Ok(handle) => Request::Power { _handle: handle },
            Err(e) => by_thread(&e)?,
        },
        Kind::LidSwitch => {
            let why = "no program can hold the lid of Windows: its action is a setting of the power scheme";
            return Err(Refused::Unsupported { why: why.to_owned() });
        }
        Kind::Sleep => {
            let why = "Windows lets no program veto a sleep that a person asks for";
            return Err(Refused::Unsupported { why: why.to_owned() });
        }
    };
    Ok(Held { kind, _request: request })
}

/// For systems without power requests.
fn by_thread(refusal: &io::Error) -> Result<Request, Refused> {
    let failed = |why: String| Refused::Failed { why };
    let (end, ended) = sync_channel::<()>(0);
    let (answer, answered) = sync_channel(1);
    let worker = thread::Builder::new().name("keep-awake".to_owned()).spawn(move || {
        if answer.send(sys_windows::require_system_by_thread()).is_ok() {
            // Returns when the lock is dropped: its end of the channel is never written to.
            _ = ended.recv();
        }
    });
    worker.map_err(|e| failed(format!("starting the keep-awake thread: {e}")))?;
    match answered.recv() {
        Ok(true) => Ok(Request::Thread { _end: end }),
        Ok(false) | Err(_) => {
            Err(failed(format!("PowerCreateRequest: {refusal}; SetThreadExecutionState refuses")))
        }
    }
}
