//! The reducer's rate, and what a signal costs with ten sessions and with ten thousand.

#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::time::Instant;

use divan::{Bencher, counter::ItemsCount};
use watchkeeper_core::{
    AgentKind, AgentTraits, Boot, BootId, Core, DeliveryId, Input, InputBody, Mono, Now, ProcessRef,
    SessionKey, Settings, Signal, SignalBody, TurnId, Wall,
    signal::{Activity, AgentProcess, Facts, Source, Thread},
    time::Stamp,
};

#[expect(clippy::print_stdout, reason = "a bench")]
fn main() {
    divan::main();
    // For `cargo xtask bench`, which judges.
    for (sessions, ns) in [10, 10_000].into_iter().zip(cost_ns([10, 10_000])) {
        println!("figure reducer.ns.{sessions} {ns:.1}");
    }
}

/// Nanoseconds a signal with so many sessions, the middle of some rounds, taken in turn so that a busy machine hurts both
/// alike.
fn cost_ns<const N: usize>(sessions: [u64; N]) -> [f64; N] {
    const ROUNDS: usize = 21;
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (times, sessions) in times.iter_mut().zip(sessions) {
            let (mut core, batch) = prepared(sessions);
            let began = Instant::now();
            for input in &batch {
                drop(divan::black_box(core.handle(input)));
            }
            times.push(began.elapsed().as_secs_f64() * 1e9 / BATCH as f64);
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    })
}

const BOOT: BootId = BootId(7);
/// Signals a measured run hands in.
const BATCH: u64 = 10_000;

fn now(n: u64) -> Now {
    let ms = 1_000_000 + n;
    Now {
        mono: Mono(ms * 1_000_000),
        boot: Boot(ms * 1_000_000),
        wall: Wall(1_700_000_000_000 + i64::try_from(ms).unwrap_or(0)),
        boot_id: BOOT,
    }
}

fn input(n: u64, session: u64, body: SignalBody) -> Input {
    let now = now(n);
    let pid = u32::try_from(session).unwrap_or(0) + 100;
    let signal = Signal {
        key: SessionKey::new(AgentKind::Claude, format!("{session:08x}-1ada-4a41-b732-5f4b549fb304")),
        incarnation: None,
        turn: Some(TurnId("9bb9277c-365e-4ac8-a69f-7243a54d7430".to_owned())),
        thread: Thread::Main,
        delivery: DeliveryId(u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834) | 1),
        source: Source::Hook,
        happened: Some(Stamp { boot: now.boot, boot_id: BOOT }),
        process: Some(AgentProcess {
            process: ProcessRef { pid, start: 1, boot: BOOT },
            shared: false,
            declared: false,
        }),
        facts: Facts { cwd: Some("/home/dev/project".to_owned()), ..Facts::default() },
        body,
    };
    Input { now, body: InputBody::Signal { signal: Box::new(signal), held: None } }
}

/// A core with so many working sessions, and a batch of what they say in turn: tools, output, now and then a lock and
/// a new turn.
fn prepared(sessions: u64) -> (Core, Vec<Input>) {
    let mut core = Core::new(Settings::default(), AgentTraits::new());
    for n in 0..sessions {
        let _outcome = core.handle(&input(n, n, SignalBody::Started { prompt: None }));
    }
    let batch = (0..BATCH)
        .map(|n| {
            // Strides over the sessions, so that no cache keeps them all.
            let session = n.wrapping_mul(7919) % sessions;
            let id = format!("toolu_{:x}", n / 2);
            let name = "Bash".to_owned();
            let body = match n % 4 {
                0 => SignalBody::ToolStarted { id, name },
                1 => SignalBody::ToolFinished { id, name, failed: false },
                2 => SignalBody::Activity { what: Activity::ModelOutput },
                _ => SignalBody::Displayed { what: "MessageDisplay".to_owned() },
            };
            input(sessions + n, session, body)
        })
        .collect();
    (core, batch)
}

#[divan::bench(args = [10, 100, 1_000, 10_000], sample_count = 20)]
fn signals(bencher: Bencher<'_, '_>, sessions: u64) {
    bencher.counter(ItemsCount::new(BATCH)).with_inputs(|| prepared(sessions)).bench_local_values(
        |(mut core, batch)| {
            for input in &batch {
                drop(divan::black_box(core.handle(input)));
            }
            (core, batch)
        },
    );
}

/// Starts and stops: every one changes the machine's demand or the set of protecting sessions.
#[divan::bench(args = [10, 10_000], sample_count = 20)]
fn turns(bencher: Bencher<'_, '_>, sessions: u64) {
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| {
            let (core, _) = prepared(sessions);
            let batch: Vec<Input> = (0..BATCH)
                .map(|n| {
                    let session = (n / 2).wrapping_mul(7919) % sessions;
                    let body = match n % 2 {
                        0 => SignalBody::Stopped {
                            final_message: None,
                            can_continue: true,
                            continued: false,
                            live: Some(Vec::new()),
                        },
                        _ => SignalBody::Started { prompt: None },
                    };
                    let mut input = input(sessions + n, session, body);
                    if let InputBody::Signal { signal, .. } = &mut input.body {
                        signal.turn = Some(TurnId(format!("turn-{}", n.div_ceil(2))));
                    }
                    input
                })
                .collect();
            (core, batch)
        })
        .bench_local_values(|(mut core, batch)| {
            for input in &batch {
                drop(divan::black_box(core.handle(input)));
            }
            (core, batch)
        });
}
