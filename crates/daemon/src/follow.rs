//! Follows transcripts and state files: kernel notices say that something changed, offsets say what is new. Reads files and
//! hands bytes to the adapters; what they mean is not known here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use watchkeeper_agents::{Adapter, AdapterRef, Adapters, LineScanner, Parsed, StateFile, TranscriptReader};
use watchkeeper_core::{AgentKind, SessionKey};
use watchkeeper_store::{Cursor, FileIdentity};

use crate::{delivery, file_notices::FileNotices, intake::SESSION_ID_BYTES, watched_folders::WatchedFolders};

/// Bytes of one transcript read in one turn; a longer growth is read in further turns, so that one file cannot starve the rest.
const TURN_BYTES: usize = 1 << 20;
/// Read at once at most: most lines come in one piece then.
const READ_BYTES: usize = 256 << 10;
/// What most lines fit in.
const READ_BYTES_MIN: usize = 4 << 10;
/// Growth of a transcript after which its cursor is worth storing again. A restart that follows a crash reads so much once more,
/// and what it says is known by its delivery ids.
const CURSOR_BYTES: u64 = 1 << 20;
/// The first sight of a longer file starts this far before its end.
const FIRST_SIGHT_BYTES: u64 = 4 << 20;
/// Transcripts followed at once; further ones are not followed and counted.
const FOLLOWED_MAX: usize = 2048;
/// By so much of its first line a content of a transcript is told from the one that was there before.
const REWRITE_BYTES: u64 = 4 << 10;
/// State files are small; a larger one is none.
const STATE_FILE_BYTES: u64 = 64 << 10;
/// Files looked at in one state folder, and sessions that are remembered by them.
const STATE_FILES_MAX: usize = 4096;
/// State folders watched at once, each of one home of an agent. The files in a further one are only looked at when a session
/// beside them comes to be followed.
const STATE_FOLDERS_MAX: usize = 64;

/// What came of looking at one transcript.
#[derive(Debug)]
pub(crate) struct Growth {
    pub key: SessionKey,
    pub path: PathBuf,
    pub identity: FileIdentity,
    /// Tells the contents apart that this path had one after the other: zero for the first.
    pub rewrite: u64,
    pub parsed: Parsed,
    /// Lines that begin before this were in the file before this daemon looked: what they say may be old.
    pub backlog_end: u64,
    /// There is more to read: look again.
    pub more: bool,
}

/// What a state file says.
#[derive(Debug)]
pub(crate) struct Stated {
    pub agent: watchkeeper_core::AgentKind,
    pub path: PathBuf,
    pub content: Option<Vec<u8>>,
    pub file: StateFile,
}

struct Followed {
    key: SessionKey,
    path: PathBuf,
    identity: Option<FileIdentity>,
    offset: u64,
    scanner: LineScanner,
    /// Tells the first line of this content; unknown while that is not complete.
    first_line: Option<u64>,
    rewrite: u64,
    /// `rewrite` is still the number of the content before this one, whose first line is not complete yet.
    is_unnumbered: bool,
    /// What is before this was there at the first look; unknown before that.
    backlog_end: Option<u64>,
    reader: Box<dyn TranscriptReader>,
    /// What the store has of it.
    stored: Option<Stored>,
    /// The state folders that it is counted in.
    state_folders: Vec<PathBuf>,
    /// A file that cannot be followed is said once.
    complained: bool,
}

/// So much of a cursor as tells whether it is worth storing again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stored {
    identity: FileIdentity,
    first_line: Option<u64>,
    rewrite: u64,
    line_start: u64,
}

/// A folder of state files, for as long as a session beside it is followed.
struct StateFolder {
    adapter: AdapterRef,
    by: usize,
}

/// All followed files. Everything blocks only for reads of local files.
pub(crate) struct Follower {
    folders: WatchedFolders,
    /// Folders that are watched for as long as the daemon runs.
    kept_folders: BTreeSet<PathBuf>,
    followed: BTreeMap<SessionKey, Followed>,
    /// Whose transcript has which path.
    by_path: BTreeMap<PathBuf, BTreeSet<SessionKey>>,
    state_folders: BTreeMap<PathBuf, StateFolder>,
    /// The session that each state file named when it was read: its removal has no content that could.
    state_sessions: BTreeMap<PathBuf, String>,
    /// State files that were there and could not be read, since this was taken last.
    unread_state_files: u64,
    /// That there are too many state folders was said.
    complained: bool,
    cursors: BTreeMap<(SessionKey, PathBuf), Cursor>,
    adapters: Adapters,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("followed", &self.followed.len()).finish_non_exhaustive()
    }
}

