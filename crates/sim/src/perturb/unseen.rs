//! Sessions of which nobody could see that they ended: their agent was gone before the first hook arrived that begins them, so that
//! no hook led to a process whose death could be waited for.

use std::collections::{BTreeMap, BTreeSet};
use watchkeeper_agents::{adapter::adapter, ancestry};
use watchkeeper_core::signal::Source;

use super::change::Change;
use crate::recordings::{Event, EventKind, Recording, Told};

/// By the recording and the delays alone; what the core made of it is not asked. Other changes leave no session unseen.
pub(super) fn unseen(recording: &Recording, told: &[Told], change: Change) -> BTreeSet<String> {
    if !matches!(change, Change::Delay { .. }) {
        return BTreeSet::new();
    }
    let arrived = change.rearranged(&recording.events);
    let mut all_late: BTreeMap<&str, bool> = BTreeMap::new();
    for told in told.iter().filter(|told| told.source == Source::Hook && told.begins) {
        // The core counted events from 1.
        let event = told.event.checked_sub(1).and_then(|at| recording.events.get(at));
        let late = event.is_some_and(|hook| arrives_behind_its_agent(recording, &arrived, hook));
        *all_late.entry(&told.session).or_insert(true) &= late;
    }
    all_late.into_iter().filter(|(_, late)| *late).map(|(session, _)| session.to_owned()).collect()
}

/// Whether the exit of the agent that started this hook stands before the hook's arrival.
fn arrives_behind_its_agent(recording: &Recording, arrived: &[Event], hook: &Event) -> bool {
    let EventKind::Hook { delivery, begun, ancestry: chain, .. } = &hook.kind else { return false };
    let Some(adapter) = adapter(recording.agent) else { return false };
    let ancestry::Found::Agent { index, .. } = ancestry::find(adapter.ancestry(), chain) else {
        return false;
    };
    let Some(agent) = chain.get(index) else { return false };
    let place = |is: &dyn Fn(&Event) -> bool| arrived.iter().position(is);
    // A process of the same number may have ended before this one began.
    let exit = place(&|e| matches!(e.kind, EventKind::Exit { pid } if pid == agent.pid) && e.t >= *begun);
    let arrival = place(&|e| matches!(&e.kind, EventKind::Hook { delivery: own, .. } if own == delivery));
    exit.zip(arrival).is_some_and(|(exit, arrival)| exit < arrival)
}
