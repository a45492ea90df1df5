//! Looks at a session's processes for the core: facts about CPU time and children, never a verdict.

use watchkeeper_core::{
    Boot,
    input::{Known, ProbeAnswer},
    view::SessionView,
};
use watchkeeper_os::process::{
    Probe as Found,
    tree_cpu::{Root, TreeSample, Young, sample},
};

/// Programs of ours; a hook that runs is no sign of the agent's work.
const OWN: [&str; 2] = ["watchkeeper-hook", "watchkeeper"];

/// Samples the trees of a session's processes. Blocks for one pass over the process table. `young_since`: list children that
/// started after this.
#[must_use]
pub(crate) fn look(session: &SessionView, young_since: Option<Boot>) -> ProbeAnswer {
    let roots: Vec<Root> =
        session.processes.iter().map(|process| Root { process: *process, young_since }).collect();
    let mut answer = ProbeAnswer::default();
    if roots.is_empty() {
        return answer;
    }
    let samples = sample(&roots);
    let found: Vec<&TreeSample> =
        samples.iter().filter_map(|s| if let Found::Yes(sample) = s { Some(sample) } else { None }).collect();
    let unknown = samples.iter().any(|s| matches!(s, Found::Unknown { .. }));
    answer.agent_alive = match (found.is_empty(), unknown) {
        (false, _) => Known::Is(true),
        (true, false) => Known::Is(false),
        (true, true) => Known::Unknown,
    };
    if unknown || found.is_empty() {
        return answer;
    }
    answer.tree_cpu_ms = Known::Is(found.iter().map(|s| s.cpu_ms).sum());
    answer.stopped = Known::Is(found.iter().all(|s| s.root_state.is_stopped()));
    if young_since.is_some() {
        answer.younger_child = Known::Is(found.iter().flat_map(|s| &s.young).any(is_work));
    }
    answer
}

fn is_work(young: &Young) -> bool {
    let name = young.exe.rsplit(['/', '\\']).next().unwrap_or_default();
    !OWN.iter().any(|own| name.trim_end_matches(".exe") == *own || young.comm.starts_with("watchkeeper-hoo"))
}
