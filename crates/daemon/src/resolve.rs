//! Which process is the agent: the pure rules of its adapter over the chain that the kernel gives.

use watchkeeper_agents::ancestry::{Found, ProcessInfo, find};
use watchkeeper_core::{AgentKind, ProcessRef, signal::AgentProcess};
use watchkeeper_os::process::{
    Probe,
    ancestry::{Chain, chain_of},
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
    /// Nobody among the ancestors is the agent; never guessed instead.
    NotFound {
        why: String,
    },
}

impl Resolution {
    #[must_use]
    pub(crate) fn process(&self) -> Option<AgentProcess> {
        match self {
            Self::Found(process) | Self::FoundAbove { process, .. } => Some(*process),
            Self::NotFound { .. } => None,
        }
    }

    /// Whether the agent found above a hook can ask a person; `None`: unknown.
    #[must_use]
    pub(crate) fn can_ask(&self) -> Option<bool> {
        match self {
            Self::FoundAbove { can_ask, .. } => *can_ask,
            Self::Found(_) | Self::NotFound { .. } => None,
        }
    }
}

/// Walks up from `pid`, which must still live: while its hook waits for us, it does. Blocks for a few reads of kernel
/// tables.
#[must_use]
pub(crate) fn agent_above(kind: AgentKind, pid: Option<u32>) -> Resolution {
    let Some(pid) = pid else { return not_found("the system does not name the caller") };
    let Some(adapter) = watchkeeper_agents::adapter(kind) else {
        return not_found("this kind of agent has no process rules");
    };
    let chain = chain_of(pid);
    let infos = infos(&chain);
    match find(adapter.ancestry(), &infos) {
        Found::Agent { index, shared } => match reference(&chain, index) {
            Some(process) => Resolution::FoundAbove {
                process: AgentProcess { process, shared, declared: false },
                can_ask: infos.get(index).and_then(|agent| adapter.can_ask(agent)),
            },
            None => not_found("the agent was gone when its identity was taken"),
        },
        Found::None { why } => not_found(why),
    }
}

/// The nearest ancestor of `pid` that is any known agent.
#[must_use]
pub(crate) fn any_agent_above(pid: u32) -> Option<(AgentKind, ProcessRef)> {
    let chain = chain_of(pid);
    let infos = infos(&chain);
    let found = AgentKind::ALL.into_iter().filter_map(|kind| {
        let adapter = watchkeeper_agents::adapter(kind)?;
        match find(adapter.ancestry(), &infos) {
            Found::Agent { index, .. } => Some((index, kind)),
            Found::None { .. } => None,
        }
    });
    let (index, kind) = found.min_by_key(|(index, _)| *index)?;
    Some((kind, reference(&chain, index)?))
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
    let info = |row: &watchkeeper_os::process::ancestry::ProcessRow| ProcessInfo {
        pid: row.pid,
        ppid: row.ppid,
        start: row.start,
        exe: row.exe.clone(),
        comm: row.comm.clone(),
        argv: row.argv.clone(),
    };
    chain.rows.iter().map(info).collect()
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