impl Follower {
    #[must_use]
    pub(crate) fn new(notices: FileNotices, cursors: Vec<Cursor>) -> Self {
        let cursors = cursors.into_iter().map(|c| ((c.key.clone(), c.path.clone()), c)).collect();
        Self {
            folders: WatchedFolders::new(notices),
            kept_folders: BTreeSet::new(),
            followed: BTreeMap::new(),
            by_path: BTreeMap::new(),
            state_folders: BTreeMap::new(),
            state_sessions: BTreeMap::new(),
            unread_state_files: 0,
            complained: false,
            cursors,
            adapters: Adapters::default(),
        }
    }

    /// Other adapters are in force. What declared agents wrote is read on by what their files say now.
    pub(crate) fn use_adapters(&mut self, adapters: Adapters) {
        self.adapters = adapters;
        for followed in self.followed.values_mut() {
            if !matches!(followed.key.agent, AgentKind::Declared(_)) {
                continue;
            }
            let adapter = self.adapters.get(followed.key.agent);
            if let Some(reader) = adapter.and_then(|adapter| adapter.transcript(&followed.key.id, None)) {
                followed.reader = reader;
            }
        }
    }

    /// Whether something happens unnoticed, so that everything must be looked at now and then.
    #[must_use]
    pub(crate) fn is_blind(&self) -> bool {
        self.folders.is_blind()
    }

    /// Tries again what could not be watched; what happened there must be looked at.
    pub(crate) fn retry(&mut self) {
        self.folders.retry();
    }

    /// Watches a folder for the caller's own purposes, for good. The caller has few.
    pub(crate) fn keep_watching(&mut self, folder: &Path) {
        if self.kept_folders.insert(folder.to_owned()) {
            self.folders.need(folder);
        } else {
            self.folders.find(folder);
        }
    }

    /// Watched folders that were touched themselves may be others by now, or gone: they are watched anew, or what is left
    /// above them.
    pub(crate) fn watch_again(&mut self, touched: &BTreeSet<PathBuf>) {
        self.folders.touched(touched);
    }

    /// Follows the transcript of a session, from where it was left, and its agent's state files. Returns whether it is followed.
    pub(crate) fn follow(&mut self, key: &SessionKey, path: &Path) -> bool {
        let Some(adapter) = self.adapters.get(key.agent) else { return false };
        if self.followed.get(key).is_some_and(|f| f.path == path) {
            return true;
        }
        // Nobody says what another path is relative to.
        let is_known = self.followed.contains_key(key);
        if !path.is_absolute() || (self.followed.len() >= FOLLOWED_MAX && !is_known) {
            return false;
        }
        let cursor = self.cursors.remove(&(key.clone(), path.to_owned()));
        let saved: Option<Saved> = cursor.as_ref().and_then(|c| serde_json::from_str(&c.state_json).ok());
        let state = saved.as_ref().map(|s| &s.reader);
        let Some(reader) = adapter.transcript(&key.id, state) else { return false };
        self.unfollow(key);
        if let Some(folder) = path.parent() {
            self.folders.need(folder);
        }
        let followed = Followed {
            key: key.clone(),
            path: path.to_owned(),
            identity: cursor.as_ref().map(|c| c.file),
            offset: cursor.as_ref().map_or(0, |c| c.offset),
            scanner: LineScanner::at(cursor.as_ref().map_or(0, |c| c.offset)),
            first_line: saved.as_ref().and_then(|s| s.first_line),
            rewrite: saved.as_ref().map_or(0, |s| s.rewrite),
            is_unnumbered: false,
            backlog_end: None,
            reader,
            stored: None,
            state_folders: self.need_state_folders(&adapter, path),
            complained: false,
        };
        self.by_path.entry(path.to_owned()).or_default().insert(key.clone());
        self.followed.insert(key.clone(), followed);
        true
    }

    /// Stops following; the cursor is the caller's to delete.
    pub(crate) fn unfollow(&mut self, key: &SessionKey) {
        let Some(gone) = self.followed.remove(key) else { return };
        if let Some(at_path) = self.by_path.get_mut(&gone.path) {
            at_path.remove(key);
            if at_path.is_empty() {
                self.by_path.remove(&gone.path);
            }
        }
        if let Some(folder) = gone.path.parent() {
            self.folders.release(folder);
        }
        for folder in &gone.state_folders {
            let Some(known) = self.state_folders.get_mut(folder) else { continue };
            known.by -= 1;
            if known.by == 0 {
                self.state_folders.remove(folder);
                self.state_sessions.retain(|file, _| file.parent() != Some(folder));
                self.folders.release(folder);
            }
        }
    }

