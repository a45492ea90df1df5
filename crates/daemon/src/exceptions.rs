//! Where failures of our own end up: the rotated `exceptions.log` in the state folder, and the ordinary log beside it.

use std::{
    backtrace::Backtrace,
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Mutex, Once, PoisonError},
};

/// A log past this is renamed to `.1`, replacing the one before; so at most twice this is kept.
const ROTATE_BYTES: u64 = 1 << 20;
/// Longest single entry; the rest of a backtrace is cut.
const ENTRY_BYTES: usize = 16 << 10;

static LOG: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Sends every panic of the process, with its backtrace, to `exceptions.log` in `state`. Panics that a supervisor catches
/// are written, too.
pub(crate) fn install(state: &Path) {
    *LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(state.join("exceptions.log"));
    // Once a process, before whatever else is done about a panic: a test wants to show it, too.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
            record(&format!("panic in thread {thread}: {panic}\n{}", Backtrace::force_capture()));
            before(panic);
        }));
    });
}

/// Writes a failure with its chain of causes.
pub(crate) fn record_error(task: &str, error: &(dyn std::error::Error + 'static)) {
    let mut text = format!("task {task} failed: {error}");
    let mut cause = error.source();
    while let Some(next) = cause {
        _ = write!(text, "\n  because: {next}"); // writing to a String cannot fail
        cause = next.source();
    }
    record(&text);
}

/// Appends one entry. A log that cannot be written must not take the daemon with it.
pub(crate) fn record(entry: &str) {
    tracing::error!("{entry}");
    let guard = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(path) = guard.as_ref() else { return };
    if fs::metadata(path).is_ok_and(|m| m.len() > ROTATE_BYTES) {
        _ = fs::rename(path, path.with_extension("log.1")); // the next entry then goes to the old file
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut end = entry.len().min(ENTRY_BYTES);
    while !entry.is_char_boundary(end) {
        end -= 1;
    }
    if let Ok(mut file) = options.open(path) {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
        let at = watchkeeper_api::Time(watchkeeper_core::Wall(now));
        _ = writeln!(file, "{at} {}", &entry[..end]); // nowhere left to report it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_chains_are_written_and_the_file_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        install(dir.path());
        let caught = std::panic::catch_unwind(|| panic!("a planted panic"));
        assert!(caught.is_err());
        let inner = std::io::Error::other("the cause");
        record_error("planted", &std::io::Error::other(inner));
        let text = fs::read_to_string(dir.path().join("exceptions.log")).unwrap();
        assert!(text.contains("a planted panic") && text.contains("task planted failed"), "{text}");
        for _ in 0..200 {
            record(&"x".repeat(ENTRY_BYTES * 2));
        }
        let size = |name: &str| fs::metadata(dir.path().join(name)).map_or(0, |m| m.len());
        assert!(size("exceptions.log") <= ROTATE_BYTES + 2 * ENTRY_BYTES as u64);
        assert!(size("exceptions.log.1") > 0);
    }
}
