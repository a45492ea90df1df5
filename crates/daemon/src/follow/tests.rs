//! Transcripts as they grow, are rewritten and replaced, and the folders around them.

use super::*;
use crate::rig::INTERRUPT;
use std::io::Write as _;
use watchkeeper_core::AgentKind;

mod hostile;

const PROMPT: &str = concat!(
    r#"{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","#,
    r#""message":{"role":"user","content":"hello"}}"#
);

/// A tool that begins.
const CALL: &str = concat!(
    r#"{"type":"assistant","uuid":"a","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","#,
    r#""message":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"Bash","input":{}}]}}"#
);

fn add(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn follower(path: &Path, cursors: Vec<Cursor>) -> (Follower, SessionKey) {
    let key = SessionKey::new(AgentKind::Claude, "s");
    let mut follower = Follower::new(FileNotices::new(|_| {}), cursors);
    assert!(follower.follow(&key, path));
    (follower, key)
}

/// Where the lines begin that said something.
fn begins(growth: Option<Growth>) -> Vec<u64> {
    growth.iter().flat_map(|g| &g.parsed.lines).map(|line| line.offset).collect()
}

#[test]
fn a_line_begins_at_the_same_place_however_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let (head, rest) = INTERRUPT.split_at(20);
    add(&path, &format!("{INTERRUPT}\n{head}"));
    let (mut torn, key) = follower(&path, Vec::new());
    assert_eq!(begins(torn.look(&key)), [0]);
    let saved = torn.cursor(&key).unwrap();
    add(&path, &format!("{rest}\n{PROMPT}\n{INTERRUPT}\n"));
    let second = INTERRUPT.len() as u64 + 1;
    let last = 2 * second + PROMPT.len() as u64 + 1;
    assert_eq!(begins(torn.look(&key)), [second, last], "in two reads");
    // The rows of that look were stored, its cursor was not: the next life reads it again, as the same.
    let (mut again, key) = follower(&path, vec![saved]);
    assert_eq!(begins(again.look(&key)), [second, last], "from where it was left");
    assert!(again.look(&key).is_none());
    let (mut whole, key) = follower(&path, Vec::new());
    assert_eq!(begins(whole.look(&key)), [0, second, last], "in one read");
}

#[test]
fn a_cursor_is_stored_when_it_says_much_more_than_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    add(&path, &format!("{PROMPT}\n"));
    let (mut followed, key) = follower(&path, Vec::new());
    assert!(followed.cursor_to_store(&key).is_none(), "nothing was read");
    assert!(followed.look(&key).is_some());
    assert_eq!(followed.cursor_to_store(&key), followed.cursor(&key));
    assert!(followed.cursors_behind().next().is_none());
    add(&path, &format!("{INTERRUPT}\n"));
    assert!(followed.look(&key).is_some());
    assert!(followed.cursor_to_store(&key).is_none(), "one more line");
    assert_eq!(followed.cursors_behind().collect::<Vec<_>>(), [followed.cursor(&key).unwrap()]);
    add(
        &path,
        &format!(
            "{{\"type\":\"mode\",\"mode\":\"{}\"}}\n",
            "x".repeat(usize::try_from(CURSOR_BYTES).unwrap())
        ),
    );
    while followed.look(&key).is_some_and(|growth| growth.more) {}
    assert_eq!(followed.cursor_to_store(&key), followed.cursor(&key));
    replace(&path, &format!("{INTERRUPT}\n"));
    assert!(followed.look(&key).is_some());
    assert_eq!(followed.cursor_to_store(&key), followed.cursor(&key), "another content");
    assert!(followed.cursors_behind().next().is_none());
}

#[test]
fn a_folder_that_went_and_came_again_is_watched_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("in");
    let (told, notices) = std::sync::mpsc::channel();
    let notices_of = FileNotices::new(move |paths| _ = told.send(paths));
    let mut follower = Follower::new(notices_of, Vec::new());
    std::fs::create_dir(&folder).unwrap();
    follower.keep_watching(&folder);
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
    assert_eq!(first.look(&key).map(|g| g.rewrite), Some(0));
    let saved = first.cursor(&key).unwrap();
    std::fs::write(&path, format!("{PROMPT}\n")).unwrap();
    let again = first.look(&key).map(|g| g.rewrite).unwrap();
    assert_ne!(again, 0, "the same place, another content");
    let (mut second, key) = follower(&path, vec![saved]);
    assert_eq!(second.look(&key).map(|g| g.rewrite), Some(again));
    std::fs::write(&path, "{}\n").unwrap();
    assert!(second.look(&key).is_some_and(|g| g.rewrite != again));
}

