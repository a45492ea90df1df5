//! The bounded queue between submitters and the writer, and the deliveries that are on their way through it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use watchkeeper_core::DeliveryId;

use crate::{
    apply::Command,
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
    /// How many accepted commands carry the delivery.
    in_flight: HashMap<DeliveryId, u32>,
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

/// What woke the writer.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) commands: VecDeque<Command>,
    pub(crate) closing: bool,
}

impl Queue {
    pub(crate) fn new(last: Seq) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            commands: 0,
            bytes: 0,
            last,
            in_flight: HashMap::new(),
            phase: Phase::Open,
        };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Accepts a command or says why not; never waits for the writer.
    pub(crate) fn submit(&self, command: Command) -> Result<(), SubmitError> {
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
        if let Command::Append { seq, entry, .. } = &command {
            if *seq <= state.last {
                return Err(SubmitError::OutOfOrder { given: seq.0, last: state.last.0 });
            }
            state.last = *seq;
            if let Some(delivery) = entry.delivery {
                *state.in_flight.entry(delivery).or_default() += 1;
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
        while state.waiting.is_empty() && state.phase == Phase::Open {
            state = match until.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(rest) if rest.is_zero() => break,
                Some(rest) => {
                    self.arrived.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Arrivals { commands: std::mem::take(&mut state.waiting), closing: state.phase != Phase::Open }
    }

    /// Commands left the queue for good: their room and their deliveries are free. Called once a commit is visible to
    /// readers, so that a delivery is always either in flight or found in the database.
    pub(crate) fn done(&self, commands: &[Command]) {
        let mut state = self.lock();
        for command in commands {
            state.commands = state.commands.saturating_sub(1);
            state.bytes = state.bytes.saturating_sub(command.weight());
            let Command::Append { entry, .. } = command else { continue };
            let Some(delivery) = entry.delivery else { continue };
            if let Some(count) = state.in_flight.get_mut(&delivery) {
                *count -= 1;
                if *count == 0 {
                    state.in_flight.remove(&delivery);
                }
            }
        }
    }

    pub(crate) fn is_in_flight(&self, delivery: DeliveryId) -> bool {
        self.lock().in_flight.contains_key(&delivery)
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