    /// The state folders beside a transcript, each once, for which there is room.
    fn need_state_folders(&mut self, adapter: &AdapterRef, transcript: &Path) -> Vec<PathBuf> {
        let beside = transcript.to_str().map(|text| adapter.state_dirs(text)).unwrap_or_default();
        let mut needed = Vec::new();
        for folder in beside.into_iter().map(PathBuf::from).collect::<BTreeSet<_>>() {
            if let Some(known) = self.state_folders.get_mut(&folder) {
                known.by += 1;
            } else if self.state_folders.len() < STATE_FOLDERS_MAX {
                self.folders.need(&folder);
                self.state_folders.insert(folder.clone(), StateFolder { adapter: adapter.clone(), by: 1 });
            } else {
                if !std::mem::replace(&mut self.complained, true) {
                    tracing::warn!(folder = %folder.display(), "too many folders of state files; further ones are not watched");
                }
                continue;
            }
            needed.push(folder);
        }
        needed
    }

    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.followed.len()
    }

    /// Looks at one session's transcript; `None` when nothing is new.
    pub(crate) fn look(&mut self, key: &SessionKey) -> Option<Growth> {
        let followed = self.followed.get_mut(key)?;
        if let Some(folder) = followed.path.parent() {
            // It may have come into being only now.
            self.folders.find(folder);
        }
        followed.look(&self.adapters)
    }

    /// The sessions whose transcripts are among these paths or below a folder among them; all of them for an empty set.
    #[must_use]
    pub(crate) fn sessions_at(&self, touched: &BTreeSet<PathBuf>) -> Vec<SessionKey> {
        if touched.is_empty() {
            return self.all_sessions();
        }
        // Paths below a folder stand behind it, without a gap.
        let below = |folder: &'_ PathBuf| {
            let folder = folder.clone();
            self.by_path.range(folder.clone()..).take_while(move |(path, _)| path.starts_with(&folder))
        };
        let hit: BTreeSet<&SessionKey> = touched.iter().flat_map(below).flat_map(|(_, keys)| keys).collect();
        hit.into_iter().cloned().collect()
    }

    #[must_use]
    pub(crate) fn all_sessions(&self) -> Vec<SessionKey> {
        self.followed.keys().cloned().collect()
    }

    /// What the state files among these paths say; all state files for an empty set or when a folder itself was touched.
    pub(crate) fn state_files_at(&mut self, touched: &BTreeSet<PathBuf>) -> Vec<Stated> {
        let folders: Vec<(PathBuf, AdapterRef)> = self
            .state_folders
            .iter()
            .map(|(folder, known)| (folder.clone(), known.adapter.clone()))
            .collect();
        let mut stated = Vec::new();
        for (folder, adapter) in folders {
            if touched.is_empty() || touched.iter().any(|t| folder.starts_with(t)) {
                stated.append(&mut self.state_files_in(&folder, &*adapter));
            } else {
                let files = touched.iter().filter(|t| t.parent() == Some(&folder)).cloned();
                stated.extend(files.filter_map(|path| self.state(&*adapter, path)));
            }
        }
        stated
    }

    /// What all state files beside a session's transcript say.
    pub(crate) fn state_files_of(&mut self, key: &SessionKey) -> Vec<Stated> {
        let Some(adapter) = self.adapters.get(key.agent) else { return Vec::new() };
        let Some(path) = self.followed.get(key).and_then(|f| f.path.to_str()) else { return Vec::new() };
        let folders = adapter.state_dirs(path);
        folders.iter().flat_map(|folder| self.state_files_in(Path::new(folder), &*adapter)).collect()
    }

    /// How many state files could not be read since this was asked last.
    pub(crate) fn take_unread_state_files(&mut self) -> u64 {
        std::mem::take(&mut self.unread_state_files)
    }

    fn state_files_in(&mut self, folder: &Path, adapter: &dyn Adapter) -> Vec<Stated> {
        // It may have come into being only now.
        self.folders.find(folder);
        let listed = std::fs::read_dir(folder).into_iter().flatten().take(STATE_FILES_MAX);
        let mut stated: Vec<Stated> =
            listed.filter_map(|entry| self.state(adapter, entry.ok()?.path())).collect();
        // A removal that nobody announced is known by what was there before.
        let is_gone = |file: &&PathBuf| file.parent() == Some(folder) && is_gone(file);
        let gone: Vec<PathBuf> = self.state_sessions.keys().filter(is_gone).cloned().collect();
        stated.extend(gone.into_iter().filter_map(|path| self.state(adapter, path)));
        stated
    }

    fn state(&mut self, adapter: &dyn Adapter, path: PathBuf) -> Option<Stated> {
        let content = match read_small(&path) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // Whatever it says now, it is not known to be gone.
            Err(_) => {
                let is_one = adapter.state_file(path.file_name()?.to_str()?, None).is_some();
                self.unread_state_files += u64::from(is_one);
                return None;
            }
        };
        let mut file = adapter.state_file(path.file_name()?.to_str()?, content.as_deref())?;
        let session = &mut file.observation.session;
        match (&content, &session) {
            (None, _) => *session = session.take().or(self.state_sessions.remove(&path)),
            (Some(_), Some(id))
                if id.len() <= SESSION_ID_BYTES
                    && (self.state_sessions.len() < STATE_FILES_MAX
                        || self.state_sessions.contains_key(&path)) =>
            {
                self.state_sessions.insert(path.clone(), id.clone());
            }
            (Some(_), _) => {}
        }
        Some(Stated { agent: adapter.kind(), path, content, file })
    }

    /// How far a session's transcript was read, if the store should know it: a cursor that is only a little behind is as good,
    /// and storing one for each line costs more than reading it.
    #[must_use]
    pub(crate) fn cursor_to_store(&mut self, key: &SessionKey) -> Option<Cursor> {
        let followed = self.followed.get_mut(key).filter(|followed| followed.is_worth_storing())?;
        let cursor = followed.cursor()?;
        followed.stored = followed.to_store();
        Some(cursor)
    }

    #[cfg(test)]
    pub(crate) fn cursor(&self, key: &SessionKey) -> Option<Cursor> {
        self.followed.get(key)?.cursor()
    }

    /// The cursors that the store does not have as they are.
    pub(crate) fn cursors_behind(&self) -> impl Iterator<Item = Cursor> {
        self.followed
            .values()
            .filter(|followed| followed.stored != followed.to_store())
            .filter_map(Followed::cursor)
    }
}

