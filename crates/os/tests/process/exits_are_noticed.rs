use std::collections::BTreeSet;

use tokio::{runtime, time::timeout};
use watchkeeper_core::identity::ProcessRef;
use watchkeeper_os::process::exit_watch::{ExitWatch, Watch};

use crate::child::{Cat, PATIENCE};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn an_exit_is_told_once_and_before_the_parent_reaps() {
    block_on(async {
        let watch = ExitWatch::new().unwrap();
        let mut cat = Cat::start();
        let process = cat.process();
        assert_eq!(watch.watch(process).unwrap(), Watch::Kernel);
        assert_eq!(watch.watch(process).unwrap(), Watch::Kernel, "watched once");
        assert_eq!(watch.len(), 1);
        cat.end_of_input();
        assert_eq!(timeout(PATIENCE, watch.next()).await, Ok(process));
        assert!(watch.is_empty());
        // The notice came while it was a zombie: it is reaped only here.
        cat.reap();
        assert_eq!(watch.watch(process).unwrap(), Watch::AlreadyGone);
    });
}

#[test]
fn a_pending_wait_hears_of_a_process_watched_later() {
    block_on(async {
        let watch = ExitWatch::new().unwrap();
        let mut cat = Cat::start();
        let process = cat.process();
        let arm = async {
            tokio::task::yield_now().await;
            watch.watch(process).unwrap();
            cat.end_of_input();
        };
        let (told, ()) = tokio::join!(timeout(PATIENCE, watch.next()), arm);
        assert_eq!(told, Ok(process));
    });
}

#[test]
fn the_dead_and_the_other_are_not_watched() {
    block_on(async {
        let watch = ExitWatch::new().unwrap();
        let mut cat = Cat::start();
        let process = cat.process();
        assert_eq!(
            watch.watch(ProcessRef { start: process.start - 1, ..process }).unwrap(),
            Watch::AlreadyGone,
            "another life of this pid"
        );
        assert!(watch.watch(ProcessRef { start: 0, ..process }).is_err(), "no identity, no watch");
        cat.become_zombie();
        assert_eq!(watch.watch(process).unwrap(), Watch::AlreadyGone);
        assert!(watch.is_empty());
    });
}

#[test]
fn an_ended_watch_is_silent_even_after_the_exit() {
    block_on(async {
        let watch = ExitWatch::new().unwrap();
        let (mut first, mut second, mut third) = (Cat::start(), Cat::start(), Cat::start());
        let (one, two, three) = (first.process(), second.process(), third.process());
        for process in [one, two, three] {
            watch.watch(process).unwrap();
        }
        assert!(watch.unwatch(&one));
        assert!(!watch.unwatch(&one));
        first.become_zombie();
        // Two exits are taken from the kernel at once; one is dropped before it is given out.
        second.become_zombie();
        third.become_zombie();
        let told = timeout(PATIENCE, watch.next()).await.unwrap();
        let (other, dropped) = if told == two { (two, three) } else { (three, two) };
        assert_eq!(told, other);
        assert!(watch.unwatch(&dropped));
        let mut last = Cat::start();
        let fourth = last.process();
        watch.watch(fourth).unwrap();
        last.end_of_input();
        assert_eq!(timeout(PATIENCE, watch.next()).await, Ok(fourth), "nothing of the ended watches");
    });
}

#[test]
fn a_cancelled_wait_loses_nothing() {
    block_on(async {
        let watch = ExitWatch::new().unwrap();
        let mut cats: Vec<Cat> = (0..300).map(|_| Cat::start()).collect();
        let mut expected = BTreeSet::new();
        for cat in &cats {
            watch.watch(cat.process()).unwrap();
            expected.insert(cat.process());
        }
        for cat in &mut cats {
            cat.become_zombie();
        }
        while !expected.is_empty() {
            // A wait that is dropped in the middle of the select, again and again.
            let told = tokio::select! {
                biased;
                () = tokio::task::yield_now() => None,
                told = watch.next() => Some(told),
            };
            if let Some(told) = told {
                assert!(expected.remove(&told), "told twice: {told:?}");
            } else {
                let told = timeout(PATIENCE, watch.next()).await.unwrap();
                assert!(expected.remove(&told), "told twice: {told:?}");
            }
        }
        assert!(watch.is_empty());
    });
}
