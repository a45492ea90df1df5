//! The kernel's notices about files: which folders give them, and which should and cannot. Owns the watcher and survives
//! its faults; what is in the folders, and who needs them, is not known here.
//!
//! How to use it: [`FileNotices::watch`] every folder that is needed, whether it exists or not, and
//! [`FileNotices::unwatch`] every folder that was asked for (or that `watch` gave back) when it is not needed any more.
//! While [`FileNotices::is_blind`], look at everything from time to time and call [`FileNotices::retry`] then.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use notify::{Config, ErrorKind, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher as _};

/// Notices that come so soon after each other come from the same read of the kernel's queue,
const SAME_READ: Duration = Duration::from_micros(200);
/// and from different reads, but in a crowd. Then the watcher's thread rests so long, while the queue gathers what comes: to be
/// woken costs more than a notice. A notice that comes alone keeps nobody waiting, nor does it wait.
const CROWDED: Duration = Duration::from_millis(2);

/// Told which paths changed; an empty set means everything.
type Touched = dyn Fn(BTreeSet<PathBuf>) + Send + Sync;

/// Kernel notices for folders. Its sets hold what the caller asked for and did not give up; their bound is the caller's.
pub(crate) struct FileNotices {
    touched: Arc<Touched>,
    /// `None`: the system gave none, or its thread is gone.
    watcher: Option<RecommendedWatcher>,
    /// What gives notices: folders asked for, or their nearest ancestors.
    watched: BTreeSet<PathBuf>,
    /// Folders that should be watched and cannot.
    missed: BTreeSet<PathBuf>,
    /// That there is no watcher was said.
    complained: bool,
}

impl std::fmt::Debug for FileNotices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileNotices")
            .field("watched", &self.watched)
            .field("missed", &self.missed)
            .finish_non_exhaustive()
    }
}

/// Why a folder is not watched.
enum Unwatched {
    /// Nothing of its path is there, or it went just now.
    Gone,
    /// The system refuses this folder, or (`every`) any further one.
    Refused { every: bool },
    /// The watcher's thread does not run: `notify` fails or panics then.
    NoWatcher,
}

impl FileNotices {
    /// `touched` is called from the watcher's own thread with the paths that changed; an empty set means "look at everything",
    /// after the kernel's queue overflowed. Without a watcher it is blind.
    #[must_use]
    pub(crate) fn new(touched: impl Fn(BTreeSet<PathBuf>) + Send + Sync + 'static) -> Self {
        let mut notices = Self {
            touched: Arc::new(touched),
            watcher: None,
            watched: BTreeSet::new(),
            missed: BTreeSet::new(),
            complained: false,
        };
        notices.start();
        notices
    }

    /// Whether something happens unnoticed that should be noticed: folders are missed, or there is no watcher at all.
    #[must_use]
    pub(crate) fn is_blind(&self) -> bool {
        self.watcher.is_none() || !self.missed.is_empty()
    }

    /// Whether notices come from this very folder, asked for or not.
    #[must_use]
    pub(crate) fn is_watched(&self, folder: &Path) -> bool {
        self.watched.contains(folder)
    }

    /// How many folders give notices.
    #[must_use]
    pub(crate) fn watched(&self) -> usize {
        self.watched.len()
    }

    #[cfg(test)]
    pub(crate) const fn all_watched(&self) -> &BTreeSet<PathBuf> {
        &self.watched
    }

    /// Watches `folder`, not what is in its folders. A folder that does not exist yet is announced by its nearest ancestor
    /// that does: ask again when that is touched. Gives what is watched now; `None` when it cannot be, which is said once and
    /// tried again by [`retry`](Self::retry) and by the next `watch`. Watching again what is watched is right after a folder
    /// was replaced. Blocks until the watcher's thread has answered.
    pub(crate) fn watch(&mut self, folder: &Path) -> Option<PathBuf> {
        self.try_watch(folder).ok()
    }

    /// Gives up `folder`, watched or not.
    pub(crate) fn unwatch(&mut self, folder: &Path) {
        self.missed.remove(folder);
        self.drop_watch(folder);
    }

    /// Ends the notices of `folder`. If it should give some and cannot, that stays so.
    pub(crate) fn drop_watch(&mut self, folder: &Path) {
        if self.watched.remove(folder) {
            // An error means that the folder went, and its watch with it.
            _ = self.with_watcher(|watcher| watcher.unwatch(folder));
        }
    }

