//! The daemon's log: a rotated file in the state folder, never a terminal. Written by a thread of its own, so that a slow disk
//! keeps nobody waiting; and to be flushed without ending it, since a daemon that becomes its successor must, and goes on
//! itself when that fails.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A log that the next line would take past this is renamed to `.1`, replacing the one before, or emptied when that cannot
/// be; so at most twice this is kept.
const ROTATE_BYTES: u64 = 4 << 20;
/// Lines that wait for the disk; further ones are lost, and the log says how many.
const LINES_MAX: usize = 1024;
/// Longest line; the rest of it is cut.
const LINE_BYTES: usize = 16 << 10;
/// At an end the disk gets so long for what waits; then it is lost.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// The log of this process, which has one, however many daemons a test runs in it.
static LOG: Mutex<Option<Arc<Lines>>> = Mutex::new(None);

/// Flushes the log when it is dropped.
#[derive(Debug)]
pub(crate) struct Log(Arc<Lines>);

/// Sends events of `INFO` and above to `daemon.log` in `state`. A second start in one process keeps the first.
///
/// # Errors
/// When the file cannot be opened, or its thread not be started.
pub(crate) fn start(state: &Path) -> io::Result<Log> {
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lines) = &*log {
        return Ok(Log(Arc::clone(lines)));
    }
    let lines = Arc::new(Lines::default());
    write_to(RotatedFile::open(state.join("daemon.log"))?, &lines)?;
    let subscriber = tracing_subscriber::fmt()
        .with_writer(LineWriter(Arc::clone(&lines)))
        .with_ansi(false)
        .with_target(false)
        .with_max_level(tracing::Level::INFO)
        .finish();
    _ = tracing::subscriber::set_global_default(subscriber); // already set: whoever runs us has a log of its own
    *log = Some(Arc::clone(&lines));
    Ok(Log(lines))
}

