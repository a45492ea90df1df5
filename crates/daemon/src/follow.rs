//! Follows transcripts and state files: kernel notices say that something changed, offsets say what is new. Reads files and
//! hands bytes to the adapters; what they mean is not known here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use serde::{Deserialize, Serialize};
use watchkeeper_agents::{Adapter, AdapterRef, Adapters, LineScanner, Parsed, StateFile, TranscriptReader};
use watchkeeper_core::{AgentKind, SessionKey};
use watchkeeper_store::{Cursor, FileIdentity};

use crate::intake::SESSION_ID_BYTES;

/// Bytes of one transcript read in one turn; a longer growth is read in further turns, so that one file cannot starve the rest.
const TURN_BYTES: usize = 1 << 20;
/// Read at once.
const READ_BYTES: usize = 64 << 10;
/// The first sight of a longer file starts this far before its end.
const FIRST_SIGHT_BYTES: u64 = 4 << 20;
/// Transcripts followed at once; further ones are not followed and counted.
const FOLLOWED_MAX: usize = 2048;
/// By so much of its first line the content of a rewritten transcript is told from what was there before.
const REWRITE_BYTES: u64 = 4 << 10;
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
    /// Tells the contents apart that one file had, when it was rewritten in place: zero for the first.
    pub rewrite: u64,
    pub parsed: Parsed,
    /// It was in the file before this daemon looked: what it says may be old.
    pub backlog: bool,
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
    rewrite: u64,
    /// What is before this was there at the first look; unknown before that.
    backlog_end: Option<u64>,
    reader: Box<dyn TranscriptReader>,
    /// A file that cannot be followed is said once.
    complained: bool,
}

/// All followed files. Everything blocks only for reads of local files.
pub(crate) struct Follower {
    watcher: Option<RecommendedWatcher>,
    /// Folders watched.
    folders: BTreeSet<PathBuf>,
    /// Folders that are watched for as long as the daemon runs.
    kept_folders: BTreeSet<PathBuf>,
    followed: BTreeMap<SessionKey, Followed>,
    state_folders: BTreeMap<PathBuf, AdapterRef>,
    /// The session that each state file named when it was read: its removal has no content that could.
    state_sessions: BTreeMap<PathBuf, String>,
    cursors: BTreeMap<(SessionKey, PathBuf), Cursor>,
    adapters: Adapters,
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
            kept_folders: BTreeSet::new(),
            followed: BTreeMap::new(),
            state_folders: BTreeMap::new(),
            state_sessions: BTreeMap::new(),
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

    /// Whether nothing is noticed and everything must be looked at.
    #[must_use]
    pub(crate) const fn is_blind(&self) -> bool {
        self.watcher.is_none()
    }

    /// Watches a folder for the caller's own purposes, for good.
    pub(crate) fn keep_watching(&mut self, folder: &Path) {
        self.kept_folders.insert(folder.to_owned());
        self.watch_folder(folder);
    }

    fn watch_folder(&mut self, folder: &Path) {
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
        let Some(adapter) = self.adapters.get(key.agent) else { return false };
        if let Some(text) = path.to_str() {
            for folder in adapter.state_dirs(text) {
                let folder = PathBuf::from(folder);
                self.keep_watching(&folder);
                self.state_folders.entry(folder).or_insert_with(|| adapter.clone());
            }
        }
        if self.followed.get(key).is_some_and(|f| f.path == path) {
            return true;
        }
        if self.followed.len() >= FOLLOWED_MAX && !self.followed.contains_key(key) {
            return false;
        }
        let cursor = self.cursors.remove(&(key.clone(), path.to_owned()));
        let saved: Option<Saved> = cursor.as_ref().and_then(|c| serde_json::from_str(&c.state_json).ok());
        let state = saved.as_ref().map(|s| &s.reader);
        let Some(reader) = adapter.transcript(&key.id, state) else { return false };
        self.unfollow(key);
        if let Some(folder) = path.parent() {
            self.watch_folder(folder);
        }
        let followed = Followed {
            key: key.clone(),
            path: path.to_owned(),
            identity: cursor.as_ref().map(|c| c.file),
            offset: cursor.as_ref().map_or(0, |c| c.offset),
            scanner: LineScanner::new(),
            rewrite: saved.as_ref().map_or(0, |s| s.rewrite),
            backlog_end: None,
            reader,
            complained: false,
        };
        self.followed.insert(key.clone(), followed);
        true
    }

