use std::time::{Duration, Instant};

use watchkeeper_os::{
    clock,
    process::{
        Probe,
        tree_cpu::{Root, TreeSample, sample},
    },
};

use crate::child::Cat;

#[track_caller]
fn sample_one(root: Root) -> TreeSample {
    sample(&[root]).remove(0).yes().unwrap()
}

#[test]
fn a_tree_counts_its_members_and_names_its_young() {
    let before = clock::now().boot;
    // The kernel tells starts to 10 ms: the tree must start in a later tick than `before`.
    let later = Instant::now() + Duration::from_millis(20);
    while Instant::now() < later {
        std::thread::yield_now();
    }
    let (shell, cat) = Cat::start_below_shell();
    let root = Root { process: shell.process(), young_since: Some(before) };
    let tree = sample_one(root);
    assert_eq!(tree.processes, 2);
    let young: Vec<_> = tree.young.iter().map(|y| (y.process.pid, y.ppid, y.comm.as_str())).collect();
    assert_eq!(young, [(cat, shell.pid(), "cat")]);
    assert!(tree.young[0].exe.contains("cat") || tree.young[0].exe.contains("coreutils"), "{:?}", tree.young);
    assert!(sample_one(Root { young_since: Some(clock::now().boot), ..root }).young.is_empty());
    assert!(sample_one(Root { young_since: None, ..root }).young.is_empty());
}

#[test]
fn work_is_seen() {
    use std::process::{Command, Stdio};
    let mut busy =
        Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
    let process = watchkeeper_os::process::identity::identify(busy.id()).yes().unwrap();
    let root = Root { process, young_since: None };
    let first = sample_one(root).cpu_ms;
    let until = Instant::now() + Duration::from_secs(20);
    while sample_one(root).cpu_ms < first + 50 {
        assert!(Instant::now() < until, "a busy loop uses no CPU");
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&busy), rustix::process::Signal::STOP)
        .unwrap();
    while !sample_one(root).root_state.is_stopped() {
        assert!(Instant::now() < until, "not stopped: {:?}", sample_one(root).root_state);
    }
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert_eq!(sample(&[root]), [Probe::No]);
}

#[test]
fn a_zombie_root_is_gone_and_a_living_one_beside_it_is_not() {
    let mut dead = Cat::start();
    let living = Cat::start();
    let roots = [dead.process(), living.process()].map(|process| Root { process, young_since: None });
    dead.become_zombie();
    let samples = sample(&roots);
    assert_eq!(samples[0], Probe::No);
    assert!(matches!(&samples[1], Probe::Yes(tree) if tree.processes == 1), "{samples:?}");
}
