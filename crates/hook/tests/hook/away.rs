//! No daemon: the event waits in the spool, whatever the disk does.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, time::Duration};

use watchkeeper_frame::{
    Flags, Head,
    event::EventClass,
    spool::{Listing, SPOOL_MAX_FILES, Spool, SpoolName},
};

use crate::rig::{Home, check, each_hook, hooks, run, until};

#[test]
fn the_event_waits_in_the_spool() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let ran = run(&mut home.command(hook, &["claude", "SessionEnd", "more"]), b"\0{}");
        let request = home.one_spooled();
        check(&request, "claude", "SessionEnd", b"\0{}", Flags::SPOOLED);
        assert_eq!(request.view().unwrap().argv().collect::<Vec<_>>(), [b"more"]);
        assert_eq!(request.head().hook_pid, ran.pid);
        assert_eq!(ran.stdout, b"");
        if cfg!(target_os = "linux") {
            let text = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
            assert_eq!(
                request.head().boot_id,
                watchkeeper_frame::place_rules::boot_id(&text),
                "{}",
                hook.name
            );
        }
        let path = Spool::at(home.place().spool()).drain_order(0).unwrap().files.remove(0);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&path), mode(&home.place().spool()), mode(&home.place().state)),
            (0o600, 0o700, 0o700)
        );
    });
}

#[test]
fn events_wait_in_order() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"] {
            run(&mut home.command(hook, &["claude", event]), event.as_bytes());
        }
        let payloads: Vec<_> = home.all_spooled(4).iter().map(|request| request.payload().to_vec()).collect();
        assert_eq!(
            payloads,
            [&b"SessionStart"[..], b"UserPromptSubmit", b"PreToolUse", b"Stop"],
            "{}",
            hook.name
        );
    });
}

#[test]
fn a_socket_that_nobody_listens_on_is_no_daemon() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        drop(std::os::unix::net::UnixListener::bind(home.place().hook_socket()).unwrap());
        run(&mut home.command(hook, &["claude", "Stop"]), b"{}");
        check(&home.one_spooled(), "claude", "Stop", b"{}", Flags::SPOOLED);
    });
}

#[test]
fn a_socket_path_that_is_too_long_is_no_daemon() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let mut command = Command::new(&hook.program);
        command.arg("--run").arg(home.dir.join("d".repeat(120)));
        command.arg("--state").arg(home.place().state).args(["claude", "Stop"]);
        run(&mut command, b"{}");
        check(&home.one_spooled(), "claude", "Stop", b"{}", Flags::SPOOLED);
    });
}

#[test]
fn a_full_spool_gives_up_its_oldest_ordinary_event() {
    let home = Home::new();
    let spool = home.place().spool();
    fs::create_dir_all(&spool).unwrap();
    let path = |at: usize, class| {
        let at = u64::try_from(at).unwrap();
        let head = Head { started_boot_ns: at, delivery: at.into(), ..Head::default() };
        spool.join(String::from_utf8(SpoolName::new(&head, class, 100).write().to_vec()).unwrap())
    };
    for at in 0..SPOOL_MAX_FILES {
        let class = if at % 100 == 50 { EventClass::Ordinary } else { EventClass::Ends };
        fs::write(path(at, class), "").unwrap();
    }
    let spooled = Spool::at(&spool);
    for (round, hook) in hooks().iter().enumerate() {
        run(&mut home.command(hook, &["claude", "Stop"]), b"");
        let mut listing = Listing::default();
        until("the event takes a place", || {
            listing = spooled.drain_order(0).unwrap();
            let newest = listing.files.last().and_then(|file| Spool::read(file).ok());
            newest.is_some() && listing.files.len() == SPOOL_MAX_FILES
        });
        assert_eq!(
            Spool::read(listing.files.last().unwrap()).unwrap().request.view().unwrap().event,
            b"Stop"
        );
        // On a slow disk the hook leaves before its child has made room.
        assert!(!path(100 * round + 50, EventClass::Ordinary).exists(), "{}", hook.name);
        assert!(path(100 * round + 150, EventClass::Ordinary).exists() && path(0, EventClass::Ends).exists());
        assert_eq!(spooled.take_dropped().unwrap(), 1);
    }
}

