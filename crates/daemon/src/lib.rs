//! The daemon: one dispatcher that turns events into inputs of the core, writes them down, carries out the effects, and
//! answers. `dispatcher` is the place to start reading, `boot` says in which order things come and go.

mod actor;
mod agent_checks;
mod answer;
mod api_connection;
mod boot;
pub mod config;
mod config_watch;
mod counters;
mod daemon_checks;
mod declared_files;
mod delivery;
mod dispatcher;
mod door;
mod effects;
mod event;
mod exceptions;
mod exits;
mod file_notices;
mod follow;
mod grant;
mod hook_connection;
mod instance;
mod intake;
mod intake_hooks;
mod journal;
mod keep_awake;
mod logging;
mod observe;
mod probe;
mod ready;
mod resolve;
#[cfg(test)]
mod rig;
mod run_folder;
mod signals;
mod sources;
mod succession;
mod transcript_place;
mod transcripts;
mod wall_clock;
mod watched_folders;
mod work_process;

use std::{fs::File, io, path::PathBuf, time::Duration};

use boot::End;
use instance::InstanceLock;
use logging::Log;
use succession::Custody;
use watchkeeper_store::OpenError;

pub use succession::{HANDED_OPTION, NOTIFY_OPTION, Origin};
pub use watchkeeper_frame::Place;

/// Pages of the journal that are being read for a client keep an ending daemon at most so long.
const READS_WITHIN: Duration = Duration::from_secs(2);

/// Why a daemon did not come up, or ended in disorder.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot create the folder {path}")]
    Folder { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Place(watchkeeper_frame::PlaceError),
    #[error("another daemon serves this instance")]
    Instance(#[from] instance::LockError),
    #[error("cannot open the journal")]
    Open(#[from] OpenError),
    #[error("cannot read the journal")]
    Read(#[from] watchkeeper_store::ReadError),
    #[error("the journal cannot be replayed")]
    Journal,
    #[error("cannot watch processes")]
    Exits(#[from] watchkeeper_os::process::exit_watch::ExitWatchError),
    #[error("cannot listen")]
    Door(#[from] door::DoorError),
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot open the log")]
    Log(#[source] io::Error),
}

impl RunError {
    /// Whether another daemon of the same instance is up already: harmless for whoever only wanted one.
    #[must_use]
    pub fn is_already_running(&self) -> bool {
        match self {
            Self::Instance(error) => matches!(error, instance::LockError::Held { .. }),
            // Its lock may lie in a runtime folder that was cleaned away. A former life of this process is nobody else.
            Self::Open(OpenError::Locked { holder, .. }) => *holder != Some(std::process::id()),
            Self::Open(
                OpenError::Newer { .. }
                | OpenError::Foreign { .. }
                | OpenError::TooManyDamaged { .. }
                | OpenError::File { .. }
                | OpenError::Database { .. },
            )
            | Self::Folder { .. }
            | Self::Place(_)
            | Self::Read(_)
            | Self::Journal
            | Self::Exits(_)
            | Self::Door(_)
            | Self::Signals(_)
            | Self::Runtime(_)
            | Self::Log(_) => false,
        }
    }
}

/// Runs the daemon of `place` until it is told to stop or nothing keeps it. Blocks. `private`: the instance was named by its
/// folder, and every process of its user has machine scope. To be called before the process opens anything when `origin`
/// says that something was handed over. Does not return when a successor takes over: the process becomes that.
///
/// # Errors
/// When it cannot come up; another daemon of the same instance is one reason.
pub fn run(place: Place, private: bool, mut origin: Origin) -> Result<(), RunError> {
    let (mut handed, refused) = origin.adopt();
    let lock = handed.take_companion();
    boot::prepare(&place)?;
    exceptions::install(&place.state);
    let log = logging::start(&place.state).map_err(RunError::Log)?;
    if let Some(refused) = refused {
        exceptions::record_error("hand-over", &refused);
    }
    let custody = Custody::of(handed);
    let outcome = live(&place, private, &mut origin, lock, custody, &log);
    if let Err(error) = &outcome
        && !error.is_already_running()
    {
        exceptions::record_error("daemon", error);
    }
    outcome
}

/// One life after the other, in one process only when a successor cannot be started: a daemon that goes on is better than
/// none.
fn live(
    place: &Place,
    private: bool,
    origin: &mut Origin,
    handed_lock: Option<File>,
    mut custody: Custody,
    log: &Log,
) -> Result<(), RunError> {
    let mut lock = match handed_lock.and_then(|file| InstanceLock::adopt(&place.run, file)) {
        Some(lock) => lock,
        None => InstanceLock::take(&place.run)?,
    };
    loop {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Runtime)?;
        let (end, held) = runtime.block_on(boot::run(place.clone(), private, origin, custody, lock))?;
        match end {
            End::Stopped => {
                runtime.shutdown_timeout(READS_WITHIN);
                return Ok(());
            }
            End::Succeeded(successor, handed, ends_at_once) => {
                // A page that is just being read keeps nobody waiting.
                runtime.shutdown_background();
                // The thread that writes it ends with this program.
                log.flush();
                // The lock goes along: between two lives nobody else may take the instance.
                let mut back = origin.give_way(successor, handed.with_companion(held.into_file()));
                drop(ends_at_once);
                // The folders may have been cleaned meanwhile; the successor would have made them anew, too.
                boot::prepare(place)?;
                lock = match back.take_companion().and_then(|file| InstanceLock::adopt(&place.run, file)) {
                    Some(lock) => lock,
                    None => InstanceLock::take(&place.run)?,
                };
                custody = Custody::of(back);
            }
        }
    }
}
