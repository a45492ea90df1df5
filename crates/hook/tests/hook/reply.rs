//! A daemon is there: what it says and does not say.

use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::net::{UnixListener, UnixStream},
    },
    thread,
    time::{Duration, Instant},
};

use watchkeeper_frame::{Flags, Refusal, Reply};

use crate::rig::{self, BOUND, Home, Server, answering, check, each_hook, hooks, run, spawn, taking};

fn bytes(reply: &Reply<'_>) -> Vec<u8> {
    reply.to_bytes().unwrap()
}

#[test]
fn an_event_is_handed_over() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let server = taking(&home);
        let ran =
            run(&mut home.command(hook, &["claude", "PostToolUse", "one", ""]), b"{\"session_id\":\"s\"}");
        let request = server.next();
        check(&request, "claude", "PostToolUse", b"{\"session_id\":\"s\"}", Flags::default());
        assert_eq!(request.view().unwrap().argv().collect::<Vec<_>>(), [&b"one"[..], b""]);
        let head = request.head();
        assert_eq!((head.hook_pid, head.original_payload_bytes), (ran.pid, 18));
        assert!(head.started_boot_ns > 0 && head.wall_ms > 1_700_000_000_000 && head.delivery != 0);
        assert_eq!(ran.stdout, b"", "{}", hook.name);
        assert!(home.spooled().is_empty());
    });
}

#[test]
fn what_the_daemon_says_is_printed() {
    let long = b"0123456789\n".repeat(20_000);
    for text in [&b"{\"decision\":\"block\"}\n"[..], b"", &long] {
        each_hook(Duration::ZERO, |hook| {
            let home = Home::new();
            let server = answering(&home, vec![bytes(&Reply::Print(text))]);
            let ran = run(&mut home.command(hook, &["claude", "Stop"]), b"{}");
            check(&server.next(), "claude", "Stop", b"{}", Flags::default());
            assert!(ran.stdout == text, "{}: {} bytes", hook.name, ran.stdout.len());
            assert!(home.spooled().is_empty());
        });
    }
}

#[test]
fn a_reply_may_come_in_pieces() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let whole = [bytes(&Reply::Hold { ms: 4_000 }), bytes(&Reply::Print(b"yes"))].concat();
        let server = Server::start(&home, move |mut stream| {
            rig::request(&mut stream);
            for byte in &whole {
                stream.write_all(&[*byte]).unwrap();
                thread::yield_now();
            }
        });
        let ran = run(&mut home.command(hook, &["claude", "Stop"]), b"{}");
        server.next();
        assert_eq!(ran.stdout, b"yes", "{}", hook.name);
    });
}

#[test]
fn a_hold_is_obeyed_beyond_the_usual_deadline() {
    const LATER: Duration = Duration::from_millis(600);
    each_hook(LATER, |hook| {
        let home = Home::new();
        let server = Server::start(&home, |mut stream| {
            rig::request(&mut stream);
            stream.write_all(&bytes(&Reply::Hold { ms: 60_000 })).unwrap();
            // The time a person takes; nothing else happens meanwhile.
            let gone = stream.set_read_timeout(Some(LATER)).and_then(|()| stream.read(&mut [0]));
            assert_eq!(gone.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "the hook left");
            stream.write_all(&bytes(&Reply::Print(b"answer"))).unwrap();
        });
        let ran = run(&mut home.command(hook, &["claude", "PermissionRequest"]), b"{}");
        server.next();
        assert_eq!(ran.stdout, b"answer", "{}", hook.name);
        assert!(ran.elapsed >= LATER);
        assert!(home.spooled().is_empty());
    });
}

#[test]
fn a_hold_ends_at_its_bound_or_with_the_daemon_and_leaves_nothing_behind() {
    for (ms, stays) in [(300, true), (60_000, false)] {
        each_hook(Duration::from_millis(300), |hook| {
            let home = Home::new();
            let server = Server::start(&home, move |mut stream| {
                rig::request(&mut stream);
                stream.write_all(&bytes(&Reply::Hold { ms })).unwrap();
                if stays {
                    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the hook says no more");
                }
            });
            let ran = run(&mut home.command(hook, &["claude", "Stop"]), b"{}");
            server.next();
            assert_eq!(ran.stdout, b"", "{}", hook.name);
            assert_eq!(ran.elapsed >= Duration::from_millis(300), stays);
            assert!(home.spooled().is_empty());
        });
    }
}

#[test]
fn a_holding_hook_leaves_when_nobody_reads_its_answer() {
    for hook in hooks().iter().filter(|hook| hook.name != "portable") {
        let home = Home::new();
        let (sender, held) = std::sync::mpsc::channel();
        let server = Server::start(&home, move |mut stream| {
            rig::request(&mut stream);
            stream.write_all(&bytes(&Reply::Hold { ms: 60_000 })).unwrap();
            sender.send(()).unwrap();
            stream.read(&mut [0]).unwrap()
        });
        let mut child = spawn(&mut home.command(hook, &["claude", "Stop"]));
        drop(child.stdin.take());
        held.recv_timeout(BOUND).unwrap();
        drop(child.stdout.take());
        rig::finish(child, Instant::now());
        assert_eq!(server.next(), 0);
        assert!(home.spooled().is_empty());
    }
}

