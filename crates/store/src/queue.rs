//! The bounded queue between submitters and the writer, and all deliveries: those on their way and those stored.
//!
//! The deliveries live here, in memory, and not in an index of the database: their ids are random, so an index would
//! write one page of 4 KiB for each entry, more than all the rest of a group commit, and a lookup would read from disk
//! on the dispatcher. The lock makes this process the only writer, so the set is complete once it was read at open.
//! It costs about 16 bytes a row.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use watchkeeper_core::DeliveryId;

use crate::{
    apply::Command,
    deliveries::DeliveryState,
    entry::Seq,
    error::SubmitError,
    limits::{QUEUE_BYTES_MAX, QUEUE_COMMANDS_MAX},
};

/// Shared by submitters, the writer and [`crate::Deliveries`].
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Command>,
    /// Of commands accepted and not yet stored, wherever they are.
    commands: usize,
    bytes: usize,
    last: Seq,
    in_flight: HashSet<DeliveryId>,
    stored: HashSet<Fold>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing more is accepted; the writer finishes what is there.
    Closing,
    /// Nobody takes from the queue any more.
    Stopped,
}

/// Half of a delivery id. Two of 50,000 random ids share it with a chance of 10⁻¹⁰; whoever makes one share it on
/// purpose loses a signal of his own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fold(u64);

impl Fold {
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    pub(crate) const fn of(delivery: DeliveryId) -> Self {
        Self((delivery.0 >> 64) as u64 ^ delivery.0 as u64)
    }
}

/// What became of commands that leave the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Stored,
    Refused,
}

/// What woke the writer.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) commands: VecDeque<Command>,
    pub(crate) closing: bool,
}

impl Queue {
    /// A queue behind a journal that ends at `last` and has these deliveries.
    pub(crate) fn new(last: Seq, stored: HashSet<Fold>) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            commands: 0,
            bytes: 0,
            last,
            in_flight: HashSet::new(),
            stored,
            phase: Phase::Open,
        };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Accepts a command or says why not; never waits for the writer.
    pub(crate) fn submit(&self, mut command: Command) -> Result<(), SubmitError> {
        let weight = command.weight();
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return Err(SubmitError::Stopped);
        }
        // One command over the byte limit passes an empty queue: it has a limit of its own.
        let over = state.bytes.saturating_add(weight) > QUEUE_BYTES_MAX && state.commands > 0;
        if state.commands >= QUEUE_COMMANDS_MAX || over {
            return Err(SubmitError::Full { commands: state.commands, bytes: state.bytes });
        }
        if let Command::Append { seq, entry, duplicate, .. } = &mut command {
            if *seq <= state.last {
                return Err(SubmitError::OutOfOrder { given: seq.0, last: state.last.0 });
            }
            state.last = *seq;
            if let Some(delivery) = entry.delivery {
                *duplicate = state.stored.contains(&Fold::of(delivery)) || !state.in_flight.insert(delivery);
            }
        }
        state.commands += 1;
        state.bytes += weight;
        // The writer empties the queue whole, so only the first arrival can find it asleep.
        let wake = state.waiting.is_empty();
        state.waiting.push_back(command);
        drop(state);
        if wake {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Takes everything that waits; blocks while there is nothing, until `until` if given.
    pub(crate) fn take(&self, until: Option<Instant>) -> Arrivals {
        let mut state = self.lock();
        let idle = state.waiting.is_empty();
        while state.waiting.is_empty() && state.phase == Phase::Open {
            state = match until.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(rest) if rest.is_zero() => break,
                Some(rest) => {
                    self.arrived.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        if idle && !state.waiting.is_empty() {
            // The first of a burst woke us: the others are about to come, and share its commit if they may run first.
            // Alone on the machine this returns at once.
            drop(state);
            std::thread::yield_now();
            state = self.lock();
        }
        Arrivals { commands: std::mem::take(&mut state.waiting), closing: state.phase != Phase::Open }
    }

    /// Commands left the queue for good: their room is free, their deliveries are stored or new again.
    pub(crate) fn done(&self, commands: &[Command], outcome: Outcome) {
        let mut state = self.lock();
        for command in commands {
            state.commands = state.commands.saturating_sub(1);
            state.bytes = state.bytes.saturating_sub(command.weight());
            let Command::Append { entry, duplicate: false, .. } = command else { continue };
            let Some(delivery) = entry.delivery else { continue };
            state.in_flight.remove(&delivery);
            if outcome == Outcome::Stored {
                state.stored.insert(Fold::of(delivery));
            }
        }
    }

    /// Rows were trimmed; their deliveries count as new from then on.
    pub(crate) fn forget(&self, deliveries: &[Fold]) {
        let mut state = self.lock();
        for delivery in deliveries {
            state.stored.remove(delivery);
        }
    }

    pub(crate) fn state_of(&self, delivery: DeliveryId) -> DeliveryState {
        let state = self.lock();
        if state.in_flight.contains(&delivery) {
            DeliveryState::InFlight
        } else if state.stored.contains(&Fold::of(delivery)) {
            DeliveryState::Stored
        } else {
            DeliveryState::New
        }
    }

    /// Commands accepted and not yet stored.
    pub(crate) fn depth(&self) -> usize {
        self.lock().commands
    }

    /// The last position accepted.
    pub(crate) fn last(&self) -> Seq {
        self.lock().last
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closing;
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// The writer is gone, in order or by a panic.
    pub(crate) fn stop(&self) {
        self.lock().phase = Phase::Stopped;
    }

    /// No code panics while it holds the lock, so a poisoned state is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
