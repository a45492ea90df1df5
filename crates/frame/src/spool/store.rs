//! The spool as files, with the standard library: the daemon's reading side, and the writing side of hooks on systems
//! other than Linux. Blocking. Must not know what an event means.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    Census, DROPPED_FILE, DROPPED_MAX, FILE_MAX_BYTES, Room, SPOOL_MAX_FILES, SpoolName, TEMPORARY_PREFIX,
    TRAILER_BYTES, parts_of_file, trailer,
};
use crate::{
    event::EventClass,
    request::Request,
    wire::{FrameError, RequestRef},
};

/// Most directory entries that one listing looks at; what is beyond waits for the next one. Hooks leave at most
/// [`SPOOL_MAX_FILES`], but may race each other beyond it.
pub const LISTING_MAX_ENTRIES: usize = 4 * SPOOL_MAX_FILES;
/// Most unreadable files kept for a look; at the limit the file is deleted instead (it is counted either way).
pub const BAD_MAX_FILES: usize = 256;
/// Age from which a half-written file is deleted: no hook lives so long without a held answer, and one that holds has
/// been acknowledged.
pub const TEMPORARY_MAX_AGE: Duration = Duration::from_secs(600);
/// Files given up for one new event; if that does not make room, the new event is dropped.
pub const EVICTIONS_MAX: usize = 4;

/// One instance's spool directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spool {
    directory: PathBuf,
}

/// What waits in the spool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// In order of the hooks' starts: earlier boots first, this boot last.
    pub files: Vec<PathBuf>,
    /// Entries that are neither events nor anything else this crate writes.
    pub foreign: usize,
    /// There were more than [`LISTING_MAX_ENTRIES`]: list again after these.
    pub more: bool,
}

/// Why a spooled event cannot be used.
#[derive(Debug)]
pub enum SpoolError {
    /// The file cannot be read now; leave it and try again.
    Io { path: PathBuf, source: io::Error },
    /// Torn, rotten or no event: move it aside with [`Spool::set_aside`].
    Corrupt { path: PathBuf, why: Corruption },
    /// Whole, but written by a later version: leave it for that version's daemon.
    Newer { path: PathBuf, version: u16 },
}

/// What is wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corruption {
    /// Not a regular file.
    Kind,
    /// Longer than any event.
    TooLong,
    /// The trailer does not fit the content.
    Checksum,
    /// The content is no frame.
    Frame(FrameError),
}

impl fmt::Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, .. } => write!(f, "cannot read the spooled event {}", path.display()),
            Self::Corrupt { path, why } => {
                write!(f, "the spooled event {} is unusable ({why:?})", path.display())
            }
            Self::Newer { path, version } => {
                write!(f, "the spooled event {} has the unknown version {version}", path.display())
            }
        }
    }
}

impl std::error::Error for SpoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Corrupt { .. } | Self::Newer { .. } => None,
        }
    }
}

/// One event as it waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub request: Request,
    /// Who the hook's ancestors were, for [`Ancestry::parse`](crate::ancestry::Ancestry::parse); mostly there, and not
    /// checked yet.
    pub ancestry: Vec<u8>,
}

/// What became of an event offered to the spool.
#[derive(Debug)]
pub enum Spooled {
    /// Whole under this path for everybody to see; only a power cut can undo it before `file` is synced.
    Written { path: PathBuf, file: File },
    /// Dropped and counted: the spool is full of more valuable events.
    Dropped,
}

