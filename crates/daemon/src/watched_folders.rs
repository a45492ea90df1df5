//! Which folders are watched for how many who need them, and through which ancestor one is that is not there yet. Owns the
//! counting and its limit; who needs a folder, and what is in it, is not known here.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::file_notices::FileNotices;

/// Folders watched at once: well below what a system grants one user. A further one is not watched but looked at now and
/// then, which [`WatchedFolders::is_blind`] says, until others are let go.
const WATCHED_MAX: usize = 1024;

/// A folder that somebody needs.
#[derive(Debug)]
struct Needed {
    by: usize,
    /// What is watched for it: the folder itself, or the nearest ancestor that is there. `None`: nothing can be.
    through: Option<PathBuf>,
}

/// Folders by those who need them. How many there are is bounded by the caller, how many are watched here.
#[derive(Debug)]
pub(crate) struct WatchedFolders {
    notices: FileNotices,
    needed: BTreeMap<PathBuf, Needed>,
    /// Needed folders for which there is no room.
    without_room: BTreeSet<PathBuf>,
    room: usize,
    /// That there is no room was said.
    complained: bool,
}

impl WatchedFolders {
    #[must_use]
    pub(crate) const fn new(notices: FileNotices) -> Self {
        Self {
            notices,
            needed: BTreeMap::new(),
            without_room: BTreeSet::new(),
            room: WATCHED_MAX,
            complained: false,
        }
    }

    /// Whether something happens unnoticed in folders that somebody needs.
    #[must_use]
    pub(crate) fn is_blind(&self) -> bool {
        !self.without_room.is_empty() || self.notices.is_blind()
    }

    /// Watches `folder`, there or not, until it was released as often as it was needed.
    pub(crate) fn need(&mut self, folder: &Path) {
        self.needed.entry(folder.to_owned()).or_insert(Needed { by: 0, through: None }).by += 1;
        self.find(folder);
    }

    /// A needed folder that was not there may have come into being.
    pub(crate) fn find(&mut self, folder: &Path) {
        if self.needed.get(folder).is_some_and(|needed| needed.through.as_deref() != Some(folder)) {
            self.aim(folder);
        }
    }

    /// One of those who need `folder` does so no more.
    pub(crate) fn release(&mut self, folder: &Path) {
        let Some(needed) = self.needed.get_mut(folder) else { return };
        needed.by -= 1;
        if needed.by > 0 {
            return;
        }
        let through = self.needed.remove(folder).and_then(|gone| gone.through);
        self.without_room.remove(folder);
        // The folder itself may be missed while an ancestor stands in, or be an ancestor that stands in.
        for unneeded in through.iter().map(PathBuf::as_path).chain([folder]) {
            self.unwatch_if_unused(unneeded);
        }
    }

    /// Folders that were touched themselves may be others by now, or gone, or there at last: they are watched anew, or what
    /// is there of their paths. An empty set stands for everything.
    pub(crate) fn touched(&mut self, paths: &BTreeSet<PathBuf>) {
        let is_hit = |folder: &Path| paths.is_empty() || folder.ancestors().any(|f| paths.contains(f));
        let again: Vec<PathBuf> = self.needed.keys().filter(|f| is_hit(f)).cloned().collect();
        for folder in again {
            self.aim(&folder);
        }
    }

    /// Tries again what could not be watched. What happened there meanwhile was not noticed.
    pub(crate) fn retry(&mut self) {
        let has_news = !self.notices.retry().is_empty();
        if !has_news && self.without_room.is_empty() {
            return;
        }
        let again = self.needed.iter().filter(|(folder, needed)| {
            needed.through.is_none() || self.without_room.contains(folder.as_path())
        });
        for folder in again.map(|(folder, _)| folder.clone()).collect::<Vec<_>>() {
            self.aim(&folder);
        }
    }

    fn aim(&mut self, folder: &Path) {
        // What came into being between the look and the watch was not announced: each further turn is a step down the path.
        for _ in folder.ancestors() {
            let is_known = nearest(folder).is_none_or(|nearest| self.notices.is_watched(nearest));
            if !is_known && self.notices.watched() >= self.room {
                self.without_room.insert(folder.to_owned());
                if !std::mem::replace(&mut self.complained, true) {
                    let most = self.room;
                    tracing::warn!(most, "too many folders to watch; the rest are looked at now and then");
                }
                return;
            }
            self.without_room.remove(folder);
            let through = self.notices.watch(folder);
            let is_settled = through.is_none() || through.as_deref() == nearest(folder);
            self.set_through(folder, through);
            if is_settled {
                return;
            }
        }
    }

    fn set_through(&mut self, folder: &Path, through: Option<PathBuf>) {
        let Some(needed) = self.needed.get_mut(folder) else { return };
        let before = std::mem::replace(&mut needed.through, through);
        if let Some(before) = before {
            self.unwatch_if_unused(&before);
        }
    }

    fn unwatch_if_unused(&mut self, folder: &Path) {
        if self.needed.values().any(|needed| needed.through.as_deref() == Some(folder)) {
            return;
        }
        if self.needed.contains_key(folder) {
            // It may be missed on its own account.
            self.notices.drop_watch(folder);
        } else {
            self.notices.unwatch(folder);
        }
    }
}