impl Followed {
    /// `None` for what has no number yet: it said nothing, and where the content before was left leads to the same number.
    fn to_store(&self) -> Option<Stored> {
        Some(Stored {
            identity: self.identity.filter(|_| !self.is_unnumbered)?,
            first_line: self.first_line,
            rewrite: self.rewrite,
            line_start: self.line_start(),
        })
    }

    fn is_worth_storing(&self) -> bool {
        let (Some(stored), Some(now)) = (self.stored, self.to_store()) else { return true };
        let line_start = stored.line_start;
        stored != Stored { line_start, ..now } || now.line_start.abs_diff(line_start) >= CURSOR_BYTES
    }

    fn cursor(&self) -> Option<Cursor> {
        let Stored { identity, line_start, .. } = self.to_store()?;
        Some(Cursor {
            key: self.key.clone(),
            path: self.path.clone(),
            file: identity,
            offset: line_start,
            state_json: serde_json::to_string(&Saved {
                first_line: self.first_line,
                rewrite: self.rewrite,
                reader: self.reader.save(),
            })
            .ok()?,
        })
    }

    /// Where the line begins that is not complete yet.
    fn line_start(&self) -> u64 {
        self.offset.saturating_sub(self.scanner.pending())
    }

    fn look(&mut self, adapters: &Adapters) -> Option<Growth> {
        let (mut file, identity, length) = match open_regular(&self.path) {
            Ok(opened) => opened,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound && !self.complained {
                    tracing::warn!(%error, session = %self.key, "the transcript cannot be followed");
                    self.complained = true;
                }
                return None;
            }
        };
        // What cannot be read here would not be read below either.
        let first_line = first_line(&mut file).ok()?;
        self.place(identity, length, first_line.as_deref(), adapters);
        let backlog_end = *self.backlog_end.get_or_insert(length);
        if length <= self.offset || self.is_unnumbered {
            return None;
        }
        file.seek(SeekFrom::Start(self.offset)).ok()?;
        let mut parsed = Parsed::default();
        let mut buffer = Vec::new();
        let (mut taken, mut has_failed) = (0, false);
        while taken < TURN_BYTES {
            buffer.clear();
            let left = usize::try_from(length.saturating_sub(self.offset)).unwrap_or(READ_BYTES);
            // What was appended meanwhile is read along, unless it is much.
            buffer.reserve_exact(left.clamp(READ_BYTES_MIN, READ_BYTES));
            let room = buffer.capacity();
            match file.by_ref().take(room as u64).read_to_end(&mut buffer) {
                Ok(read) => {
                    self.scanner.push(&buffer, self.reader.as_mut(), &mut parsed);
                    self.offset += read as u64;
                    taken += read;
                    if read < room {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, session = %self.key, "reading the transcript failed");
                    has_failed = true;
                    break;
                }
            }
        }
        // What failed is tried again when the file is touched or the next reconcile is due, not at once.
        let more = self.offset < length && !has_failed;
        Some(Growth {
            key: self.key.clone(),
            path: self.path.clone(),
            identity,
            rewrite: self.rewrite,
            parsed,
            backlog_end,
            more,
        })
    }

    /// Sets the offset for this content: one that began anew is read anew, a long one at first sight from near its end.
    fn place(&mut self, identity: FileIdentity, length: u64, first_line: Option<&[u8]>, adapters: &Adapters) {
        let known = self.identity.replace(identity);
        let tells = first_line.map(|line| delivery::content_number(0, line));
        let is_same_beginning = self.first_line.is_none() || self.first_line == tells;
        self.first_line = tells;
        if known != Some(identity) || length < self.offset || !is_same_beginning {
            self.begin_anew(known.is_some(), length, adapters);
        }
        // Other words at the places of old ones would be taken for those, also in another file: one that is replaced again and
        // again may get its former inode back. It waits for the whole first line: after a crash before the cursor is stored the
        // same content must find the same number.
        if let Some(line) = first_line.filter(|_| self.is_unnumbered) {
            self.rewrite = delivery::content_number(self.rewrite, line);
            self.is_unnumbered = false;
        }
    }

    fn begin_anew(&mut self, after_another: bool, length: u64, adapters: &Adapters) {
        self.scanner = LineScanner::new();
        self.offset = 0;
        if after_another {
            self.backlog_end = None;
            self.is_unnumbered = true;
            // What it remembers is of lines that are gone; those that stayed are read again.
            let fresh = adapters.get(self.key.agent).and_then(|a| a.transcript(&self.key.id, None));
            if let Some(reader) = fresh {
                self.reader = reader;
            }
        } else if length > FIRST_SIGHT_BYTES {
            // One byte earlier: should a line begin right there, its newline is seen and the line is read.
            self.offset = length - FIRST_SIGHT_BYTES - 1;
            self.scanner = LineScanner::inside_a_line(self.offset);
        }
    }
}