impl Log {
    /// Waits until everything said so far is in the file; not for long.
    pub(crate) fn flush(&self) {
        _ = self.0.flush(FLUSH_WITHIN); // nowhere left to say it
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Lines on their way to the file.
#[derive(Debug, Default)]
struct Lines {
    waiting: Mutex<Waiting>,
    come: Condvar,
    gone: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    /// Lines for which there was no room, since the last that was written.
    lost: u64,
    /// Some are being written.
    writing: bool,
}

impl Lines {
    /// Never held while anything is written.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line, or counts it as lost.
    fn add(&self, line: &[u8]) {
        let line = match line.get(..LINE_BYTES) {
            Some(begin) => [begin, b"\n"].concat(),
            None => line.to_vec(),
        };
        let mut waiting = self.lock();
        if waiting.lines.len() < LINES_MAX {
            waiting.lines.push_back(line);
        } else {
            waiting.lost += 1;
        }
        drop(waiting);
        self.come.notify_one();
    }

    /// Waits for lines and takes them; they count as being written until the next call.
    fn take(&self) -> Vec<u8> {
        let mut waiting = self.lock();
        waiting.writing = false;
        self.gone.notify_all();
        let is_idle = |waiting: &mut Waiting| waiting.lines.is_empty();
        let mut waiting = self.come.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner);
        waiting.writing = true;
        let mut text: Vec<u8> = waiting.lines.drain(..).flatten().collect();
        let lost = std::mem::take(&mut waiting.lost);
        drop(waiting);
        if lost > 0 {
            let mut note = String::new();
            _ = writeln!(note, "{lost} lines are lost here: the disk did not keep up"); // writing to a String cannot fail
            text.extend_from_slice(note.as_bytes());
        }
        text
    }

    /// Waits until nothing waits any more. Returns whether that came within `limit`.
    fn flush(&self, limit: Duration) -> bool {
        let is_busy = |waiting: &mut Waiting| waiting.writing || !waiting.lines.is_empty();
        let waited = self.gone.wait_timeout_while(self.lock(), limit, is_busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Starts the thread that writes, for as long as the process lives.
fn write_to(mut file: RotatedFile, lines: &Arc<Lines>) -> io::Result<()> {
    let lines = Arc::clone(lines);
    let write = move || {
        loop {
            _ = file.write_all(&lines.take()); // the log is the place where it would be said
        }
    };
    std::thread::Builder::new().name("log".to_owned()).spawn(write).map(drop)
}

#[derive(Debug)]
struct LineWriter(Arc<Lines>);

/// One event is one call.
impl Write for &LineWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for LineWriter {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[derive(Debug)]
struct RotatedFile {
    path: PathBuf,
    file: File,
    length_bytes: u64,
}

impl RotatedFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = append(&path)?;
        let length_bytes = file.metadata()?.len();
        Ok(Self { path, file, length_bytes })
    }

    /// Writes lines, each into one file.
    fn write_all(&mut self, mut lines: &[u8]) -> io::Result<()> {
        while !lines.is_empty() {
            let room = usize::try_from(ROTATE_BYTES.saturating_sub(self.length_bytes)).unwrap_or(usize::MAX);
            let fits = match lines.get(..room) {
                None => lines.len(),
                Some(start) => start.iter().rposition(|b| *b == b'\n').map_or(0, |last| last + 1),
            };
            if fits == 0 && self.length_bytes > 0 {
                self.rotate()?;
                continue;
            }
            // No line is as long as a file; one that were would be cut.
            let (piece, rest) =
                lines.split_at_checked(if fits == 0 { room } else { fits }).unwrap_or((lines, &[]));
            let written = self.file.write_all(piece);
            self.length_bytes = match &written {
                Ok(()) => self.length_bytes + piece.len() as u64,
                // A part of it may be there.
                Err(_) => self.file.metadata().map_or(ROTATE_BYTES, |metadata| metadata.len()),
            };
            written?;
            lines = rest;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let is_renamed = fs::rename(&self.path, self.path.with_extension("log.1")).is_ok();
        self.file = append(&self.path)?;
        if !is_renamed {
            // The newest lines are worth more than the oldest, and neither is worth a full disk.
            OpenOptions::new().write(true).truncate(true).open(&self.path)?;
        }
        self.length_bytes = 0;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a test waits for a busy disk.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn lines_in(path: &Path) -> Vec<String> {
        fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn nobody_waits_for_the_disk_and_what_is_lost_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let lines = Arc::new(Lines::default());
        // Nobody writes yet, as on a disk that hangs.
        for n in 0..LINES_MAX + 5 {
            (&LineWriter(Arc::clone(&lines))).write_all(format!("line {n}\n").as_bytes()).unwrap();
        }
        assert!(!lines.flush(Duration::from_millis(1)));
        write_to(RotatedFile::open(path.clone()).unwrap(), &lines).unwrap();
        assert!(lines.flush(PATIENCE));
        let written = lines_in(&path);
        assert_eq!(written.len(), LINES_MAX + 1);
        assert_eq!(written[LINES_MAX - 1], format!("line {}", LINES_MAX - 1));
        assert!(written[LINES_MAX].starts_with("5 lines are lost"), "{}", written[LINES_MAX]);
        lines.add(b"after it\n");
        assert!(lines.flush(PATIENCE));
        assert_eq!(lines_in(&path).last().map(String::as_str), Some("after it"));
    }

    #[test]
    fn lines_and_files_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let lines = Arc::new(Lines::default());
        write_to(RotatedFile::open(path.clone()).unwrap(), &lines).unwrap();
        let line = "x".repeat(2 * LINE_BYTES) + "\n";
        for _ in 0..2 * ROTATE_BYTES / LINE_BYTES as u64 {
            lines.add(line.as_bytes());
            assert!(lines.flush(PATIENCE));
        }
        let size = |name: &str| fs::metadata(dir.path().join(name)).map_or(0, |m| m.len());
        assert!(size("daemon.log") <= ROTATE_BYTES && (1..=ROTATE_BYTES).contains(&size("daemon.log.1")));
        assert!(lines_in(&path).iter().all(|line| line.len() == LINE_BYTES));
    }

    /// As much as ever waits for the disk, in one go.
    fn write_many(file: &mut RotatedFile) {
        let line = "x".repeat(LINE_BYTES - 1) + "\n";
        file.write_all(line.repeat(LINES_MAX).as_bytes()).unwrap();
    }

    #[test]
    fn what_a_slow_disk_gets_at_once_is_bounded_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        write_many(&mut RotatedFile::open(path.clone()).unwrap());
        // A later life finds it as it was left.
        write_many(&mut RotatedFile::open(path.clone()).unwrap());
        for path in [path.with_extension("log.1"), path] {
            assert!((1..=ROTATE_BYTES).contains(&fs::metadata(&path).unwrap().len()), "{}", path.display());
            assert!(lines_in(&path).iter().all(|line| line.len() == LINE_BYTES - 1), "whole lines");
        }
    }

    #[test]
    fn a_log_that_cannot_be_renamed_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        // No file takes the place of a folder.
        fs::create_dir(path.with_extension("log.1")).unwrap();
        let mut file = RotatedFile::open(path.clone()).unwrap();
        write_many(&mut file);
        file.write_all(b"the newest\n").unwrap();
        assert!(fs::metadata(&path).unwrap().len() <= ROTATE_BYTES);
        assert_eq!(lines_in(&path).last().map(String::as_str), Some("the newest"));
    }
}
