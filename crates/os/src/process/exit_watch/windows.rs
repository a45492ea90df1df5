//! Process handles waited for by the system's thread pool.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use watchkeeper_core::identity::ProcessRef;
use windows_sys::Win32::Foundation::ERROR_INVALID_PARAMETER;

use super::{
    sys_windows::{Wait, start},
    watch::Added,
};
use crate::{clock::boot_id, process::sys_windows};

#[derive(Debug)]
pub(super) struct Source {
    /// Callbacks never take this lock, so that a wait may be ended under it.
    waits: Mutex<BTreeMap<ProcessRef, Wait>>,
    exits: Arc<Exits>,
}

#[derive(Debug, Default)]
struct Exits {
    queue: Mutex<VecDeque<ProcessRef>>,
    added: Notify,
}

impl Exits {
    fn queue(&self) -> MutexGuard<'_, VecDeque<ProcessRef>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    #[expect(clippy::unnecessary_wraps, reason = "the other systems' sources can fail to be made")]
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { waits: Mutex::default(), exits: Arc::default() })
    }

    pub(super) fn add(&self, process: ProcessRef) -> Added {
        let mut waits = self.waits();
        if waits.contains_key(&process) {
            return Added::Watching;
        }
        let boot = boot_id();
        if boot.0 == 0 || process.boot.0 == 0 || process.start == 0 {
            return Added::Unknown { why: "no complete identity".to_owned() };
        }
        if process.boot != boot {
            return Added::Gone;
        }
        let handle = match sys_windows::open(process.pid) {
            Ok(handle) => handle,
            Err(e) if e.raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed()) => return Added::Gone,
            Err(e) => return Added::Unknown { why: format!("opening process {}: {e}", process.pid) },
        };
        match (sys_windows::has_exited(&handle), sys_windows::times(&handle)) {
            (Ok(true), _) => return Added::Gone,
            (Ok(false), Ok(times)) if times.created == process.start => {}
            (Ok(false), Ok(_)) => return Added::Gone,
            (Err(e), _) | (_, Err(e)) => return Added::Unknown { why: e.to_string() },
        }
        let exits = Arc::clone(&self.exits);
        let told = move || {
            exits.queue().push_back(process);
            exits.added.notify_one();
        };
        match start(handle, Box::new(told)) {
            Ok(wait) => {
                waits.insert(process, wait);
                Added::Watching
            }
            Err(e) => Added::Refused { why: format!("RegisterWaitForSingleObject: {e}") },
        }
    }

    pub(super) fn remove(&self, process: &ProcessRef) -> bool {
        let wait = self.waits().remove(process);
        let was_watched = wait.is_some();
        // Ends after a callback that runs now, whose notice is then dropped, too.
        drop(wait);
        self.exits.queue().retain(|p| p != process);
        was_watched
    }

    pub(super) fn len(&self) -> usize {
        self.waits().len()
    }

    pub(super) fn take_all(&self) -> Vec<ProcessRef> {
        let waits = std::mem::take(&mut *self.waits());
        let processes = waits.keys().copied().collect();
        drop(waits);
        self.exits.queue().clear();
        processes
    }

    /// Cancel-safe. Never fails.
    pub(super) async fn exited(&self) -> io::Result<ProcessRef> {
        loop {
            let next = self.exits.queue().pop_front();
            if let Some(process) = next {
                drop(self.waits().remove(&process));
                return Ok(process);
            }
            self.exits.added.notified().await;
        }
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<ProcessRef, Wait>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