/// What is there of a folder's path.
fn nearest(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|f| f.is_dir())
}

#[cfg(test)]
impl WatchedFolders {
    /// What is watched, in order.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        self.notices.all_watched().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, channel},
        time::Duration,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn folders() -> (WatchedFolders, Receiver<BTreeSet<PathBuf>>) {
        let (told, notices) = channel();
        (WatchedFolders::new(FileNotices::new(move |paths| _ = told.send(paths))), notices)
    }

    fn two() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        for folder in [&one, &two] {
            std::fs::create_dir(folder).unwrap();
        }
        (dir, one, two)
    }

    #[track_caller]
    fn wait_for(path: &Path, told: &Receiver<BTreeSet<PathBuf>>) {
        while !told.recv_timeout(PATIENCE).unwrap().contains(path) {}
    }

    #[test]
    fn a_folder_is_watched_until_the_last_lets_it_go() {
        let (_dir, one, two) = two();
        let (mut folders, _told) = folders();
        for needed in [&one, &two, &one] {
            folders.need(needed);
        }
        folders.release(&one);
        assert_eq!(folders.watched(), [one.clone(), two.clone()]);
        folders.release(&one);
        assert_eq!(folders.watched(), std::slice::from_ref(&two));
        folders.release(&one);
        folders.release(&two);
        assert!(folders.watched().is_empty() && folders.needed.is_empty());
    }

    #[test]
    fn what_stands_in_is_let_go_when_the_folder_is_there_and_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let (above, late, never) =
            (dir.path().join("a"), dir.path().join("a/late"), dir.path().join("a/never"));
        let (mut folders, told) = folders();
        folders.need(&late);
        folders.need(&never);
        assert_eq!(folders.watched(), [dir.path()]);
        std::fs::create_dir(&above).unwrap();
        wait_for(&above, &told);
        folders.touched(&BTreeSet::from([above.clone()]));
        assert_eq!(
            folders.watched(),
            std::slice::from_ref(&above),
            "a step nearer, and the one before is let go"
        );
        std::fs::create_dir(&late).unwrap();
        wait_for(&late, &told);
        folders.touched(&BTreeSet::from([late.clone()]));
        assert_eq!(folders.watched(), [above.clone(), late.clone()]);
        folders.release(&never);
        assert_eq!(folders.watched(), std::slice::from_ref(&late), "nobody is announced from above any more");
        folders.need(&above);
        folders.need(&never);
        folders.release(&above);
        assert_eq!(folders.watched(), [above.clone(), late.clone()], "it still stands in");
        folders.release(&never);
        folders.release(&late);
        assert!(folders.watched().is_empty());
    }

    #[test]
    fn a_folder_that_went_is_announced_from_above_until_it_comes_again() {
        let (dir, one, _) = two();
        let (mut folders, told) = folders();
        folders.need(&one);
        std::fs::remove_dir(&one).unwrap();
        wait_for(&one, &told);
        folders.touched(&BTreeSet::from([one.clone()]));
        assert_eq!(folders.watched(), [dir.path()]);
        std::fs::create_dir(&one).unwrap();
        folders.find(&one);
        assert_eq!(folders.watched(), std::slice::from_ref(&one));
        let file = one.join("new");
        std::fs::write(&file, "x").unwrap();
        wait_for(&file, &told);
    }

    #[test]
    fn a_needed_folder_that_is_missed_stays_so_when_it_stands_in_no_more() {
        let (_dir, one, _) = two();
        let (mut folders, told) = folders();
        // The system refused it at first; for what is to be in it, it does not.
        folders.notices.refuse(&one);
        folders.needed.insert(one.clone(), Needed { by: 1, through: None });
        let late = one.join("late");
        folders.need(&late);
        assert_eq!(folders.watched(), std::slice::from_ref(&one));
        std::fs::create_dir(&late).unwrap();
        folders.find(&late);
        assert_eq!((folders.watched(), folders.is_blind()), (vec![late.clone()], true));
        folders.retry();
        assert_eq!((folders.watched(), folders.is_blind()), (vec![one.clone(), late], false));
        std::fs::write(one.join("new"), "x").unwrap();
        wait_for(&one.join("new"), &told);
    }

    #[test]
    fn without_room_it_is_blind_until_others_are_let_go() {
        let (_dir, one, two) = two();
        let (mut folders, told) = folders();
        folders.room = 1;
        folders.need(&one);
        assert!(!folders.is_blind());
        folders.need(&two);
        assert!(folders.is_blind());
        folders.retry();
        assert_eq!((folders.watched(), folders.is_blind()), (vec![one.clone()], true));
        folders.release(&one);
        folders.retry();
        assert_eq!((folders.watched(), folders.is_blind()), (vec![two.clone()], false));
        std::fs::write(two.join("new"), "x").unwrap();
        wait_for(&two.join("new"), &told);
        folders.need(&one);
        folders.release(&one);
        assert!(!folders.is_blind(), "nobody needs what there is no room for");
    }
}