    /// Tries again what could not be watched, with a new watcher if there is none. Gives what is watched now and was not:
    /// what happened there meanwhile was not noticed, so that it must be looked at.
    pub(crate) fn retry(&mut self) -> Vec<PathBuf> {
        if self.watcher.is_none() {
            self.start();
        }
        let mut found = Vec::new();
        for folder in self.missed.clone() {
            match self.try_watch(&folder) {
                Ok(watched) => found.push(watched),
                Err(Unwatched::Gone | Unwatched::Refused { every: false }) => {}
                Err(Unwatched::Refused { every: true } | Unwatched::NoWatcher) => break,
            }
        }
        found
    }

    fn try_watch(&mut self, folder: &Path) -> Result<PathBuf, Unwatched> {
        self.try_watch_by(folder, |watcher, existing| watcher.watch(existing, RecursiveMode::NonRecursive))
    }

    fn try_watch_by(
        &mut self,
        folder: &Path,
        call: impl FnOnce(&mut RecommendedWatcher, &Path) -> notify::Result<()>,
    ) -> Result<PathBuf, Unwatched> {
        let outcome = match folder.ancestors().find(|f| f.is_dir()) {
            Some(existing) => match self.with_watcher(|watcher| call(watcher, existing)) {
                Some(Ok(())) => Ok(existing.to_owned()),
                Some(Err(error)) if self.has_watcher() => Err(self.refused(folder, &error)),
                Some(Err(_)) | None => Err(Unwatched::NoWatcher),
            },
            None => Err(Unwatched::Gone),
        };
        match &outcome {
            Ok(watched) => {
                self.missed.remove(folder);
                self.watched.insert(watched.clone());
            }
            Err(_) => _ = self.missed.insert(folder.to_owned()),
        }
        outcome
    }

    /// The system gives no notices of `folder`, as when its limit is reached.
    #[cfg(test)]
    pub(crate) fn refuse(&mut self, folder: &Path) {
        let outcome = self.try_watch_by(folder, |_, _| Err(notify::Error::new(ErrorKind::MaxFilesWatch)));
        assert!(outcome.is_err());
    }

    fn refused(&self, folder: &Path, error: &notify::Error) -> Unwatched {
        if !self.missed.contains(folder) {
            tracing::warn!(%error, folder = %folder.display(), "cannot watch a folder; it is looked at now and then");
        }
        if matches!(error.kind, ErrorKind::PathNotFound) {
            return Unwatched::Gone;
        }
        Unwatched::Refused { every: matches!(error.kind, ErrorKind::MaxFilesWatch) }
    }

    /// Whether the watcher's thread answers; from the first time that it does not, there is no watcher.
    fn has_watcher(&mut self) -> bool {
        let answer = self.with_watcher(|watcher| watcher.watched_paths());
        if matches!(answer, Some(Err(_))) {
            self.lose_watcher();
        }
        self.watcher.is_some()
    }

    /// Where `notify` panics because its thread could not be started or has ended, there is no watcher from then on.
    fn with_watcher<T>(&mut self, call: impl FnOnce(&mut RecommendedWatcher) -> T) -> Option<T> {
        let watcher = self.watcher.as_mut()?;
        let called = catch_unwind(AssertUnwindSafe(|| call(watcher)));
        if called.is_err() {
            self.lose_watcher();
        }
        called.ok()
    }

    fn lose_watcher(&mut self) {
        self.give_up_watcher();
        self.missed.append(&mut self.watched);
        self.complain("its thread does not run");
    }

    fn start(&mut self) {
        let touched = Arc::clone(&self.touched);
        let mut crowd = Crowd::default();
        let told = move |event: notify::Result<notify::Event>| {
            match event {
                Ok(event) if event.need_rescan() => touched(BTreeSet::new()),
                Ok(event) if event.kind.is_access() => {}
                Ok(event) => touched(event.paths.into_iter().collect()),
                Err(error) => {
                    tracing::warn!(%error, "file notices failed");
                    touched(BTreeSet::new());
                }
            }
            if crowd.is_joined_at(Instant::now()) {
                std::thread::sleep(CROWDED);
                crowd.rested_until(Instant::now());
            }
        };
        // Without the opening and closing of files: our own looks would wake us.
        let watcher = RecommendedWatcher::new(told, Config::default().with_event_kinds(EventKindMask::CORE));
        match watcher {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => self.complain(&error.to_string()),
        }
    }

    fn complain(&mut self, why: &str) {
        if !std::mem::replace(&mut self.complained, true) {
            tracing::warn!(why, "no file notices; everything is looked at now and then");
        }
    }