    /// Stops following; the cursor is the caller's to delete.
    pub(crate) fn unfollow(&mut self, key: &SessionKey) {
        let Some(gone) = self.followed.remove(key) else { return };
        let Some(folder) = gone.path.parent() else { return };
        let is_needed = self.followed.values().any(|f| f.path.parent() == Some(folder))
            || self.kept_folders.iter().any(|kept| kept.starts_with(folder));
        if !is_needed && self.folders.remove(folder) {
            // An error means that the folder went, and its watch with it.
            _ = self.watcher.as_mut().map(|watcher| watcher.unwatch(folder));
        }
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
        let folders: Vec<(PathBuf, AdapterRef)> =
            self.state_folders.iter().map(|(folder, adapter)| (folder.clone(), adapter.clone())).collect();
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

    fn state_files_in(&mut self, folder: &Path, adapter: &dyn Adapter) -> Vec<Stated> {
        // The folder may have come into being only now.
        self.watch_folder(folder);
        let listed = std::fs::read_dir(folder).into_iter().flatten().take(STATE_FILES_MAX);
        listed.filter_map(|entry| self.state(adapter, entry.ok()?.path())).collect()
    }

    fn state(&mut self, adapter: &dyn Adapter, path: PathBuf) -> Option<Stated> {
        let content = read_small(&path);
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

    /// How far a session's transcript was read, to be stored.
    #[must_use]
    pub(crate) fn cursor(&self, key: &SessionKey) -> Option<Cursor> {
        let followed = self.followed.get(key)?;
        Some(Cursor {
            key: key.clone(),
            path: followed.path.clone(),
            file: followed.identity?,
            offset: followed.line_start(),
            state_json: serde_json::to_string(&Saved {
                rewrite: followed.rewrite,
                reader: followed.reader.save(),
            })
            .ok()?,
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
        self.place(&mut file, identity, length);
        let backlog_end = *self.backlog_end.get_or_insert(length);
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
        Some(Growth {
            key: self.key.clone(),
            path: self.path.clone(),
            identity,
            from_offset,
            rewrite: self.rewrite,
            parsed,
            backlog: from_offset < backlog_end,
            more,
        })
    }

    /// Sets the offset for this file: another file or a shorter one is read anew, a long one at first sight from near its end.
    fn place(&mut self, file: &mut File, identity: FileIdentity, length: u64) {
        let known = self.identity.replace(identity);
        if known == Some(identity) && length >= self.offset {
            return;
        }
        self.scanner = LineScanner::new();
        self.offset = 0;
        match known {
            None if length > FIRST_SIGHT_BYTES => {
                // One byte earlier: should a line begin right there, its newline is seen and the line is read.
                self.offset = length - FIRST_SIGHT_BYTES - 1;
                self.scanner = LineScanner::inside_a_line();
            }
            None => {}
            Some(known) => {
                self.backlog_end = None;
                // Other words at the places of old ones would be taken for those; a crash before the cursor is
                // stored must find the same number again.
                self.rewrite = if known == identity { rewritten(self.rewrite, file) } else { 0 };
            }
        }
    }
}

/// What is stored of a followed transcript beside its offset.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    rewrite: u64,
    reader: serde_json::Value,
}

/// The number of the content that follows on content number `before`, told by how it begins.
fn rewritten(before: u64, file: &mut File) -> u64 {
    let mut beginning = Vec::new();
    // What cannot be read here will not be read below either.
    _ = file.take(REWRITE_BYTES).read_to_end(&mut beginning);
    let first_line = beginning.split(|b| *b == b'\n').next().unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (before, first_line).hash(&mut hasher);
    hasher.finish().max(1)
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

    const INTERRUPT: &str = concat!(
        r#"{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","isSidechain":false,"#,
        r#""message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#
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

    #[test]
    fn a_file_rewritten_in_place_is_new_and_the_same_after_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        add(&path, &format!("{PROMPT}\n{PROMPT}\n"));
        let (mut first, key) = follower(&path, Vec::new());
        assert_eq!(first.look(&key).map(|g| (g.from_offset, g.rewrite)), Some((0, 0)));
        let saved = first.cursor(&key).unwrap();
        std::fs::write(&path, format!("{PROMPT}\n")).unwrap();
        let again = first.look(&key).map(|g| (g.from_offset, g.rewrite)).unwrap();
        assert!(again.0 == 0 && again.1 != 0, "the same place, another content: {again:?}");
        let (mut second, key) = follower(&path, vec![saved]);
        assert_eq!(second.look(&key).map(|g| (g.from_offset, g.rewrite)), Some(again));
        std::fs::write(&path, "{}\n").unwrap();
        assert!(second.look(&key).is_some_and(|g| g.rewrite != again.1));
    }

    #[test]
    fn a_long_file_is_first_read_from_the_begin_of_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let line = format!("{INTERRUPT}\n");
        let limit = usize::try_from(FIRST_SIGHT_BYTES).unwrap();
        let lines = limit / line.len();
        let rest = " ".repeat(limit % line.len()) + "\n";
        // Where the reading begins is within the first line, or right behind its newline.
        for last in ["", &rest[1..]] {
            std::fs::write(&path, format!("{}\n{}{last}", "x".repeat(line.len()), line.repeat(lines)))
                .unwrap();
            let (mut follower, key) = follower(&path, Vec::new());
            let (mut said, mut malformed) = (0, None);
            while let Some(growth) = follower.look(&key) {
                assert!(growth.backlog);
                said += growth.parsed.observations.len();
                malformed = malformed.or(growth.parsed.malformed);
            }
            assert_eq!(malformed, None);
            assert_eq!(said, lines);
            add(&path, &line);
            assert!(follower.look(&key).is_some_and(|g| !g.backlog && g.parsed.observations.len() == 1));
        }
    }

    #[test]
    fn a_folder_that_nobody_needs_is_not_watched_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        for folder in [&one, &two] {
            std::fs::create_dir(folder).unwrap();
        }
        let (mut follower, key) = follower(&one.join("s.jsonl"), Vec::new());
        follower.keep_watching(&two);
        assert!(follower.folders.contains(&one));
        assert!(follower.follow(&key, &two.join("s.jsonl")), "the transcript moved");
        assert_eq!(follower.folders.iter().collect::<Vec<_>>(), [&two]);
        follower.unfollow(&key);
        assert!(follower.folders.contains(&two), "kept for the daemon's own purposes");
    }

    #[test]
    fn a_removed_state_file_still_names_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let projects = dir.path().join("projects/p");
        let registry = dir.path().join("sessions");
        for folder in [&projects, &registry] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let (mut follower, _) = follower(&projects.join("s.jsonl"), Vec::new());
        let file = registry.join("77.json");
        std::fs::write(&file, r#"{"pid":77,"sessionId":"s","status":"busy"}"#).unwrap();
        let touched = BTreeSet::from([file.clone()]);
        let said =
            |stated: Vec<Stated>| stated.into_iter().map(|s| s.file.observation.session).collect::<Vec<_>>();
        assert_eq!(said(follower.state_files_at(&touched)), [Some("s".to_owned())]);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(said(follower.state_files_at(&touched)), [Some("s".to_owned())]);
        assert_eq!(said(follower.state_files_at(&touched)), [None], "once");
    }
}
