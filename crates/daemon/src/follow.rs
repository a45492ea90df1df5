//! Follows transcripts and state files: kernel notices say that something changed, offsets say what is new. Reads files and
//! hands bytes to the adapters; what they mean is not known here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use watchkeeper_agents::{Adapter, LineScanner, Parsed, StateFile, TranscriptReader};
use watchkeeper_core::SessionKey;
use watchkeeper_store::{Cursor, FileIdentity};

/// Bytes of one transcript read in one turn; a longer growth is read in further turns, so that one file cannot starve the rest.
const TURN_BYTES: usize = 1 << 20;
/// Read at once.
const READ_BYTES: usize = 64 << 10;
/// The first sight of a longer file starts this far before its end.
const FIRST_SIGHT_BYTES: u64 = 4 << 20;
/// Transcripts followed at once; further ones are not followed and counted.
const FOLLOWED_MAX: usize = 2048;
/// State files are small; a larger one is none.
const STATE_FILE_BYTES: u64 = 64 << 10;
/// Files looked at in one state folder.
const STATE_FILES_MAX: usize = 4096;

/// What came of looking at one transcript.
#[derive(Debug)]
pub(crate) struct Growth {
    pub key: SessionKey,
    pub path: PathBuf,
    pub identity: FileIdentity,
    /// Where the line began that the first observation comes from: the same after a restart, however the bytes were cut into
    /// reads.
    pub from_offset: u64,
    pub parsed: Parsed,
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
    reader: Box<dyn TranscriptReader>,
    /// A file that cannot be followed is said once.
    complained: bool,
}

/// All followed files. Everything blocks only for reads of local files.
pub(crate) struct Follower {
    watcher: Option<RecommendedWatcher>,
    /// Folders watched, and how many followed things need each.
    folders: BTreeSet<PathBuf>,
    followed: BTreeMap<SessionKey, Followed>,
    state_folders: BTreeMap<PathBuf, &'static dyn Adapter>,
    cursors: BTreeMap<(SessionKey, PathBuf), Cursor>,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("followed", &self.followed.len()).finish_non_exhaustive()
    }
}

