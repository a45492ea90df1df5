//! Which process is the agent: the pure rules of its adapter over the chain that the kernel gives.

use watchkeeper_agents::{
    Adapter, Adapters,
    ancestry::{Found, ProcessInfo},
};
use watchkeeper_core::{BootId, ProcessRef, signal::AgentProcess};
use watchkeeper_frame::ancestry::{Ancestor, Ancestry, Namespaces};
use watchkeeper_os::process::{
    Probe, Sameness,
    ancestry::{Chain, ChainEnd, ProcessRow, chain_of},
    identity,
};

/// What became of the search for an agent's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolution {
    Found(AgentProcess),
    /// Found by ancestry, with what its command line says about whether a person can be asked.
    FoundAbove {
        process: AgentProcess,
        can_ask: Option<bool>,
    },
    /// Found among the ancestors that a spooled event names, and known to live no more.
    Gone(AgentProcess),
    /// Nobody among the ancestors is the agent; never guessed instead.
    NotFound {
        why: String,
    },
}

impl Resolution {
    #[must_use]
    pub(crate) fn process(&self) -> Option<AgentProcess> {
        match self {
            Self::Found(process) | Self::FoundAbove { process, .. } | Self::Gone(process) => Some(*process),
            Self::NotFound { .. } => None,
        }
    }

    /// Whether the agent found above a hook can ask a person; `None`: unknown.
    #[must_use]
    pub(crate) fn can_ask(&self) -> Option<bool> {
        match self {
            Self::FoundAbove { can_ask, .. } => *can_ask,
            Self::Found(_) | Self::Gone(_) | Self::NotFound { .. } => None,
        }
    }
}

/// Walks up from `pid`, which must still live: while its hook waits for us, it does. Blocks for a few reads of kernel
/// tables.
#[must_use]
pub(crate) fn agent_above(adapter: Option<&dyn Adapter>, pid: Option<u32>) -> Resolution {
    let Some(pid) = pid else { return not_found("the system does not name the caller") };
    let Some(adapter) = adapter else {
        return not_found("this kind of agent has no process rules");
    };
    let chain = chain_of(pid);
    let infos = infos(&chain);
    match adapter.find_agent(&infos) {
        Found::Agent { index, shared } => match reference(&chain, index) {
            Some(process) => Resolution::FoundAbove {
                process: AgentProcess { process, shared, declared: false },
                can_ask: infos.get(index).and_then(|agent| adapter.can_ask(agent)),
            },
            None => not_found("the agent was gone when its identity was taken"),
        },
        Found::None { why } | Found::Unknown { why } => not_found(why),
    }
}

/// Looks for the agent among the ancestors that a hook wrote down in the boot `boot` before it left. Who still lives is
/// judged by what the kernel says now, who does not by what the hook saw. Blocks for a few reads of kernel tables.
#[must_use]
pub(crate) fn agent_recorded(adapter: Option<&dyn Adapter>, boot: BootId, block: &[u8]) -> Resolution {
    if block.is_empty() {
        return not_found("the spooled event names no ancestors");
    }
    let Some(ancestry) = Ancestry::parse(block) else {
        return not_found("what the spooled event says of its ancestors cannot be read");
    };
    let Some(adapter) = adapter else {
        return not_found("this kind of agent has no process rules");
    };
    if boot.0 == 0 {
        return not_found("the spooled event does not name its boot");
    }
    // In a container the same numbers name others, and a living agent would look gone.
    if !ancestry.namespaces.count_as(Namespaces::own()) {
        return not_found("the spooled event comes from another container");
    }
    let recorded: Vec<Ancestor<'_>> = ancestry.ancestors().collect();
    let at = |ancestor: &Ancestor<'_>| ProcessRef { pid: ancestor.pid, start: ancestor.start, boot };
    let (mut living, mut infos) = (Vec::<ProcessRow>::new(), Vec::new());
    let mut nearest = None;
    // One after the other: who stands above the agent is not worth a look.
    for (index, ancestor) in recorded.iter().enumerate() {
        let known = living.iter().any(|row| is(row, ancestor));
        if !known && identity::same(&at(ancestor)) == Sameness::Same {
            living.extend(chain_of(ancestor.pid).rows);
        }
        let row = living.iter().find(|row| is(row, ancestor));
        infos.push(ProcessInfo {
            // Who has lost its parent since has another one now.
            ppid: recorded.get(index + 1).map_or(0, |parent| parent.pid),
            ..row.map_or_else(|| seen(ancestor), info)
        });
        if let Found::Agent { index, shared } = adapter.find_agent(&infos) {
            nearest = Some((index, shared));
            break;
        }
    }
    let Some((index, shared)) = nearest else {
        return not_found("no ancestor that the spooled event names is this agent");
    };
    let Some(process) = recorded.get(index).map(at) else { return not_found("no such ancestor") };
    let agent = AgentProcess { process, shared, declared: false };
    match identity::same(&process) {
        Sameness::Same => Resolution::FoundAbove {
            process: agent,
            can_ask: infos.get(index).and_then(|agent| adapter.can_ask(agent)),
        },
        Sameness::Different => Resolution::Gone(agent),
        Sameness::Unknown => not_found("whether the agent lives cannot be told"),
    }
}

fn is(row: &ProcessRow, ancestor: &Ancestor<'_>) -> bool {
    row.pid == ancestor.pid && row.start == ancestor.start
}

