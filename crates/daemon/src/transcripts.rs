//! When transcripts are read: in turns, so that a long one keeps nobody waiting, and to the end before one is let go. What
//! is in them is the adapters', where they are the follower's.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound::{Excluded, Unbounded},
};

use watchkeeper_core::SessionKey;

use crate::dispatcher::Dispatcher;

/// Turns in which a transcript that is let go is read to its end: far more than a session writes in its last moments. What
/// is behind that is not read, and counted.
const LAST_TURNS: u32 = 64;

/// Transcripts with more to read than one turn takes. Bounded by what is followed.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    some: BTreeSet<SessionKey>,
    /// Whose turn it was last.
    last: Option<SessionKey>,
    /// Those that nobody follows any more once they are read, and the turns that are left for it.
    leaving: BTreeMap<SessionKey, u32>,
}

impl Unread {
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.some.is_empty()
    }

    /// Whether there is more to read of this one.
    #[must_use]
    pub(crate) fn has(&self, key: &SessionKey) -> bool {
        self.some.contains(key)
    }

    /// Whose turn it is: each in its turn, so that nobody's long one keeps another waiting.
    fn next(&mut self) -> Option<SessionKey> {
        let behind = self.last.as_ref().and_then(|last| self.some.range((Excluded(last), Unbounded)).next());
        self.last = behind.or(self.some.first()).cloned();
        self.last.clone()
    }

    /// Takes the transcripts that are let go although they are not read to the end.
    pub(crate) fn take_leaving(&mut self) -> Vec<SessionKey> {
        std::mem::take(&mut self.leaving).into_keys().collect()
    }
}

impl Dispatcher {
    /// Reads what is new in a session's transcript: one turn's worth. The rest, and what comes while the journal is behind,
    /// is read when nothing else is to be done.
    pub(crate) fn look_at(&mut self, key: &SessionKey) {
        if self.journal.is_behind() {
            self.unread.some.insert(key.clone());
            return;
        }
        self.unread.some.remove(key);
        if let Some(growth) = self.follower.look(key) {
            if growth.more {
                self.unread.some.insert(key.clone());
            }
            self.count(key.agent, &growth.parsed);
            self.transcript_said(growth);
            // Rows that wait for room must not be overtaken by the word that they were read.
            if !self.journal.is_behind()
                && let Some(cursor) = self.follower.cursor_to_store(key)
            {
                self.journal.save_cursor(cursor);
            }
        }
        self.let_go_if_read(key);
    }

    pub(crate) fn follow_transcript(&mut self, key: &SessionKey, path: &std::path::Path) {
        self.unread.leaving.remove(key);
        // Another transcript may have been the session's.
        self.look_at(key);
        if self.follower.follow(key, path) {
            self.look_at(key);
        } else {
            self.counters.add("transcript.not_followed");
        }
    }

    /// Lets a transcript go when it is read to its end.
    pub(crate) fn unfollow_transcript(&mut self, key: SessionKey) {
        self.unread.leaving.insert(key.clone(), LAST_TURNS);
        self.look_at(&key);
    }

    /// After a turn of reading, whoever asked for it.
    fn let_go_if_read(&mut self, key: &SessionKey) {
        let Some(turns) = self.unread.leaving.get_mut(key) else { return };
        if self.unread.some.contains(key) {
            *turns -= 1;
            if *turns > 0 {
                return;
            }
            self.counters.add("transcript.end_not_read");
        }
        self.unread.some.remove(key);
        self.unread.leaving.remove(key);
        self.follower.unfollow(key);
        self.journal.delete_cursors(key);
    }