/// What is stored of a followed transcript beside its offset.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    /// Earlier versions stored none.
    #[serde(default)]
    first_line: Option<u64>,
    rewrite: u64,
    reader: serde_json::Value,
}

/// The beginning of a file's first line, without its end; `None` while that line is not complete.
fn first_line(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut beginning = Vec::new();
    let read = file.take(REWRITE_BYTES).read_to_end(&mut beginning)?;
    if let Some(end) = beginning.iter().position(|byte| *byte == b'\n') {
        beginning.truncate(end);
        return Ok(Some(beginning));
    }
    Ok((read as u64 == REWRITE_BYTES).then_some(beginning))
}

/// Opens a regular file of our own user; a FIFO, a folder or somebody else's file is refused without blocking.
pub(crate) fn open_regular(path: &Path) -> io::Result<(File, FileIdentity, u64)> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    #[cfg(unix)]
    let identity = {
        use std::os::unix::fs::MetadataExt as _;
        if !is_trusted(metadata.uid(), rustix::process::geteuid().as_raw()) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "owned by another user"));
        }
        FileIdentity { device: metadata.dev(), inode: metadata.ino() }
    };
    #[cfg(not(unix))]
    let identity = {
        // The creation time tells a replaced file; the file index is not in stable std.
        let created = metadata.created().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        FileIdentity {
            device: 0,
            inode: created.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
        }
    };
    Ok((file, identity, metadata.len()))
}

/// Whether what a file of `owner` says is believed by a daemon of `own`: the system's word counts as one's own.
#[cfg(unix)]
const fn is_trusted(owner: u32, own: u32) -> bool {
    const ROOT: u32 = 0;
    owner == own || owner == ROOT
}

/// Whether it is known that nothing has this name.
fn is_gone(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// # Errors
/// `NotFound` when there is no such file; another when it cannot be read, is no state file, or is too large for one.
fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let (file, _, length) = open_regular(path)?;
    let mut content = Vec::new();
    file.take(STATE_FILE_BYTES + 1).read_to_end(&mut content)?;
    if length > STATE_FILE_BYTES || content.len() as u64 > STATE_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large for a state file"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests;
