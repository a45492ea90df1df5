//! How late an exit is told with 10,000 processes watched, against a bare poll of one pidfd.
//!
//! `cargo bench -p watchkeeper-os --bench exit_watch [-- PROCESSES SAMPLES]`. Prints floor, ours and their ratio for the
//! same act: one process of many is killed; how long until the watcher, on a thread of its own, knows.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]
mod linux {
    use std::{
        collections::VecDeque,
        fs,
        io::PipeReader,
        process::{Child, Command, Stdio},
        sync::mpsc::{self, Receiver, Sender},
        thread,
        time::{Duration, Instant},
    };

    use rustix::{
        event::{PollFd, PollFlags, poll},
        process::{Pid, PidfdFlags, pidfd_open},
    };
    use tokio::runtime;
    use watchkeeper_core::identity::ProcessRef;
    use watchkeeper_os::process::{
        exit_watch::{ExitWatch, Watch},
        identity, open_files,
    };

    const PROCESSES: usize = 10_000;
    const SAMPLES: usize = 2_000;
    /// Ours may take this many times the floor at p99.
    const GOAL: f64 = 2.0;
    const REST: Duration = Duration::from_secs(2);

    pub(super) fn main() {
        let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse().ok());
        let processes = numbers.next().unwrap_or(PROCESSES);
        let samples = numbers.next().unwrap_or(SAMPLES).min(processes);
        let limit = open_files::raise();
        println!("descriptor limit {:?}, {processes} processes, {samples} samples each", limit.after);
        // They end with this program, however it ends: each reads a pipe whose other end only we hold.
        let (input, _alive) = std::io::pipe().unwrap();
        let mut children: VecDeque<Child> = (0..processes + samples).map(|_| start(&input)).collect();
        drop(input);

        let (watcher, told) = watch(children.iter().skip(samples).map(|child| child.id()).collect());
        let switches = switches_at_rest(watcher);
        println!("voluntary context switches of the watcher in {REST:?} at rest: {switches}");
        // Taken in turn, so that whatever else the machine does befalls both alike.
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..samples {
            floor.push(time_bare_poll(children.pop_front().unwrap()));
            let child = children.pop_back().unwrap();
            let pid = child.id();
            let begun = kill(child);
            let (process, at) = told.recv().unwrap();
            assert_eq!(process.pid, pid);
            ours.push(at - begun);
        }
        let burst = children.len();
        let begun = Instant::now();
        let killed: Vec<Child> = children
            .into_iter()
            .map(|mut child| {
                child.kill().unwrap();
                child
            })
            .collect();
        for _ in 0..burst {
            told.recv().unwrap();
        }
        let took = begun.elapsed();
        for mut child in killed {
            child.wait().unwrap();
        }
        let (p50, p99) = (ratio(&mut floor, &mut ours, 50), ratio(&mut floor, &mut ours, 99));
        // For `cargo xtask bench`, which judges.
        println!("figure exit.floor_p99_us {:.3}", micros(&floor, 99));
        println!("figure exit.p99_us {:.3}", micros(&ours, 99));
        println!("figure exit.switches {switches}");
        println!("burst: {burst} kills told in {took:?}");
        println!("exit_watch p50 ratio {p50:.2}, p99 ratio {p99:.2} (goal {GOAL})");
    }

    fn ratio(floor: &mut [Duration], ours: &mut [Duration], percent: usize) -> f64 {
        floor.sort_unstable();
        ours.sort_unstable();
        let (floor, ours) = (micros(floor, percent), micros(ours, percent));
        println!("p{percent}: floor (bare poll of one pidfd) {floor:.1} us, ours {ours:.1} us");
        ours / floor
    }

    /// Of sorted times.
    fn micros(times: &[Duration], percent: usize) -> f64 {
        times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e6
    }

    fn start(input: &PipeReader) -> Child {
        Command::new("cat").stdin(input.try_clone().unwrap()).stdout(Stdio::null()).spawn().unwrap()
    }

    /// Kills and leaves the zombie to a reaper thread, so that reaping is in neither figure.
    fn kill(mut child: Child) -> Instant {
        let begun = Instant::now();
        child.kill().unwrap();
        thread::spawn(move || child.wait().unwrap());
        begun
    }

    fn time_bare_poll(child: Child) -> Duration {
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let (ready, waiting) = mpsc::channel();
        let (send, told) = mpsc::channel();
        let poller = thread::spawn(move || {
            ready.send(rustix::thread::gettid()).unwrap();
            poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
            send.send(Instant::now()).unwrap();
        });
        wait_until_asleep(waiting.recv().unwrap());
        let begun = kill(child);
        let at: Instant = told.recv().unwrap();
        poller.join().unwrap();
        at - begun
    }

    fn watch(pids: Vec<u32>) -> (Pid, Receiver<(ProcessRef, Instant)>) {
        let (ready, waiting) = mpsc::channel();
        let (send, told): (Sender<(ProcessRef, Instant)>, _) = mpsc::channel();
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let watch = ExitWatch::new().unwrap();
                let begun = Instant::now();
                for pid in pids {
                    let process = identity::identify(pid).yes().unwrap();
                    assert_eq!(watch.watch(process).unwrap(), Watch::Kernel);
                }
                println!("{} watches set up in {:?}", watch.len(), begun.elapsed());
                ready.send(rustix::thread::gettid()).unwrap();
                while !watch.is_empty() {
                    let process = watch.next().await;
                    if send.send((process, Instant::now())).is_err() {
                        break;
                    }
                }
            });
        });
        let thread = waiting.recv().unwrap();
        wait_until_asleep(thread);
        (thread, told)
    }

    fn status(thread: Pid, field: &str) -> String {
        let path = format!("/proc/self/task/{}/status", thread.as_raw_nonzero());
        let text = fs::read_to_string(path).unwrap();
        text.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim().to_owned()
    }

    fn wait_until_asleep(thread: Pid) {
        while !status(thread, "State:").starts_with('S') {
            thread::yield_now();
        }
    }

    fn switches_at_rest(thread: Pid) -> u64 {
        let count = || status(thread, "voluntary_ctxt_switches:").parse::<u64>().unwrap();
        let before = count();
        thread::sleep(REST);
        count() - before
    }
}
