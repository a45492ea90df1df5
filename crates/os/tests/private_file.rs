//! Private files: what others could have read or put, and what is no file, counts for nothing.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use watchkeeper_os::private_file::{PrivateFileError, read_private};

/// Long enough for a busy machine; a test that waits that long fails.
const PATIENCE: Duration = Duration::from_secs(20);

fn put(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_owner_s_own_file_is_read_to_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    assert!(matches!(read_private(&path, 4), Err(PrivateFileError::Io(_))));
    for mode in [0o600, 0o400, 0o700] {
        put(&path, "1234", mode);
        assert_eq!(read_private(&path, 4).unwrap(), b"1234", "{mode:o}");
        fs::remove_file(&path).unwrap();
    }
    put(&path, "12345", 0o600);
    assert!(matches!(read_private(&path, 4), Err(PrivateFileError::TooLong { bytes_max: 4 })));
    put(&path, "", 0o600);
    assert_eq!(read_private(&path, 0).unwrap(), b"");
}

#[test]
fn what_others_may_open_or_own_is_exposed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    for mode in [0o640, 0o620, 0o604, 0o602, 0o610, 0o601] {
        put(&path, "1234", mode);
        assert!(matches!(read_private(&path, 4), Err(PrivateFileError::Exposed)), "{mode:o}");
    }
    // Only the superuser can give a file away, and open it then.
    if rustix::process::geteuid().is_root() {
        put(&path, "1234", 0o600);
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        assert!(matches!(read_private(&path, 4), Err(PrivateFileError::Exposed)), "another's");
    }
}

#[test]
fn links_pipes_and_folders_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let (real, path) = (folder.path().join("real"), folder.path().join("secret"));
    put(&real, "1234", 0o600);
    symlink(&real, &path).unwrap();
    assert!(matches!(read_private(&path, 4), Err(PrivateFileError::Io(_))), "a link");
    fs::remove_file(&path).unwrap();
    // Nobody ever writes to it: to open it plainly would be to wait for ever.
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap().success());
    let (tell, told) = mpsc::channel();
    let pipe = path.clone();
    thread::spawn(move || tell.send(read_private(&pipe, 4)));
    let read = told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(read, Err(PrivateFileError::NotAFile)), "a pipe");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(read_private(folder.path(), 4), Err(PrivateFileError::NotAFile)), "a folder");
    assert!(matches!(read_private(Path::new("/dev/null"), 4), Err(PrivateFileError::NotAFile)), "a device");
}