impl Follower {
    /// `touched` is called from the watcher's own thread with the paths that changed; an empty set means "look at everything",
    /// after the kernel's queue overflowed.
    #[must_use]
    pub(crate) fn new(touched: impl Fn(BTreeSet<PathBuf>) + Send + 'static, cursors: Vec<Cursor>) -> Self {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => touched(BTreeSet::new()),
            Ok(event) if event.kind.is_access() => {}
            Ok(event) => touched(event.paths.into_iter().collect()),
            Err(error) => {
                tracing::warn!(%error, "file notices failed");
                touched(BTreeSet::new());
            }
        });
        let watcher = watcher
            .inspect_err(
                |error| tracing::warn!(%error, "no file notices; transcripts are looked at with each hook"),
            )
            .ok();
        let cursors = cursors.into_iter().map(|c| ((c.key.clone(), c.path.clone()), c)).collect();
        Self {
            watcher,
            folders: BTreeSet::new(),
            followed: BTreeMap::new(),
            state_folders: BTreeMap::new(),
            cursors,
        }
    }

    /// Watches a folder for the caller's own purposes.
    pub(crate) fn watch_folder(&mut self, folder: &Path) {
        if self.folders.contains(folder) {
            return;
        }
        let Some(watcher) = &mut self.watcher else { return };
        // A folder that does not exist yet is announced by its nearest ancestor that does.
        let existing = folder.ancestors().find(|f| f.is_dir());
        let Some(existing) = existing else { return };
        match watcher.watch(existing, RecursiveMode::NonRecursive) {
            Ok(()) => _ = self.folders.insert(existing.to_owned()),
            Err(error) => tracing::warn!(%error, folder = %existing.display(), "cannot watch a folder"),
        }
    }

    /// Watched folders that were touched themselves may be others by now, or gone: they are watched anew, or what is left
    /// above them.
    pub(crate) fn watch_again(&mut self, touched: &BTreeSet<PathBuf>) {
        let again: Vec<PathBuf> =
            self.folders.iter().filter(|f| touched.is_empty() || touched.contains(*f)).cloned().collect();
        for folder in again {
            self.folders.remove(&folder);
            self.watch_folder(&folder);
        }
    }

    /// Follows the transcript of a session, from where it was left, and its agent's state files. Returns whether it is followed.
    pub(crate) fn follow(&mut self, key: &SessionKey, path: &Path) -> bool {
        let Some(adapter) = watchkeeper_agents::adapter(key.agent) else { return false };
        if let Some(text) = path.to_str() {
            for folder in adapter.state_dirs(text) {
                let folder = PathBuf::from(folder);
                self.watch_folder(&folder);
                self.state_folders.entry(folder).or_insert(adapter);
            }
        }
        if self.followed.get(key).is_some_and(|f| f.path == path) {
            return true;
        }
        if self.followed.len() >= FOLLOWED_MAX && !self.followed.contains_key(key) {
            return false;
        }
        let cursor = self.cursors.remove(&(key.clone(), path.to_owned()));
        let saved = cursor.as_ref().and_then(|c| serde_json::from_str(&c.state_json).ok());
        let Some(reader) = adapter.transcript(&key.id, saved.as_ref()) else { return false };
        if let Some(folder) = path.parent() {
            self.watch_folder(folder);
        }
        let followed = Followed {
            key: key.clone(),
            path: path.to_owned(),
            identity: cursor.as_ref().map(|c| c.file),
            offset: cursor.as_ref().map_or(0, |c| c.offset),
            scanner: LineScanner::new(),
            reader,
            complained: false,
        };
        self.followed.insert(key.clone(), followed);
        true
    }

    /// Stops following; the cursor is the caller's to delete.
    pub(crate) fn unfollow(&mut self, key: &SessionKey) {
        self.followed.remove(key);
    }

    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.followed.len()
    }

    /// Looks at one session's transcript; `None` when nothing is new.
    pub(crate) fn look(&mut self, key: &SessionKey) -> Option<Growth> {
        let path = self.followed.get(key)?.path.clone();
        if let Some(folder) = path.parent() {
            self.watch_folder(folder);
        }
        self.followed.get_mut(key)?.look()
    }

    /// The sessions whose transcripts are among these paths or below a folder among them; all of them for an empty set.
    #[must_use]
    pub(crate) fn sessions_at(&self, touched: &BTreeSet<PathBuf>) -> Vec<SessionKey> {
        let hit = |f: &&Followed| touched.is_empty() || touched.iter().any(|t| f.path.starts_with(t));
        self.followed.values().filter(hit).map(|f| f.key.clone()).collect()
    }

    #[must_use]
    pub(crate) fn all_sessions(&self) -> Vec<SessionKey> {
        self.followed.keys().cloned().collect()
    }

    /// What the state files among these paths say; all state files for an empty set or when a folder itself was touched.
    pub(crate) fn state_files_at(&mut self, touched: &BTreeSet<PathBuf>) -> Vec<Stated> {
        let folders: Vec<(PathBuf, &'static dyn Adapter)> =
            self.state_folders.iter().map(|(folder, adapter)| (folder.clone(), *adapter)).collect();
        let mut stated = Vec::new();
        for (folder, adapter) in folders {
            if touched.is_empty() || touched.iter().any(|t| folder.starts_with(t)) {
                stated.append(&mut self.state_files_in(&folder, adapter));
            } else {
                let files = touched.iter().filter(|t| t.parent() == Some(&folder)).cloned();
                stated.extend(files.filter_map(|path| state(adapter, path)));
            }
        }
        stated
    }

    /// What all state files beside a session's transcript say.
    pub(crate) fn state_files_of(&mut self, key: &SessionKey) -> Vec<Stated> {
        let Some(adapter) = watchkeeper_agents::adapter(key.agent) else { return Vec::new() };
        let Some(path) = self.followed.get(key).and_then(|f| f.path.to_str()) else { return Vec::new() };
        let folders = adapter.state_dirs(path);
        folders.iter().flat_map(|folder| self.state_files_in(Path::new(folder), adapter)).collect()
    }

    fn state_files_in(&mut self, folder: &Path, adapter: &dyn Adapter) -> Vec<Stated> {
        // The folder may have come into being only now.
        self.watch_folder(folder);
        let listed = std::fs::read_dir(folder).into_iter().flatten().take(STATE_FILES_MAX);
        listed.filter_map(|entry| state(adapter, entry.ok()?.path())).collect()
    }

    /// How far a session's transcript was read, to be stored.
    #[must_use]
    pub(crate) fn cursor(&self, key: &SessionKey) -> Option<Cursor> {
        let followed = self.followed.get(key)?;
        Some(Cursor {
            key: key.clone(),
            path: followed.path.clone(),
            file: followed.identity?,
            offset: followed.line_start(),
            state_json: followed.reader.save().to_string(),
        })
    }
}

