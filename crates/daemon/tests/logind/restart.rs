use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    rig::{BOTH, NO_SLEEPS, Rig, listed},
    under_test::{UnderTest, until},
};

/// `O_CLOEXEC` of <fcntl.h> on every Linux architecture that we build for.
const CLOSE_ON_EXEC: i32 = 0o2_000_000;
const SAMPLE_EVERY: Duration = Duration::from_millis(20);
/// The word to end comes so much later in each further restart, from its first moment until the successor is up.
const STEP: Duration = Duration::from_millis(2);
const STEPS: u32 = 40;

/// Looks at logind's list all the while.
struct Sampler {
    taken: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Vec<String>>>,
}

impl Sampler {
    fn of(pid: u32) -> Self {
        let (taken, end) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, ending) = (Arc::clone(&taken), Arc::clone(&end));
        let thread = std::thread::spawn(move || {
            let mut gaps = Vec::new();
            while !ending.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let seen = held(pid);
                if seen != BOTH {
                    gaps.push(seen);
                }
                counter.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(SAMPLE_EVERY.saturating_sub(begun.elapsed()));
            }
            gaps
        });
        Self { taken, end, thread }
    }

    /// Waits for `more` looks.
    fn look(&self, more: usize) {
        let goal = self.taken.load(Ordering::Relaxed) + more;
        until("logind's list is looked at", || self.taken.load(Ordering::Relaxed) >= goal);
    }

    /// How often it looked, and what else than both locks it saw.
    fn end(self) -> (usize, Vec<Vec<String>>) {
        self.end.store(true, Ordering::Relaxed);
        (self.taken.load(Ordering::Relaxed), self.thread.join().unwrap())
    }
}

/// The blocking locks that logind lists; the delay lock of whoever watches for sleeps is none.
fn held(pid: u32) -> Vec<String> {
    listed(pid).into_iter().filter(|lock| lock.ends_with(" block")).collect()
}

#[track_caller]
fn wait_held(pid: u32, expected: &[&str]) -> Duration {
    until("the locks that logind lists", || held(pid) == expected)
}

/// What every child of the daemon gets. Whoever runs the tests may have left something open, too.
fn inheritable(daemon: &UnderTest) -> Vec<(i32, i32)> {
    daemon.descriptors().into_iter().filter(|(_, flags)| flags & CLOSE_ON_EXEC == 0).collect()
}

fn at_work() -> UnderTest {
    let daemon = UnderTest::start();
    daemon.work();
    wait_held(daemon.pid(), &BOTH);
    daemon
}

#[test]
fn a_restart_leaves_no_gap_while_a_session_works_and_the_lid_is_shut() {
    let rig = Rig::take();
    let daemon = at_work();
    let from_us = inheritable(&daemon);
    rig.shut_lid();
    let sampler = Sampler::of(daemon.pid());
    sampler.look(2);
    let mut took = Vec::new();
    let mut started = daemon.status().started_at;
    for _ in 0..3 {
        let begun = Instant::now();
        daemon.restart(None).wait();
        took.push(begun.elapsed());
        let status = daemon.status();
        assert!(status.started_at > started && status.pid == daemon.pid(), "{status:?}");
        started = status.started_at;
        // The successor has read them back.
        until("the hold is reported", || daemon.awake());
        assert_eq!(inheritable(&daemon), from_us, "a child would get a lock");
        sampler.look(2);
    }
    let (looks, gaps) = sampler.end();
    println!("{looks} looks; the restarts took {took:?}");
    assert!(gaps.is_empty(), "{gaps:?}");
    assert_eq!(rig.sleeps(), NO_SLEEPS, "a gap with the lid shut would have suspended");
    assert_eq!(held(daemon.pid()), BOTH, "one of each");
    rig.open_lid();
    let pid = daemon.pid();
    daemon.stop();
    let took = wait_held(pid, &[]);
    assert!(took < Duration::from_secs(1), "a plain stop lets go: {took:?}");
}

#[test]
fn what_is_not_wanted_any_more_is_let_go_by_the_successor() {
    let _rig = Rig::take();
    let daemon = at_work();
    let config = daemon.place().config.join("config.toml");
    let script = daemon.script(&format!("echo 'keep_awake = \"off\"' > '{}'", config.display()));
    daemon.restart(Some(&script)).wait();
    let took = wait_held(daemon.pid(), &[]);
    println!("let go {took:?} after the successor was ready");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(!daemon.awake());
    daemon.stop();
}

#[test]
fn a_successor_that_cannot_be_started_leaves_the_daemon_and_its_hold_in_place() {
    let rig = Rig::take();
    let mut daemon = at_work();
    let from_us = inheritable(&daemon);
    rig.shut_lid();
    let sampler = Sampler::of(daemon.pid());
    sampler.look(2);
    daemon.restart(Some(Path::new("/nonexistent/watchkeeper"))).wait();
    until("the hold is reported", || daemon.awake());
    sampler.look(2);
    let (looks, gaps) = sampler.end();
    assert!(gaps.is_empty(), "{looks}: {gaps:?}");
    assert_eq!(rig.sleeps(), NO_SLEEPS);
    assert_eq!(daemon.status().counters.get("restart.failed"), Some(&1));
    assert_eq!(inheritable(&daemon), from_us, "a child would get a lock");
    rig.open_lid();
    daemon.terminate();
    assert_eq!(daemon.ended(), Some(0), "it listens for signals again");
}

#[test]
fn a_successor_that_dies_takes_the_hold_with_it() {
    let _rig = Rig::take();
    let mut daemon = at_work();
    let _never_ready = daemon.restart(Some(&daemon.script("exit 7")));
    assert_eq!(daemon.ended(), Some(7));
    let took = wait_held(daemon.pid(), &[]);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// What a predecessor of another version describes may make no sense: the successor says so, closes what it can and goes on.
#[test]
fn a_hand_over_that_makes_no_sense_is_refused_and_written_down() {
    let _rig = Rig::take();
    let daemon = at_work();
    let from_us = inheritable(&daemon);
    let mangled = daemon.script(
        r#"n=$#; while [ "$n" -gt 0 ]; do a=$1; shift; n=$((n-1))
        case $a in *:*:*) a="levitate:1:$(echo "$a" | sed 's/.*://'),$a";; esac; set -- "$@" "$a"; done"#,
    );
    daemon.restart(Some(&mangled)).wait();
    let log = std::fs::read_to_string(daemon.place().state.join("exceptions.log")).unwrap();
    assert!(log.contains("task hand-over failed"), "{log}");
    wait_held(daemon.pid(), &BOTH);
    assert_eq!(inheritable(&daemon), from_us, "a child would get a lock");
    daemon.stop();
}

/// Whenever in a restart the word to end comes, it is heard by one life or the other, and nothing stays held.
#[test]
fn a_stop_during_a_restart_wins_whenever_it_comes() {
    let _rig = Rig::take();
    for step in 0..STEPS {
        let mut daemon = at_work();
        let _nobody_waits = daemon.restart(None);
        let begun = Instant::now();
        while begun.elapsed() < step * STEP {
            std::hint::spin_loop();
        }
        daemon.terminate();
        daemon.ended_as_told();
        let took = wait_held(daemon.pid(), &[]);
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(
            std::fs::File::open(daemon.place().daemon_lock()).unwrap().try_lock().is_ok(),
            "the instance is free"
        );
    }
}