/// As `O_TRUNC` and a write between two looks do, or a new file with the inode of the former.
#[test]
fn a_file_rewritten_in_place_with_more_than_before_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    add(&path, &format!("{PROMPT}\n"));
    let (mut first, key) = follower(&path, Vec::new());
    assert!(first.look(&key).is_some());
    let saved = first.cursor(&key).unwrap();
    std::fs::write(&path, format!("{INTERRUPT}\n{PROMPT}\n{PROMPT}\n")).unwrap();
    let again = first.look(&key).unwrap();
    assert_eq!(again.identity, saved.file);
    assert_ne!(again.rewrite, 0);
    let (mut second, _) = follower(&path, vec![saved.clone()]);
    assert_eq!(second.look(&key).map(|g| g.rewrite), Some(again.rewrite), "after a crash");
    assert_eq!(begins(Some(again)), [0]);

    // What an earlier version stored tells no first line: what follows on it is a growth.
    let mut state: serde_json::Value = serde_json::from_str(&saved.state_json).unwrap();
    assert!(state.as_object_mut().unwrap().remove("first_line").is_some());
    let old = Cursor { state_json: state.to_string(), ..saved };
    let (mut third, _) = follower(&path, vec![old]);
    assert_eq!(third.look(&key).map(|g| g.rewrite), Some(0));
}

/// Puts a new file in the place of another one, as a program does that writes whole files.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn a_file_replaced_again_and_again_is_new_each_time_and_the_same_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    // Kept under another name, so that the third content gets the inode of the first.
    let kept = dir.path().join("kept");
    add(&path, &format!("{PROMPT}\n"));
    let (mut followed, key) = follower(&path, Vec::new());
    let first = followed.look(&key).unwrap();
    assert_eq!(first.rewrite, 0, "an ordinary first sight");
    std::fs::hard_link(&path, &kept).unwrap();
    let saved = followed.cursor(&key).unwrap();
    replace(&path, &format!("{INTERRUPT}\n"));
    let second = followed.look(&key).unwrap();
    assert!(second.identity != first.identity && second.rewrite != 0);
    let (mut again, _) = follower(&path, vec![saved]);
    assert_eq!(again.look(&key).map(|g| g.rewrite), Some(second.rewrite), "after a crash");
    std::fs::rename(&kept, &path).unwrap();
    std::fs::write(&path, format!("{INTERRUPT}\n")).unwrap();
    let third = followed.look(&key).unwrap();
    assert_eq!(third.identity, first.identity);
    assert!(![first.rewrite, second.rewrite].contains(&third.rewrite));
    assert_eq!(begins(Some(third)), [0]);
}

#[test]
fn a_new_content_waits_for_its_first_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    add(&path, &format!("{PROMPT}\n"));
    let (mut followed, key) = follower(&path, Vec::new());
    assert!(followed.look(&key).is_some());
    let saved = followed.cursor(&key).unwrap();
    let (head, rest) = INTERRUPT.split_at(20);
    // Kept under another name, so that no later content gets its inode.
    std::fs::hard_link(&path, dir.path().join("kept")).unwrap();
    for text in ["", head] {
        replace(&path, text);
        assert!(followed.look(&key).is_none() && followed.cursor(&key).is_none(), "{text:?}");
    }
    add(&path, &format!("{rest}\n"));
    let growth = followed.look(&key).unwrap();
    assert!(growth.rewrite != 0 && followed.cursor(&key).is_some());
    let (mut again, _) = follower(&path, vec![saved]);
    assert_eq!(again.look(&key).map(|g| g.rewrite), Some(growth.rewrite), "after a crash");
    assert_eq!(growth.backlog_end, head.len() as u64, "it was looked at before the line was whole");
}

#[test]
fn what_a_reader_remembers_goes_with_the_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let nothing = follower(&path, Vec::new()).0.followed.into_values().next().unwrap().reader.save();
    let remembered = |follower: &Follower, key: &SessionKey| follower.followed[key].reader.save();
    add(&path, &format!("{CALL}\n"));
    let (mut followed, key) = follower(&path, Vec::new());
    assert!(followed.look(&key).is_some());
    assert_ne!(remembered(&followed, &key), nothing, "a call is open");
    replace(&path, "{}\n");
    assert!(followed.look(&key).is_some());
    assert_eq!(remembered(&followed, &key), nothing);
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
        std::fs::write(&path, format!("{}\n{}{last}", "x".repeat(line.len()), line.repeat(lines))).unwrap();
        let (mut follower, key) = follower(&path, Vec::new());
        let (mut said, mut malformed) = (0, None);
        while let Some(growth) = follower.look(&key) {
            assert!(growth.parsed.lines.iter().all(|line| line.offset < growth.backlog_end));
            said += growth.parsed.observations.len();
            malformed = malformed.or(growth.parsed.malformed);
        }
        assert_eq!(malformed, None);
        assert_eq!(said, lines);
        add(&path, &line);
        let growth = follower.look(&key).unwrap();
        assert!(matches!(growth.parsed.lines[..], [line] if line.offset >= growth.backlog_end));
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
    assert_eq!(follower.folders.watched(), [one, two.clone()]);
    assert!(follower.follow(&key, &two.join("s.jsonl")), "the transcript moved");
    assert_eq!(follower.folders.watched(), std::slice::from_ref(&two));
    follower.unfollow(&key);
    assert_eq!(follower.folders.watched(), [two], "kept for the daemon's own purposes");
}