impl Followed {
    /// Where the line begins that is not complete yet.
    fn line_start(&self) -> u64 {
        self.offset.saturating_sub(self.scanner.pending())
    }

    fn look(&mut self) -> Option<Growth> {
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
        self.place(identity, length);
        if length <= self.offset {
            return None;
        }
        file.seek(SeekFrom::Start(self.offset)).ok()?;
        let from_offset = self.line_start();
        let mut parsed = Parsed::default();
        let mut buffer = vec![0; READ_BYTES];
        let mut taken = 0;
        while taken < TURN_BYTES {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    self.scanner.push(buffer.get(..read)?, self.reader.as_mut(), &mut parsed);
                    self.offset += read as u64;
                    taken += read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::warn!(%error, session = %self.key, "reading the transcript failed");
                    break;
                }
            }
        }
        let more = self.offset < length;
        Some(Growth { key: self.key.clone(), path: self.path.clone(), identity, from_offset, parsed, more })
    }

    /// Sets the offset for this file: another file or a shorter one is read anew, a long one at first sight from near its end.
    fn place(&mut self, identity: FileIdentity, length: u64) {
        let known = self.identity.replace(identity);
        if known == Some(identity) && length >= self.offset {
            return;
        }
        self.scanner = LineScanner::new();
        self.offset = match known {
            None => length.saturating_sub(FIRST_SIGHT_BYTES),
            Some(_) => 0,
        };
    }
}

/// Opens a regular file of our own user; a FIFO, a folder or somebody else's file is refused without blocking.
fn open_regular(path: &Path) -> io::Result<(File, FileIdentity, u64)> {
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
        let own = rustix::process::geteuid().as_raw();
        if metadata.uid() != own && metadata.uid() != 0 {
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

fn state(adapter: &dyn Adapter, path: PathBuf) -> Option<Stated> {
    let content = read_small(&path);
    let file = adapter.state_file(path.file_name()?.to_str()?, content.as_deref())?;
    Some(Stated { agent: adapter.kind(), path, content, file })
}

fn read_small(path: &Path) -> Option<Vec<u8>> {
    let (file, _, length) = open_regular(path).ok()?;
    if length > STATE_FILE_BYTES {
        return None;
    }
    let mut content = Vec::new();
    file.take(STATE_FILE_BYTES).read_to_end(&mut content).ok()?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use watchkeeper_core::AgentKind;

    const PROMPT: &str = concat!(
        r#"{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","#,
        r#""message":{"role":"user","content":"hello"}}"#
    );

    fn add(path: &Path, text: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn follower(path: &Path, cursors: Vec<Cursor>) -> (Follower, SessionKey) {
        let key = SessionKey::new(AgentKind::Claude, "s");
        let mut follower = Follower::new(|_| {}, cursors);
        assert!(follower.follow(&key, path));
        (follower, key)
    }

    #[test]
    fn a_line_begins_at_the_same_place_however_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let (head, rest) = PROMPT.split_at(20);
        add(&path, &format!("{PROMPT}\n{head}"));
        let (mut torn, key) = follower(&path, Vec::new());
        assert_eq!(torn.look(&key).map(|g| g.from_offset), Some(0));
        let saved = torn.cursor(&key).unwrap();
        add(&path, &format!("{rest}\n"));
        let begins = Some(PROMPT.len() as u64 + 1);
        assert_eq!(torn.look(&key).map(|g| g.from_offset), begins, "in two reads");
        // The rows of that look were stored, its cursor was not: the next life reads it again, as the same.
        let (mut whole, key) = follower(&path, vec![saved]);
        assert_eq!(whole.look(&key).map(|g| g.from_offset), begins, "in one read");
        assert!(whole.look(&key).is_none());
    }

    #[test]
    fn a_folder_that_went_and_came_again_is_watched_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("in");
        let (told, notices) = std::sync::mpsc::channel();
        let mut follower = Follower::new(move |paths| _ = told.send(paths), Vec::new());
        std::fs::create_dir(&folder).unwrap();
        follower.watch_folder(&folder);
        std::fs::remove_dir(&folder).unwrap();
        let limit = std::time::Duration::from_secs(20);
        while !notices.recv_timeout(limit).unwrap().contains(&folder) {}
        std::fs::create_dir(&folder).unwrap();
        follower.watch_again(&BTreeSet::from([folder.clone()]));
        std::fs::write(folder.join("new"), "x").unwrap();
        while !notices.recv_timeout(limit).unwrap().contains(&folder.join("new")) {}
    }
}
