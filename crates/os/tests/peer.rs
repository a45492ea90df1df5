//! Who is at the other end: a real second program (this one, started again) connects over a Unix socket.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test without the harness")]
mod linux {
    use std::{
        io::Read,
        os::{
            fd::AsFd,
            unix::net::{UnixListener, UnixStream},
        },
        process::{Child, Command, Stdio},
    };

    use watchkeeper_os::process::{
        Probe, identity,
        peer::{Peer, of_socket},
    };

    pub(super) fn main() {
        let arguments: Vec<String> = std::env::args().collect();
        if let [_, word, socket] = arguments.as_slice()
            && word == "connect"
        {
            let stream = UnixStream::connect(socket).unwrap();
            // Lives until its stdin ends.
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
            return drop(stream);
        }
        for (name, test) in TESTS {
            test();
            println!("test {name} ... ok");
        }
    }

    const TESTS: &[(&str, fn())] = &[
        ("a_waiting_peer_is_named", a_waiting_peer_is_named),
        ("an_exited_peer_is_gone", an_exited_peer_is_gone),
        ("the_peer_of_a_pair_is_ourselves", the_peer_of_a_pair_is_ourselves),
        ("a_file_has_no_peer", a_file_has_no_peer),
    ];

    fn connected() -> (Child, UnixStream, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .arg("connect")
            .arg(&socket)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let (stream, _) = listener.accept().unwrap();
        (child, stream, folder)
    }

    fn peer(stream: &UnixStream) -> Peer {
        of_socket(stream.as_fd()).unwrap()
    }

    fn a_waiting_peer_is_named() {
        let (mut child, stream, _folder) = connected();
        let peer = peer(&stream);
        assert_eq!(peer.pid, Some(child.id()));
        assert_eq!(peer.uid, Some(rustix::process::geteuid().as_raw()));
        assert_eq!(peer.process, identity::identify(child.id()));
        assert!(matches!(peer.process, Probe::Yes(process) if process.pid == child.id()));
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }

    fn an_exited_peer_is_gone() {
        let (mut child, stream, _folder) = connected();
        drop(child.stdin.take());
        // Not reaped yet, then reaped.
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert_eq!(peer(&stream).process, Probe::No);
        child.wait().unwrap();
        assert_eq!(peer(&stream).process, Probe::No);
        assert_eq!(peer(&stream).pid, Some(child.id()));
    }

    fn the_peer_of_a_pair_is_ourselves() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(peer(&one).process, identity::own());
    }

    fn a_file_has_no_peer() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(of_socket(file.as_fd()).is_err());
    }
}