#[test]
fn without_a_durable_word_the_event_goes_to_the_spool_under_its_own_id() {
    let refusal = |reason| vec![bytes(&Reply::Refused(reason))];
    let cases: [(&str, Vec<Vec<u8>>); 6] = [
        ("closes", vec![]),
        ("half a reply", vec![bytes(&Reply::Taken)[..5].to_vec()]),
        ("nonsense", vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]),
        ("overloaded", refusal(Refusal::Overloaded)),
        ("storage", refusal(Refusal::Storage)),
        ("unknown reason", refusal(Refusal::Other(77))),
    ];
    for (case, parts) in cases {
        each_hook(Duration::ZERO, |hook| {
            let home = Home::new();
            let server = answering(&home, parts.clone());
            let ran = run(&mut home.command(hook, &["claude", "Stop"]), b"{}");
            let (sent, spooled) = (server.next(), home.one_spooled());
            check(&spooled, "claude", "Stop", b"{}", Flags::SPOOLED);
            assert_eq!(sent.head().delivery, spooled.head().delivery, "{case}, {}", hook.name);
            assert_eq!(ran.stdout, b"");
        });
    }
}

#[test]
fn a_daemon_that_never_answers_is_not_waited_for() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let server = Server::start(&home, |mut stream| {
            let request = rig::request(&mut stream);
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            request
        });
        run(&mut home.command(hook, &["claude", "Stop"]), b"{}");
        assert_eq!(server.next().head().delivery, home.one_spooled().head().delivery, "{}", hook.name);
    });
}

#[test]
fn a_daemon_that_stops_reading_is_not_waited_for() {
    let payload = vec![b'p'; 3_000_000];
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let server = Server::start(&home, |mut stream| {
            let mut some = [0; 100];
            stream.read_exact(&mut some).unwrap();
            stream
        });
        run(&mut home.command(hook, &["claude", "Stop"]), &payload);
        check(&home.one_spooled(), "claude", "Stop", &payload, Flags::SPOOLED);
        drop(server.next());
    });
}

#[test]
fn a_daemon_that_accepts_nobody_is_not_waited_for() {
    each_hook(Duration::from_millis(250), |hook| {
        let home = Home::new();
        let socket = home.place().hook_socket();
        let listener = UnixListener::bind(&socket).unwrap();
        shorten_queue(&listener);
        // A queue of length 0 holds one.
        let waiting = UnixStream::connect(&socket).unwrap();
        run(&mut home.command(hook, &["claude", "SessionStart"]), b"{}");
        check(&home.one_spooled(), "claude", "SessionStart", b"{}", Flags::SPOOLED);
        drop((listener, waiting));
    });
}

/// Lets no more connections wait than the system always lets wait.
#[expect(unsafe_code, reason = "the standard library does not let the length be chosen")]
fn shorten_queue(listener: &UnixListener) {
    unsafe extern "C" {
        safe fn listen(socket: i32, length: i32) -> i32;
    }
    assert_eq!(listen(listener.as_raw_fd(), 0), 0);
}

#[test]
fn closed_descriptors_are_no_trouble() {
    each_hook(Duration::ZERO, |hook| {
        for redirections in [">&-", "<&-", "<&- >&-", "<&- >&- 2>&-", ">/dev/full", "</"] {
            let home = Home::new();
            let server = Server::start(&home, |mut stream| {
                let request = rig::request(&mut stream);
                stream.write_all(&bytes(&Reply::Print(b"text"))).unwrap();
                // Nothing but the end may follow: the text must not come back to us.
                assert_eq!(stream.read(&mut [0; 9]).unwrap_or(0), 0, "{request:?}");
                request
            });
            run(&mut home.shell(hook, "", redirections), b"{}");
            let request = server.next();
            if redirections == ">&-" {
                check(&request, "claude", "Stop", b"{}", Flags::default());
            }
            if redirections == "</" {
                check(&request, "claude", "Stop", b"", Flags::INPUT_FAILED);
            }
            assert!(home.spooled().is_empty(), "{}: {redirections}", hook.name);
        }
    });
}

#[test]
fn a_reader_that_is_gone_is_no_trouble() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let server = answering(&home, vec![bytes(&Reply::Print(&[b'x'; 100_000]))]);
        let mut child = spawn(&mut home.command(hook, &["claude", "Stop"]));
        drop(child.stdout.take());
        rig::finish(child, Instant::now());
        server.next();
    });
}

#[test]
fn a_reader_that_does_not_read_is_not_waited_for() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let server = answering(&home, vec![bytes(&Reply::Print(&[b'x'; 200_000]))]);
        let mut child = spawn(&mut home.command(hook, &["claude", "Stop"]));
        let unread = child.stdout.take();
        rig::finish(child, Instant::now());
        server.next();
        drop(unread);
    });
}

#[test]
fn many_at_once_all_arrive_once() {
    each_hook(Duration::ZERO, |hook| {
        let home = Home::new();
        let server = taking(&home);
        let started = Instant::now();
        let children: Vec<_> =
            (0..64).map(|_| spawn(&mut home.command(hook, &["codex", "PreToolUse"]))).collect();
        for mut child in children {
            drop(child.stdin.take());
            rig::finish(child, started);
        }
        // On a machine too slow for 64 at once some take the way through the spool, perhaps both ways.
        let late = || home.spooled().into_iter().map(|request| request.head().delivery);
        let mut ids: BTreeSet<u128> = late().collect();
        while ids.len() < 64
            && let Some(request) = server.try_next()
        {
            ids.insert(request.head().delivery);
        }
        ids.extend(late());
        assert_eq!(ids.len(), 64, "{}", hook.name);
    });
}
