//! The daemon's log: a rotated file in the state folder, never a terminal.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// A log past this is renamed to `.1`, replacing the one before; so at most twice this is kept.
const ROTATE_BYTES: u64 = 4 << 20;

/// Keeps the log open.
#[derive(Debug)]
pub(crate) struct Log;

/// Sends events of `INFO` and above to `daemon.log` in `state`. A second start in one process keeps the first.
///
/// # Errors
/// When the file cannot be opened.
pub(crate) fn start(state: &Path) -> io::Result<Log> {
    let file = RotatedFile::open(state.join("daemon.log"))?;
    let subscriber = tracing_subscriber::fmt()
        .with_writer(file)
        .with_ansi(false)
        .with_target(false)
        .with_max_level(tracing::Level::INFO)
        .finish();
    _ = tracing::subscriber::set_global_default(subscriber); // already set: a test in one process
    Ok(Log)
}

#[derive(Debug, Clone)]
struct RotatedFile(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    length_bytes: u64,
}

impl RotatedFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = append(&path)?;
        let length_bytes = file.metadata()?.len();
        Ok(Self(Arc::new(Mutex::new(Inner { path, file, length_bytes }))))
    }
}

impl Write for &RotatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.length_bytes > ROTATE_BYTES {
            _ = fs::rename(&inner.path, inner.path.with_extension("log.1")); // else it grows on
            inner.file = append(&inner.path)?;
            inner.length_bytes = 0;
        }
        let written = inner.file.write(bytes)?;
        inner.length_bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for RotatedFile {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
