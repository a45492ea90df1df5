//! What lies in the runtime folder and makes the daemon the one of its instance: its two doors and its lock. Somebody may
//! take them away (a logout removes the user's runtime folder) while the daemon lives on.

use crate::{
    boot,
    dispatcher::Dispatcher,
    door::Listener,
    exceptions,
    instance::{InstanceLock, LockError},
    sources::Sources,
};

impl Dispatcher {
    /// Puts back what was removed or replaced, unless another daemon may be behind it.
    pub(crate) fn mend_run_folder(&mut self, sources: &mut Sources) {
        self.lock_is_lost = !self.lock.is_in_place();
        if !self.lock_is_lost && sources.hook_door.is_ours() && sources.api_door.is_ours() {
            return;
        }
        // A private instance goes with its folder instead.
        if !self.private && self.place.state.is_dir() {
            if let Err(error) = boot::prepare(&self.place) {
                exceptions::record_error("run folder", &error);
                return;
            }
            self.follower.keep_watching(&self.place.run);
        }
        // The lock first: who listens here is who holds it. Without it the doors may be another's; the next slow look tries again.
        self.mend_lock();
        if self.lock_is_lost {
            return;
        }
        self.mend_doors(sources);
        // Hooks that found no door used the spool. Behind, it is drained when the journal has caught up.
        if !self.journal.is_behind() {
            _ = self.drain_spool();
        }
    }

    /// A lock on a file without a name keeps nobody out. Whoever took the new file's before us finds our journal in use and
    /// leaves again, so that we are next; unless our journal was removed, too. Then the instance is theirs.
    fn mend_lock(&mut self) {
        // Without a folder there is nobody to keep out.
        self.lock_is_lost = !self.lock.is_in_place() && self.place.run.is_dir();
        if !self.lock_is_lost {
            return;
        }
        match InstanceLock::take_now(&self.place.run) {
            Ok(lock) => {
                self.counters.add("lock.renewed");
                tracing::warn!("the instance's lock had been taken away; it is held again");
                self.lock = lock;
                self.lock_is_lost = false;
            }
            Err(LockError::Held { .. }) if !self.journal.is_in_place() => {
                self.counters.add("lock.another");
                self.stop(
                    "the instance's folders were replaced, and it belongs to another daemon now".to_owned(),
                );
            }
            Err(LockError::Held { path }) => {
                tracing::warn!(path = %path.display(), "another process holds the instance's new lock; tried again soon");
            }
            Err(error @ (LockError::Open { .. } | LockError::Wait { .. })) => {
                exceptions::record_error("lock", &error);
            }
        }
    }

    fn mend_doors(&mut self, sources: &mut Sources) {
        for (door, path) in [
            (&mut sources.hook_door, boot::hook_path(&self.place)),
            (&mut sources.api_door, boot::api_path(&self.place)),
        ] {
            if door.is_ours() {
                continue;
            }
            self.counters.add("door.stolen");
            match Listener::bind(&path) {
                Ok(fresh) => {
                    tracing::warn!(path = %path.display(), "the socket had been taken away; listening there again");
                    std::mem::replace(door, fresh).close();
                }
                Err(error) => exceptions::record_error("door", &error),
            }
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs::File, path::PathBuf};

    use super::*;
    use crate::{event::Event, file_notices::FileNotices, rig::Life};

    fn is_locked(path: &PathBuf) -> bool {
        matches!(File::open(path).unwrap().try_lock(), Err(std::fs::TryLockError::WouldBlock))
    }

    /// A life whose runtime folder was removed, and where its lock lies.
    fn cleaned(home: &std::path::Path) -> (Life, PathBuf) {
        let life = Life::begin(home, FileNotices::new(|_| {}));
        let lock = life.dispatcher.place.daemon_lock();
        assert!(is_locked(&lock));
        std::fs::remove_dir_all(&life.dispatcher.place.run).unwrap();
        (life, lock)
    }

    #[tokio::test]
    async fn a_cleaned_folder_is_put_back_with_its_lock() {
        let home = tempfile::tempdir().unwrap();
        let (Life { mut dispatcher, mut sources, .. }, lock) = cleaned(home.path());
        dispatcher.handle(Event::FilesTouched(BTreeSet::new()), &mut sources);
        assert!(sources.hook_door.is_ours() && sources.api_door.is_ours());
        assert!(is_locked(&lock), "nobody else becomes the daemon");
        dispatcher.handle(Event::FilesTouched(BTreeSet::new()), &mut sources);
        assert_eq!(dispatcher.counters.get("lock.renewed"), 1, "once");
    }

    #[tokio::test]
    async fn a_lock_that_another_took_meanwhile_is_tried_again() {
        let home = tempfile::tempdir().unwrap();
        let (Life { mut dispatcher, mut sources, .. }, _) = cleaned(home.path());
        boot::prepare(&dispatcher.place).unwrap();
        let other = InstanceLock::take_now(&dispatcher.place.run).unwrap();
        dispatcher.handle(Event::FilesTouched(BTreeSet::new()), &mut sources);
        assert!(!dispatcher.lock.is_in_place());
        let refused = watchkeeper_store::Store::open(&dispatcher.place.state);
        assert!(
            matches!(refused, Err(watchkeeper_store::OpenError::Locked { .. })),
            "so the other leaves again"
        );
        assert!(
            !sources.hook_door.is_ours() && !dispatcher.is_stopping(),
            "whose the doors are is not known yet"
        );
        drop(other);
        dispatcher.look_soon();
        dispatcher.handle(Event::ReconcileDue, &mut sources);
        assert!(dispatcher.lock.is_in_place());
        assert!(sources.hook_door.is_ours() && sources.api_door.is_ours());
    }

    /// With the folders the journal went: nobody would read what is written there.
    #[tokio::test]
    async fn an_instance_that_was_replaced_belongs_to_its_new_daemon() {
        let home = tempfile::tempdir().unwrap();
        let Life { mut dispatcher, mut sources, .. } = Life::begin(home.path(), FileNotices::new(|_| {}));
        std::fs::remove_dir_all(home.path()).unwrap();
        let mut new = Life::begin(home.path(), FileNotices::new(|_| {}));
        // Who drains it reads it, and sets it aside.
        let name = format!("{:012x}-{:08x}-{:016x}-o{:06x}-{:032x}.frame", 1, 0, 1, 1, 1);
        let spooled = new.dispatcher.place.spool().join(name);
        std::fs::write(&spooled, "x").unwrap();
        dispatcher.handle(Event::FilesTouched(BTreeSet::from([spooled.clone()])), &mut sources);
        assert!(dispatcher.is_stopping());
        assert_eq!((dispatcher.counters.get("lock.another"), dispatcher.counters.get("door.stolen")), (1, 0));
        assert!(new.sources.hook_door.is_ours() && new.sources.api_door.is_ours() && spooled.exists());
        new.dispatcher.handle(Event::FilesTouched(BTreeSet::new()), &mut new.sources);
        assert!(new.dispatcher.lock.is_in_place() && !new.dispatcher.is_stopping(), "it has what it needs");
        assert!(!spooled.exists(), "the spool is its own");
    }

    #[test]
    fn a_journal_in_use_means_that_a_daemon_runs_unless_it_is_a_former_life() {
        let locked = |holder| {
            let path = PathBuf::from("journal.db");
            crate::RunError::from(watchkeeper_store::OpenError::Locked { path, holder }).is_already_running()
        };
        let own = std::process::id();
        assert!(locked(None) && locked(Some(own + 1)));
        assert!(!locked(Some(own)));
    }
}
