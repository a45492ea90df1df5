//! A program that holds locks, for tests that kill it, restart it or refuse it.
//!
//! Arguments are kinds. Prints one line per event and obeys words on stdin: `verify`, `release`, `exec` and `spawn` (a
//! successor by the same or another pid gets the locks), `exit`. Ends when stdin ends.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::exit,
    reason = "a program for tests talks by its output and dies of what it cannot do"
)]
mod linux {
    use std::{
        io::BufRead,
        os::unix::process::CommandExt,
        process::{self, Command},
        time::Instant,
    };

    use tokio::{runtime, sync::mpsc};
    use watchkeeper_os::power::inhibit::{HandOver, Inhibitor, Keeper, Kind, Report};

    const HANDED: &str = "WK_TEST_HANDED";

    pub(super) fn main() {
        let handed = std::env::var(HANDED).ok();
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let held = handed.map_or_else(Vec::new, |text| HandOver::from_text(&text).unwrap().into_held());
        let wanted: Vec<Kind> = std::env::args().skip(1).map(|word| Kind::of_name(&word).unwrap()).collect();
        let inherited: Vec<&str> = held.iter().map(|held| held.kind().name()).collect();
        println!("pid {} inherited [{}]", process::id(), inherited.join(" "));
        let (keeper, leaving) = runtime.block_on(hold(Keeper::with_handed(Inhibitor::new(), held), &wanted));
        let handed = HandOver::new(keeper.into_held());
        let text = handed.keep_over_exec().unwrap();
        let mut successor = Command::new(std::env::current_exe().unwrap());
        successor.args(std::env::args().skip(1)).env(HANDED, text);
        if leaving == Leaving::Exec {
            panic!("exec: {}", successor.exec());
        }
        // The exit closes our copies; the successor has its own.
        let started = successor.spawn();
        process::exit(i32::from(started.is_err()));
    }

    #[derive(PartialEq, Eq)]
    enum Leaving {
        Exec,
        Spawn,
    }

    async fn hold(mut keeper: Keeper, wanted: &[Kind]) -> (Keeper, Leaving) {
        let (send, mut words) = mpsc::channel(16);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                // The rest of stdin is the successor's.
                let is_last = line == "exec" || line == "spawn";
                if send.blocking_send(line).is_err() || is_last {
                    break;
                }
            }
        });
        // As a daemon does at its start; refusals show below.
        drop(keeper.inhibitor().connect().await);
        let begun = Instant::now();
        let report = keeper.set(wanted).await;
        println!("took {:?} until read back", begun.elapsed());
        show("held", &report);
        loop {
            tokio::select! {
                word = words.recv() => match word.as_deref() {
                    Some("verify") => show("verified", &keeper.verify().await),
                    Some("release") => show("released", &keeper.set(&[]).await),
                    Some("exec") => return (keeper, Leaving::Exec),
                    Some("spawn") => return (keeper, Leaving::Spawn),
                    Some(_) | None => process::exit(0),
                },
                upkeep = keeper.next() => {
                    println!("notice {:?}", upkeep.notice);
                    if let Some(report) = upkeep.report {
                        show("upkeep", &report);
                    }
                }
            }
        }
    }

    fn show(what: &str, report: &Report) {
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" ");
        println!(
            "{what} [{}] retaken [{}] unconfirmed {:?}",
            names(&report.held),
            names(&report.retaken),
            report.unconfirmed
        );
        for (kind, refused) in &report.refused {
            println!("refused {kind}: {refused} FIX {}", refused.fix().unwrap_or("none"));
        }
    }
}
