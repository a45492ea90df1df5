//! The daemon of the instance below a folder, for tests that restart it: `HOME [--handed TEXT] [--notify PATH]`.

#![expect(clippy::unwrap_used, reason = "a program for tests dies of what it cannot do")]

use std::path::PathBuf;

use watchkeeper_daemon::{HANDED_OPTION, NOTIFY_OPTION, Origin, Place};

fn main() {
    let mut words = std::env::args_os().skip(1);
    let home = words.next().unwrap();
    let mut origin = Origin {
        owns_process: true,
        successor_program: Some(std::env::current_exe().unwrap()),
        successor_arguments: vec![home.clone()],
        ..Origin::default()
    };
    while let Some(option) = words.next() {
        let word = words.next().unwrap();
        if option == HANDED_OPTION {
            origin.handed = Some(word.into_string().unwrap());
        } else {
            assert_eq!(option, NOTIFY_OPTION);
            origin.notify = Some(word.into());
        }
    }
    watchkeeper_daemon::run(Place::of_home(&PathBuf::from(home)), true, origin).unwrap();
}