#[test]
fn a_disk_without_room_loses_the_event_and_nothing_else() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        run(&mut home.shell(hook, "ulimit -f 0;", ""), b"{}");
        let spool = home.place().spool();
        assert_eq!(Spool::at(&spool).drain_order(0).unwrap(), Listing::default(), "{}", hook.name);
        assert_eq!(fs::read_dir(&spool).unwrap().count(), 0, "{}: a half-written file stayed", hook.name);
    });
}

#[test]
fn a_state_directory_that_cannot_be_written_loses_the_event_and_nothing_else() {
    each_hook(Duration::ZERO, |hook| {
        // /proc refuses even root; a file in the way refuses everybody; the third refuses all but root.
        let home = Home::new();
        let file = home.dir.join("file");
        fs::write(&file, "mine").unwrap();
        let closed = home.dir.join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
        for state in [Path::new("/proc/1/task"), &file, &closed] {
            let mut command = Command::new(&hook.program);
            command.arg("--run").arg(home.place().run).arg("--state").arg(state).args(["claude", "Stop"]);
            run(&mut command, b"{}");
        }
        assert_eq!(fs::read(&file).unwrap(), b"mine");
    });
}

/// What a busy disk does to every call is done here by a lease: whoever opens that file waits for its holder.
#[cfg(target_os = "linux")]
mod blocked {
    #![expect(unsafe_code, reason = "no lease without the C library")]

    use std::{fs::File, os::fd::AsRawFd as _};

    use super::*;

    unsafe extern "C" {
        fn fcntl(descriptor: i32, command: i32, argument: i32) -> i32;
    }

    /// `F_SETLEASE`, `F_SETSIG`, `F_WRLCK`, `F_UNLCK` and `SIGURG` of the kernel's headers; that signal ends nobody.
    const SET_LEASE: i32 = 1024;
    const SET_SIGNAL: i32 = 10;
    const WRITE: i32 = 1;
    const NONE: i32 = 2;
    const URGENT: i32 = 23;

    #[track_caller]
    fn control(file: &File, command: i32, argument: i32) {
        // SAFETY: these commands take a number and touch no memory.
        assert_eq!(unsafe { fcntl(file.as_raw_fd(), command, argument) }, 0, "{command}");
    }

    #[test]
    fn a_disk_that_blocks_holds_no_hook_and_loses_no_event() {
        each_hook(Duration::ZERO, |hook| {
            let home = Home::new();
            let spool = home.place().spool();
            fs::create_dir_all(&spool).unwrap();
            for at in 0..SPOOL_MAX_FILES as u64 {
                let head = Head { started_boot_ns: at, delivery: at.into(), ..Head::default() };
                let name = SpoolName::new(&head, EventClass::Ordinary, 100).write();
                fs::write(spool.join(String::from_utf8(name.to_vec()).unwrap()), "").unwrap();
            }
            // The oldest event has to leave, and that is counted in this file.
            let leased = File::create(spool.join("dropped")).unwrap();
            control(&leased, SET_SIGNAL, URGENT);
            control(&leased, SET_LEASE, WRITE);
            let ran = run(&mut home.command(hook, &["claude", "Stop"]), b"{}");
            let listing = || Spool::at(&spool).drain_order(0).unwrap().files;
            let newest = || Spool::read(listing().last().unwrap());
            assert!(ran.elapsed < Duration::from_secs(2), "{}: it took {:?}", hook.name, ran.elapsed);
            assert!(newest().is_err(), "{}: nothing blocked", hook.name);
            control(&leased, SET_LEASE, NONE);
            until("the event arrives", || newest().is_ok());
            check(&newest().unwrap().request, "claude", "Stop", b"{}", Flags::SPOOLED);
            assert_eq!(listing().len(), SPOOL_MAX_FILES);
        });
    }
}