/// An ancestor as the hook saw it.
fn seen(ancestor: &Ancestor<'_>) -> ProcessInfo {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let executable = text(ancestor.executable);
    let arguments = ancestor.arguments.strip_suffix(b"\0").unwrap_or_default();
    ProcessInfo {
        pid: ancestor.pid,
        ppid: 0,
        start: ancestor.start,
        exe: executable.strip_suffix(" (deleted)").map_or(executable.clone(), str::to_owned),
        comm: text(ancestor.name),
        argv: if arguments.is_empty() {
            Vec::new()
        } else {
            arguments.split(|b| *b == 0).map(text).collect()
        },
    }
}

/// Whether a process runs inside an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surroundings {
    /// The nearest agent among its ancestors.
    Agent(ProcessRef),
    /// All its ancestors are known, and none is an agent.
    NoAgent,
    /// Not all of them could be seen.
    Unknown,
}

/// Looks at all ancestors of `pid` for any known agent. Blocks for a few reads of kernel tables.
#[must_use]
pub(crate) fn surroundings(adapters: &Adapters, pid: u32) -> Surroundings {
    surroundings_in(adapters, &chain_of(pid))
}

fn surroundings_in(adapters: &Adapters, chain: &Chain) -> Surroundings {
    let infos = infos(chain);
    let (mut nearest, mut is_known) = (None::<usize>, true);
    for adapter in adapters.kinds().filter_map(|kind| adapters.get(kind)) {
        match adapter.find_agent(&infos) {
            Found::Agent { index, .. } => nearest = Some(nearest.map_or(index, |other| other.min(index))),
            Found::None { .. } => {}
            Found::Unknown { .. } => is_known = false,
        }
    }
    match (nearest, chain.end) {
        (Some(index), _) => reference(chain, index).map_or(Surroundings::Unknown, Surroundings::Agent),
        (None, ChainEnd::Top) if is_known && !chain.rows.is_empty() => Surroundings::NoAgent,
        (
            None,
            ChainEnd::Top
            | ChainEnd::Cycle
            | ChainEnd::Reused
            | ChainEnd::Gone
            | ChainEnd::Unreadable
            | ChainEnd::TooLong,
        ) => Surroundings::Unknown,
    }
}

/// A process that a caller names. It counts as declared unless it is an ancestor of the caller.
#[must_use]
pub(crate) fn declared(pid: u32, caller: Option<u32>) -> Resolution {
    match identity::identify(pid) {
        Probe::Yes(process) => {
            let above = caller.is_some_and(|caller| chain_of(caller).rows.iter().any(|row| row.pid == pid));
            Resolution::Found(AgentProcess { process, shared: false, declared: !above })
        }
        Probe::No => not_found("the named process is not alive"),
        Probe::Unknown { why } => Resolution::NotFound { why },
    }
}

fn infos(chain: &Chain) -> Vec<ProcessInfo> {
    chain.rows.iter().map(info).collect()
}

fn info(row: &ProcessRow) -> ProcessInfo {
    ProcessInfo {
        pid: row.pid,
        ppid: row.ppid,
        start: row.start,
        exe: row.exe.clone(),
        comm: row.comm.clone(),
        argv: row.argv.clone(),
    }
}

fn reference(chain: &Chain, index: usize) -> Option<ProcessRef> {
    let row = chain.rows.get(index)?;
    (row.start != 0).then(|| ProcessRef {
        pid: row.pid,
        start: row.start,
        boot: watchkeeper_os::clock::now().boot_id,
    })
}

fn not_found(why: &str) -> Resolution {
    Resolution::NotFound { why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_os::process::RunState;

    fn row(pid: u32, ppid: u32, argv: &[&str]) -> ProcessRow {
        ProcessRow {
            pid,
            ppid,
            start: u64::from(pid),
            exe: argv.first().copied().unwrap_or_default().to_owned(),
            comm: argv.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default().to_owned(),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            state: RunState::Running,
        }
    }

    #[track_caller]
    fn check(rows: &[ProcessRow], end: ChainEnd, expected: fn(&Surroundings) -> bool) {
        let found = surroundings_in(&Adapters::default(), &Chain { rows: rows.to_vec(), end });
        assert!(expected(&found), "{found:?}");
    }

    #[test]
    fn only_who_is_seen_to_the_top_is_outside_of_all_agents() {
        let shell = row(30, 20, &["/bin/bash"]);
        let agent = row(20, 1, &["/usr/local/bin/claude"]);
        let is_agent =
            |found: &Surroundings| matches!(found, Surroundings::Agent(process) if process.pid == 20);
        check(&[shell.clone(), agent.clone()], ChainEnd::Top, is_agent);
        check(&[shell.clone(), agent], ChainEnd::Unreadable, is_agent);
        check(std::slice::from_ref(&shell), ChainEnd::Top, |found| *found == Surroundings::NoAgent);
        for end in
            [ChainEnd::Cycle, ChainEnd::Reused, ChainEnd::Gone, ChainEnd::Unreadable, ChainEnd::TooLong]
        {
            check(std::slice::from_ref(&shell), end, |found| *found == Surroundings::Unknown);
        }
        check(&[], ChainEnd::Top, |found| *found == Surroundings::Unknown);
    }
}
