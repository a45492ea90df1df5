//! Whatever lies where a transcript should be, or stands in one: nobody waits for it, what is no transcript is not read, and
//! what comes behind it is.

use super::*;

#[cfg(unix)]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Looks, and fails when that takes too long.
#[cfg(unix)]
fn look_in_time(mut follower: Follower, key: &SessionKey) -> (Follower, Option<Growth>) {
    let (told, looked) = std::sync::mpsc::channel();
    let key = key.clone();
    std::thread::spawn(move || {
        let growth = follower.look(&key);
        _ = told.send((follower, growth));
    });
    looked.recv_timeout(PATIENCE).expect("it waits for nobody")
}

/// Puts something at a path.
#[cfg(unix)]
type Put = fn(&Path) -> io::Result<()>;

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_at_once_and_the_file_after_it_is_followed() {
    use std::os::unix::{fs::symlink, net::UnixListener};
    let strange: [(&str, Put); 5] = [
        ("a folder", |path| std::fs::create_dir(path)),
        ("a pipe", |path| {
            std::process::Command::new("mkfifo").arg(path).status().map(|s| assert!(s.success()))
        }),
        ("a link to itself", |path| symlink(path, path)),
        ("a socket", |path| UnixListener::bind(path).map(drop)),
        ("an endless device", |path| symlink("/dev/zero", path)),
    ];
    for (what, put) in strange {
        let dir = tempfile::tempdir().unwrap();
        let (path, aside) = (dir.path().join("s.jsonl"), dir.path().join("aside"));
        add(&path, &format!("{INTERRUPT}\n"));
        let (mut followed, key) = follower(&path, Vec::new());
        assert_eq!(begins(followed.look(&key)), [0]);
        let saved = followed.cursor(&key);
        std::fs::rename(&path, &aside).unwrap();
        put(&path).unwrap();
        let (mut followed, growth) = look_in_time(followed, &key);
        assert!(growth.is_none(), "{what}");
        assert_eq!(followed.cursor(&key), saved, "{what}");
        std::fs::rename(&path, dir.path().join("refused")).unwrap();
        assert!(followed.look(&key).is_none(), "{what}: gone");
        std::fs::rename(&aside, &path).unwrap();
        add(&path, &format!("{INTERRUPT}\n"));
        assert_eq!(begins(followed.look(&key)), [INTERRUPT.len() as u64 + 1], "{what}: back");
    }
}

#[test]
fn what_is_cut_within_a_line_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    add(&path, &format!("{INTERRUPT}\n{INTERRUPT}\n"));
    let (mut followed, key) = follower(&path, Vec::new());
    let second = INTERRUPT.len() as u64 + 1;
    assert_eq!(begins(followed.look(&key)), [0, second]);
    let (head, rest) = INTERRUPT.split_at(20);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(second + head.len() as u64).unwrap();
    let cut = followed.look(&key).unwrap();
    assert_ne!(cut.rewrite, 0);
    assert_eq!(begins(Some(cut)), [0]);
    add(&path, &format!("{rest}\n"));
    assert_eq!(begins(followed.look(&key)), [second]);
    file.set_len(0).unwrap();
    assert!(followed.look(&key).is_none());
    add(&path, &format!("{INTERRUPT}\n"));
    assert_eq!(begins(followed.look(&key)), [0]);
}

#[test]
fn a_rotated_file_is_followed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let (path, rotated) = (dir.path().join("s.jsonl"), dir.path().join("s.jsonl.1"));
    add(&path, &format!("{INTERRUPT}\n"));
    let (mut followed, key) = follower(&path, Vec::new());
    assert_eq!(begins(followed.look(&key)), [0]);
    std::fs::rename(&path, &rotated).unwrap();
    add(&rotated, &format!("{INTERRUPT}\n"));
    assert!(followed.look(&key).is_none());
    add(&path, &format!("{{}}\n{INTERRUPT}\n"));
    let growth = followed.look(&key).unwrap();
    assert_ne!(growth.rewrite, 0);
    assert_eq!(begins(Some(growth)), [3]);
}

#[cfg(unix)]
#[test]
fn what_belongs_to_somebody_else_is_refused_until_it_is_ours() {
    const NOBODY: u32 = 65534;
    let own = rustix::process::geteuid().as_raw();
    assert!(
        is_trusted(own, own) && is_trusted(0, own) && !is_trusted(own + 1, own) && !is_trusted(NOBODY, 1000)
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    add(&path, &format!("{INTERRUPT}\n"));
    let (mut followed, key) = follower(&path, Vec::new());
    if let Err(error) = std::os::unix::fs::chown(&path, Some(NOBODY), None) {
        // Only root gives a file away; who cannot has seen above how it is judged.
        assert_ne!(own, 0, "{error}");
        return;
    }
    assert!(followed.look(&key).is_none());
    std::os::unix::fs::chown(&path, Some(own), None).unwrap();
    assert_eq!(begins(followed.look(&key)), [0]);
}

#[test]
fn what_is_no_text_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let with = |piece: &[u8]| {
        let (head, rest) = INTERRUPT.split_at(INTERRUPT.len() / 2);
        [head.as_bytes(), piece, rest.as_bytes()].concat()
    };
    // A block of zeros is what some file systems leave of a write that a crash tore.
    let zeros = vec![0; 5000];
    let strange: [Vec<u8>; 6] = [
        b"\xff\xfe".to_vec(),
        zeros.clone(),
        with(b"\xff\xc0\x80"),
        with(b"\0"),
        [&zeros[..], INTERRUPT.as_bytes()].concat(),
        [INTERRUPT.as_bytes(), &zeros[..]].concat(),
    ];
    let (mut content, mut whole) = (Vec::new(), Vec::new());
    for line in strange {
        content.extend_from_slice(&line);
        content.push(b'\n');
        whole.push(content.len() as u64);
        content.extend_from_slice(INTERRUPT.as_bytes());
        content.push(b'\n');
    }
    std::fs::write(&path, content).unwrap();
    let (mut followed, key) = follower(&path, Vec::new());
    assert_eq!(begins(followed.look(&key)), whole);
}

#[test]
fn ten_million_lines_are_read_in_turns() {
    const LINES: usize = 10_000_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    add(&path, "");
    let (mut followed, key) = follower(&path, Vec::new());
    // Looked at while it was short: no part of it is left out.
    assert!(followed.look(&key).is_none());
    add(&path, &"{}\n".repeat(LINES));
    add(&path, &format!("{INTERRUPT}\n"));
    let (mut read, mut said) = (0, Vec::new());
    while let Some(growth) = followed.look(&key) {
        let now = &followed.followed[&key];
        assert!(now.offset - read <= (TURN_BYTES + READ_BYTES) as u64, "no more in one turn");
        assert!(now.scanner.pending() <= INTERRUPT.len() as u64);
        read = now.offset;
        said.extend(begins(Some(growth)));
    }
    assert_eq!(said, [3 * LINES as u64]);
}
