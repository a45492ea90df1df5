//! Processes that an agent named for its background work (Gemini CLI, Qwen Code): looked up while the hook that tells of
//! them waits, so that the kernel's word ends the work where the agent says nothing.
//!
//! A spooled event is too old for that: its number may be another process's by now. A number is only believed of a process
//! below the agent: what names it may be a command's own words.

use watchkeeper_agents::Parsed;
use watchkeeper_core::{
    ProcessRef,
    signal::{SignalBody, WorkEnd},
};
use watchkeeper_os::process::{Probe, ancestry::chain_of, identity};

/// Completes started work with its process; work whose process is gone already is over. `agents`: the agent's own processes;
/// with none known, or somebody else's process named, the work stays without one.
pub(crate) fn complete(parsed: &mut Parsed, agents: &[ProcessRef]) {
    for (work, pid) in std::mem::take(&mut parsed.work_pids) {
        let found = identity::identify(pid);
        if let Probe::Yes(found) = &found
            && !is_below(found, agents)
        {
            continue;
        }
        for observation in &mut parsed.observations {
            let SignalBody::WorkStarted { id, process: process @ None, .. } = &mut observation.body else {
                continue;
            };
            if *id != work {
                continue;
            }
            match &found {
                Probe::Yes(found) => *process = Some(*found),
                Probe::No => {
                    let id = std::mem::take(id);
                    observation.body = SignalBody::WorkFinished { id, cause: WorkEnd::ProcessGone };
                }
                Probe::Unknown { .. } => {}
            }
        }
    }
}

/// Whether one of the agent's processes is an ancestor of this one. Blocks for a few reads of kernel tables.
fn is_below(process: &ProcessRef, agents: &[ProcessRef]) -> bool {
    let chain = chain_of(process.pid);
    let is_it = chain.rows.first().is_some_and(|row| row.start == process.start);
    let mut above = chain.rows.iter().skip(1);
    is_it && above.any(|row| agents.iter().any(|agent| agent.pid == row.pid && agent.start == row.start))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use watchkeeper_core::AgentKind;

    /// What becomes of work for which an agent named `pid`.
    fn check(pid: u32, agents: &[ProcessRef], expected: impl Fn(&SignalBody) -> bool) {
        let said = format!("Command moved to background (PID: {pid}).");
        let payload = format!(
            r#"{{"session_id":"s","tool_name":"run_shell_command","tool_response":{{"llmContent":"{said}"}}}}"#
        );
        let adapter = watchkeeper_agents::adapter(AgentKind::Gemini).unwrap();
        let mut parsed = adapter.payload(Some("AfterTool"), &[], payload.as_bytes());
        complete(&mut parsed, agents);
        assert!(parsed.observations.iter().any(|o| expected(&o.body)), "{parsed:?}");
    }

    /// A process below this one that lives until its input ends.
    fn child() -> Child {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "read -r never"]).stdin(Stdio::piped()).spawn().unwrap()
    }

    fn end(mut child: Child) {
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn the_named_process_is_the_works_if_it_is_below_the_agent() {
        let (named, other) = (child(), child());
        let own = identity::own().yes().unwrap();
        let stranger = identity::identify(other.id()).yes().unwrap();
        let reused = ProcessRef { start: own.start + 1, ..own };
        let with = |process: Option<u32>| move |body: &SignalBody| matches!(body, SignalBody::WorkStarted { process: found, .. } if found.map(|f| f.pid) == process);
        check(named.id(), &[stranger, own], with(Some(named.id())));
        check(named.id(), &[stranger], with(None));
        check(named.id(), &[reused], with(None));
        check(named.id(), &[], with(None));
        // Neither the agent itself nor what is above it.
        check(own.pid, &[own], with(None));
        check(own.pid, &[stranger], with(None));
        end(named);
        end(other);
    }

    #[test]
    fn work_whose_process_is_gone_is_over() {
        let gone = child();
        let pid = gone.id();
        end(gone);
        check(pid, &[], |body| matches!(body, SignalBody::WorkFinished { cause: WorkEnd::ProcessGone, .. }));
    }
}