    /// Its end panics, too, when its thread does not run.
    fn give_up_watcher(&mut self) {
        let watcher = self.watcher.take();
        _ = catch_unwind(AssertUnwindSafe(|| drop(watcher)));
    }
}

impl Drop for FileNotices {
    fn drop(&mut self) {
        self.give_up_watcher();
    }
}

/// Whether notices come in a crowd.
#[derive(Debug, Default)]
struct Crowd {
    last: Option<Instant>,
}

impl Crowd {
    /// A notice was told at `now`; whether it is time for a rest.
    fn is_joined_at(&mut self, now: Instant) -> bool {
        let since = self.last.replace(now).map(|last| now.saturating_duration_since(last));
        since.is_some_and(|since| SAME_READ < since && since < CROWDED)
    }

    const fn rested_until(&mut self, now: Instant) {
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, channel},
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn notices() -> (FileNotices, Receiver<BTreeSet<PathBuf>>) {
        let (told, notices) = channel();
        (FileNotices::new(move |paths| _ = told.send(paths)), notices)
    }

    #[track_caller]
    fn check_noticed(folder: &Path, told: &Receiver<BTreeSet<PathBuf>>) {
        let file = folder.join("new");
        std::fs::write(&file, "x").unwrap();
        while !told.recv_timeout(PATIENCE).unwrap().contains(&file) {}
    }

    #[test]
    fn only_a_crowd_makes_rest() {
        let mut crowd = Crowd::default();
        let mut now = Instant::now();
        let mut after = |micros| {
            now += Duration::from_micros(micros);
            crowd.is_joined_at(now)
        };
        assert!(!after(0), "the first");
        assert!(!after(2_000) && !after(60_000_000), "alone");
        assert!(!after(20) && !after(20), "of one read");
        assert!(after(300) && after(1_999), "one read after the other");
    }

    #[test]
    fn a_folder_that_cannot_be_watched_makes_blind_until_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        for folder in [&one, &two] {
            std::fs::create_dir(folder).unwrap();
        }
        let (mut notices, told) = notices();
        assert_eq!(notices.watch(&one), Some(one.clone()));
        assert!(!notices.is_blind());
        for (kind, every) in [
            (ErrorKind::MaxFilesWatch, true),
            (ErrorKind::Io(std::io::ErrorKind::PermissionDenied.into()), false),
        ] {
            let outcome = notices.try_watch_by(&two, |_, _| Err(notify::Error::new(kind)));
            assert!(matches!(outcome, Err(Unwatched::Refused { every: said }) if said == every));
            assert!(notices.is_blind());
        }
        assert_eq!(notices.retry(), std::slice::from_ref(&two));
        assert!(!notices.is_blind());
        assert!(notices.retry().is_empty(), "nothing is missed");
        check_noticed(&one, &told);
        check_noticed(&two, &told);
    }

    #[test]
    fn what_is_not_there_is_announced_from_above_and_what_is_given_up_is_not_missed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("later");
        let (mut notices, told) = notices();
        assert_eq!(notices.watch(&folder.join("deep")), Some(dir.path().to_owned()));
        std::fs::create_dir(&folder).unwrap();
        while !told.recv_timeout(PATIENCE).unwrap().contains(&folder) {}
        notices.refuse(&folder);
        notices.unwatch(&folder);
        assert!(!notices.is_blind());
    }

    /// The end of the watcher's thread, here by a panic of what it calls, is to `notify` what a thread that was never
    /// started is: each call fails.
    #[test]
    fn a_watcher_without_a_thread_makes_blind_and_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        for folder in [&one, &two] {
            std::fs::create_dir(folder).unwrap();
        }
        let (told, heard) = channel();
        let broken = AtomicBool::new(true);
        let mut notices = FileNotices::new(move |paths| {
            _ = told.send(paths);
            assert!(!broken.swap(false, Ordering::Relaxed), "a planted panic");
        });
        assert_eq!(notices.watch(&one), Some(one.clone()));
        check_noticed(&one, &heard);
        let begun = std::time::Instant::now();
        while notices.watch(&two).is_some() {
            assert!(begun.elapsed() < PATIENCE, "the thread ends");
        }
        assert!(notices.is_blind());
        assert_eq!(notices.watch(&one), None);
        assert_eq!(notices.retry(), [one.clone(), two.clone()]);
        assert!(!notices.is_blind());
        check_noticed(&two, &heard);
        notices.unwatch(&two);
        notices.unwatch(&one);
        assert!(notices.watched.is_empty() && notices.missed.is_empty());
    }
}