#[test]
fn a_removed_state_file_still_names_its_session() {
    let dir = tempfile::tempdir().unwrap();
    let projects = dir.path().join("projects").join("p");
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

/// As after an overflow of the kernel's queue, or where it gives no notices.
#[test]
fn a_state_file_whose_removal_was_not_announced_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let (transcript, file) = home_of(dir.path(), "s");
    let (mut follower, _) = follower(&transcript, Vec::new());
    let everything = BTreeSet::new();
    assert_eq!(follower.state_files_at(&everything).len(), 1);
    std::fs::remove_file(&file).unwrap();
    let gone = follower.state_files_at(&everything);
    assert!(matches!(&gone[..], [gone] if gone.content.is_none() && gone.path == file), "{gone:?}");
    assert_eq!(gone[0].file.observation.session.as_deref(), Some("s"));
    assert!(follower.state_files_at(&everything).is_empty(), "once");
}

#[test]
fn a_state_file_that_cannot_be_read_is_not_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (transcript, file) = home_of(dir.path(), "s");
    let (mut follower, _) = follower(&transcript, Vec::new());
    let everything = BTreeSet::new();
    assert_eq!(follower.state_files_at(&everything).len(), 1);
    std::fs::write(&file, vec![b' '; usize::try_from(STATE_FILE_BYTES).unwrap() + 1]).unwrap();
    assert!(follower.state_files_at(&everything).is_empty(), "too large");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(follower.state_files_at(&everything).is_empty(), "no file");
    assert_eq!(follower.take_unread_state_files(), 2);
    std::fs::write(file.with_file_name("other"), vec![b' '; 1 << 17]).unwrap();
    std::fs::remove_dir(&file).unwrap();
    assert_eq!(follower.state_files_at(&everything).len(), 1, "gone");
    assert_eq!(follower.take_unread_state_files(), 0, "nor are others any");
}

/// A home of an agent with one transcript and one state file that names its session.
fn home_of(dir: &Path, id: &str) -> (PathBuf, PathBuf) {
    let (projects, registry) = (dir.join("projects").join("p"), dir.join("sessions"));
    for folder in [&projects, &registry] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let file = registry.join("77.json");
    std::fs::write(&file, format!(r#"{{"pid":77,"sessionId":"{id}","status":"busy"}}"#)).unwrap();
    (projects.join(format!("{id}.jsonl")), file)
}

#[test]
fn a_state_folder_goes_with_the_last_session_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let (first, file) = home_of(dir.path(), "s");
    let second = first.with_file_name("t.jsonl");
    let (mut follower, s) = follower(&first, Vec::new());
    let t = SessionKey::new(AgentKind::Claude, "t");
    assert!(follower.follow(&t, &second) && follower.follow(&t, &second));
    let everything = BTreeSet::new();
    assert_eq!(follower.state_files_at(&everything).len(), 1);
    follower.unfollow(&s);
    assert_eq!(follower.state_files_at(&everything).len(), 1, "another one is beside it");
    follower.unfollow(&t);
    assert!(follower.state_files_at(&everything).is_empty());
    assert!(follower.folders.watched().is_empty());
    assert!(!follower.state_sessions.contains_key(&file) && follower.state_folders.is_empty());
}

#[test]
fn state_folders_past_the_limit_are_looked_at_with_their_session_only() {
    let dir = tempfile::tempdir().unwrap();
    let mut follower = Follower::new(FileNotices::new(|_| {}), Vec::new());
    let session = |n: usize| SessionKey::new(AgentKind::Claude, format!("s{n}"));
    for n in 0..=STATE_FOLDERS_MAX {
        let (transcript, _) = home_of(&dir.path().join(n.to_string()), &format!("s{n}"));
        assert!(follower.follow(&session(n), &transcript));
    }
    assert_eq!(follower.state_files_at(&BTreeSet::new()).len(), STATE_FOLDERS_MAX);
    assert_eq!(follower.state_files_of(&session(STATE_FOLDERS_MAX)).len(), 1);
    for n in 0..=STATE_FOLDERS_MAX {
        follower.unfollow(&session(n));
    }
    assert!(follower.state_folders.is_empty() && follower.folders.watched().is_empty());
}

#[test]
fn a_path_that_nobody_can_place_is_not_followed() {
    let mut follower = Follower::new(FileNotices::new(|_| {}), Vec::new());
    let key = SessionKey::new(AgentKind::Claude, "s");
    for path in ["", "s.jsonl", "../s.jsonl"] {
        assert!(!follower.follow(&key, Path::new(path)), "{path:?}");
    }
    assert!(!follower.is_blind() && follower.folders.watched().is_empty());
}