impl Spool {
    /// The spool in `directory`, which need not exist yet.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The spool's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Lists the events in the order in which their hooks began. Boots are told apart by their id and put in order by
    /// the earliest wall clock of each, except that `this_boot` (the kernel's boot id as a number, zero when unknown) is always last;
    /// within a boot only the boot clock counts. A missing directory is an empty spool.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn drain_order(&self, this_boot: u128) -> io::Result<Listing> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Listing::default()),
            Err(error) => return Err(error),
        };
        let mut listing = Listing::default();
        let mut boots: BTreeMap<u32, Vec<SpoolName>> = BTreeMap::new();
        for (count, entry) in entries.enumerate() {
            if count == LISTING_MAX_ENTRIES {
                listing.more = true;
                break;
            }
            let name = entry?.file_name();
            let bytes = name.as_encoded_bytes();
            match SpoolName::parse(bytes) {
                Some(name) => boots.entry(name.boot).or_default().push(name),
                None if bytes.starts_with(TEMPORARY_PREFIX.as_bytes()) => {}
                None if bytes == DROPPED_FILE.as_bytes() || bytes == b"bad" => {}
                None => listing.foreign += 1,
            }
        }
        let current = u32::try_from(this_boot >> 96).unwrap_or(0);
        let mut boots: Vec<_> = boots.into_iter().collect();
        boots.sort_by_key(|(boot, names)| {
            (*boot == current && current != 0, names.iter().map(|name| name.wall_ms).min(), *boot)
        });
        for (_, mut names) in boots {
            names.sort_by_key(SpoolName::arrival);
            listing.files.extend(names.iter().map(|name| self.path_of(name)));
        }
        Ok(listing)
    }

    /// Reads one event. Does not remove it: call [`Spool::remove`] once it is durable elsewhere.
    ///
    /// # Errors
    /// See [`SpoolError`]; what is to be done stands with each variant.
    pub fn read(path: &Path) -> Result<Event, SpoolError> {
        let io = |source| SpoolError::Io { path: path.to_owned(), source };
        let corrupt = |why| SpoolError::Corrupt { path: path.to_owned(), why };
        if !fs::symlink_metadata(path).map_err(io)?.is_file() {
            return Err(corrupt(Corruption::Kind));
        }
        let mut bytes = Vec::new();
        File::open(path).map_err(io)?.take(FILE_MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() > FILE_MAX_BYTES {
            return Err(corrupt(Corruption::TooLong));
        }
        let Some((frame, ancestry)) = parts_of_file(&bytes) else {
            return Err(corrupt(Corruption::Checksum));
        };
        let (end, ancestry) = (frame.len(), ancestry.to_vec());
        bytes.truncate(end);
        let request = Request::from_frame(bytes).map_err(|why| match why {
            FrameError::Version { found } => SpoolError::Newer { path: path.to_owned(), version: found },
            FrameError::Magic
            | FrameError::Length { .. }
            | FrameError::Short { .. }
            | FrameError::Long { .. }
            | FrameError::Argv => corrupt(Corruption::Frame(why)),
        })?;
        Ok(Event { request, ancestry })
    }

    /// Removes an event that is durable elsewhere; one that is gone already is no error.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Moves an unusable file to `bad/`, or deletes it when there are [`BAD_MAX_FILES`] already.
    ///
    /// # Errors
    /// When it can be neither moved nor deleted; it then stays where it is.
    pub fn set_aside(&self, path: &Path) -> io::Result<()> {
        let bad = self.directory.join("bad");
        create_private(&bad)?;
        let kept = fs::read_dir(&bad)?.take(BAD_MAX_FILES).count();
        match path.file_name() {
            Some(name) if kept < BAD_MAX_FILES => fs::rename(path, bad.join(name)),
            _ => fs::remove_file(path),
        }
    }

    /// Takes the number of events that hooks dropped since the last call.
    ///
    /// # Errors
    /// When the count cannot be read or reset. Hooks that drop an event in this very moment may go uncounted.
    pub fn take_dropped(&self) -> io::Result<u64> {
        let path = self.directory.join(DROPPED_FILE);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
            Ok(meta) => {
                fs::remove_file(&path)?;
                Ok(meta.len().min(DROPPED_MAX))
            }
        }
    }

    /// Deletes half-written files of hooks that were killed; returns how many.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn sweep_temporary(&self, now: SystemTime) -> io::Result<usize> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut swept = 0;
        for entry in entries.take(LISTING_MAX_ENTRIES) {
            let entry = entry?;
            let old = entry
                .metadata()
                .and_then(|meta| meta.modified())
                .is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age > TEMPORARY_MAX_AGE));
            let temporary = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes());
            if old && temporary && fs::remove_file(entry.path()).is_ok() {
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Writes one frame and who sent it (a finished block, or nothing), making room by the rules of [`Census`]. Creates the
    /// directory for the owner only. Does not sync.
    ///
    /// # Errors
    /// When the frame is none (`InvalidData`) or the file cannot be written; nothing is left behind then.
    pub fn write(&self, frame: &[u8], ancestry: &[u8]) -> io::Result<Spooled> {
        let view =
            RequestRef::parse(frame).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let name = SpoolName::new(
            &view.head,
            EventClass::of(view.event),
            frame.len() + ancestry.len() + TRAILER_BYTES,
        );
        create_private(&self.directory)?;
        if !self.make_room(&name)? {
            self.count_dropped()?;
            return Ok(Spooled::Dropped);
        }
        let temporary = self.directory.join(format!("{TEMPORARY_PREFIX}{:032x}", name.delivery));
        let path = self.path_of(&name);
        let written = create_new_private(&temporary).and_then(|mut file| {
            file.write_all(frame)?;
            file.write_all(ancestry)?;
            file.write_all(&trailer(frame, ancestry))?;
            fs::rename(&temporary, &path)?;
            Ok(file)
        });
        let file = written.inspect_err(|_| {
            // The first error is the one to report; a file left behind is swept by its age.
            drop(fs::remove_file(&temporary));
        })?;
        Ok(Spooled::Written { path, file })
    }

    fn make_room(&self, new: &SpoolName) -> io::Result<bool> {
        for _ in 0..=EVICTIONS_MAX {
            let mut census = Census::default();
            for entry in fs::read_dir(&self.directory)?.take(LISTING_MAX_ENTRIES) {
                census.see(entry?.file_name().as_encoded_bytes());
            }
            match census.room_for(new) {
                Room::Free => return Ok(true),
                Room::None => return Ok(false),
                Room::After(oldest) => {
                    Self::remove(&self.path_of(&oldest))?;
                    self.count_dropped()?;
                }
            }
        }
        Ok(false)
    }

    fn count_dropped(&self) -> io::Result<()> {
        let mut file =
            OpenOptions::new().create(true).append(true).open(self.directory.join(DROPPED_FILE))?;
        if file.metadata()?.len() < DROPPED_MAX {
            file.write_all(b"x")?;
        }
        Ok(())
    }

    fn path_of(&self, name: &SpoolName) -> PathBuf {
        let name = name.write();
        self.directory.join(String::from_utf8_lossy(&name).as_ref())
    }
}

fn create_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn create_new_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests;