    /// Reads one more turn of one transcript that has more: whoever knocks meanwhile waits for no second one.
    pub(crate) fn read_on(&mut self) {
        if let Some(key) = self.unread.next() {
            self.look_at(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use watchkeeper_core::AgentKind;

    use super::*;
    use crate::{file_notices::FileNotices, rig::Life};

    /// More than three turns of lines that say nothing, and a last one that does.
    fn long_end() -> String {
        let line = format!("{{\"type\":\"mode\",\"mode\":\"{}\"}}\n", "x".repeat(1000));
        line.repeat((3 << 20) / line.len() + 1) + crate::rig::INTERRUPT + "\n"
    }

    fn followed(home: &std::path::Path) -> (Life, SessionKey, PathBuf) {
        let mut life = Life::begin(home, FileNotices::new(|_| {}));
        let (key, path) = (SessionKey::new(AgentKind::Claude, "s"), home.join("s.jsonl"));
        std::fs::write(&path, "").unwrap();
        life.dispatcher.follow_transcript(&key, &path);
        assert_eq!(life.dispatcher.follower.len(), 1);
        std::fs::write(&path, long_end()).unwrap();
        (life, key, path)
    }

    #[tokio::test]
    async fn a_transcript_is_read_to_its_end_before_it_is_let_go() {
        let home = tempfile::tempdir().unwrap();
        let (Life { mut dispatcher, .. }, key, _) = followed(home.path());
        dispatcher.unfollow_transcript(key);
        assert_eq!((dispatcher.follower.len(), dispatcher.journal.last().0), (1, 0), "not at once");
        while !dispatcher.unread.is_empty() {
            dispatcher.read_on();
        }
        assert_eq!((dispatcher.follower.len(), dispatcher.journal.last().0), (0, 1));
        assert_eq!(dispatcher.counters.get("transcript.end_not_read"), 0);
    }

    #[test]
    fn each_has_its_turn() {
        let [a, b, c] = ["a", "b", "c"].map(|id| SessionKey::new(AgentKind::Claude, id));
        let mut unread = Unread { some: [&a, &b, &c].map(Clone::clone).into(), ..Unread::default() };
        assert_eq!([unread.next(), unread.next()], [Some(a.clone()), Some(b)]);
        unread.some.remove(&c);
        assert_eq!(unread.next(), Some(a));
        unread.some.clear();
        assert_eq!(unread.next(), None);
    }

    #[tokio::test]
    async fn one_turn_is_of_one_transcript() {
        let home = tempfile::tempdir().unwrap();
        let (Life { mut dispatcher, .. }, one, path) = followed(home.path());
        let two = SessionKey::new(AgentKind::Claude, "t");
        std::fs::copy(&path, home.path().join("t.jsonl")).unwrap();
        dispatcher.follow_transcript(&two, &home.path().join("t.jsonl"));
        dispatcher.look_at(&one);
        let read = |dispatcher: &Dispatcher| {
            [&one, &two].map(|key| dispatcher.follower.cursor(key).map_or(0, |cursor| cursor.offset))
        };
        let before = read(&dispatcher);
        dispatcher.read_on();
        let between = read(&dispatcher);
        dispatcher.read_on();
        let after = read(&dispatcher);
        assert!(before[0] < between[0] && before[1] == between[1], "{before:?} {between:?}");
        assert!(between[0] == after[0] && between[1] < after[1], "{between:?} {after:?}");
    }

    /// A notice or an exit may bring the last look.
    #[tokio::test]
    async fn whoever_reads_the_end_lets_go() {
        let home = tempfile::tempdir().unwrap();
        let (Life { mut dispatcher, .. }, key, _) = followed(home.path());
        dispatcher.unfollow_transcript(key.clone());
        while dispatcher.unread.has(&key) {
            dispatcher.look_at(&key);
        }
        assert_eq!((dispatcher.follower.len(), dispatcher.journal.last().0), (0, 1));
        assert!(dispatcher.unread.leaving.is_empty());
    }

    #[tokio::test]
    async fn an_end_without_an_end_is_let_go_and_counted() {
        let home = tempfile::tempdir().unwrap();
        let (Life { mut dispatcher, .. }, key, _) = followed(home.path());
        dispatcher.unfollow_transcript(key.clone());
        dispatcher.unread.leaving.insert(key, 2);
        dispatcher.read_on();
        assert_eq!(dispatcher.follower.len(), 1);
        dispatcher.read_on();
        assert_eq!((dispatcher.follower.len(), dispatcher.journal.last().0), (0, 0));
        assert_eq!(dispatcher.counters.get("transcript.end_not_read"), 1);
        assert!(dispatcher.unread.is_empty() && dispatcher.unread.leaving.is_empty());
    }

    #[tokio::test]
    async fn who_comes_again_meanwhile_stays() {
        let home = tempfile::tempdir().unwrap();
        let (Life { mut dispatcher, .. }, key, path) = followed(home.path());
        dispatcher.unfollow_transcript(key.clone());
        dispatcher.follow_transcript(&key, &path);
        while !dispatcher.unread.is_empty() {
            dispatcher.read_on();
        }
        assert_eq!((dispatcher.follower.len(), dispatcher.journal.last().0), (1, 1));
    }
}
