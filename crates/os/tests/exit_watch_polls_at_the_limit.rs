//! At the descriptor limit a process is polled, which is said, and its exit is still told. A file of its own: the
//! limit holds for the whole program.
#![cfg(target_os = "linux")]

use std::{
    fs::File,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{runtime, time::timeout};
use watchkeeper_os::process::{
    exit_watch::{ExitWatch, POLL_INTERVAL, Watch},
    identity, open_files,
};

#[test]
fn an_exit_is_told_by_polling_and_the_limit_can_be_raised() {
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let watch = ExitWatch::new().unwrap();
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = identity::identify(cat.id()).yes().unwrap();
        let limit = getrlimit(Resource::Nofile);
        let low = Rlimit { current: Some(64), maximum: limit.maximum };
        setrlimit(Resource::Nofile, low).unwrap();
        let mut filling = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            filling.push(file);
        }
        let watched = watch.watch(process).unwrap();
        drop(filling);
        assert!(matches!(&watched, Watch::Polled { why } if why.contains("pidfd_open")), "{watched:?}");
        assert_eq!((watch.len(), watch.polled_len()), (1, 1));
        drop(cat.stdin.take());
        let told = timeout(POLL_INTERVAL + Duration::from_secs(20), watch.next()).await;
        assert_eq!(told, Ok(process));
        assert!(watch.is_empty());
        cat.wait().unwrap();

        let raised = open_files::raise();
        assert_eq!((raised.before, raised.after), (Some(64), limit.maximum));
    });
}
