//! Processes that an agent named for its background work (Gemini CLI, Qwen Code): looked up while the hook that tells of
//! them waits, so that the kernel's word ends the work where the agent says nothing.
//!
//! A spooled event is too old for that: its number may be another process's by now.

use watchkeeper_agents::Parsed;
use watchkeeper_core::signal::{SignalBody, WorkEnd};
use watchkeeper_os::process::{Probe, identity};

/// Completes started work with its process; work whose process is gone already is over.
pub(crate) fn complete(parsed: &mut Parsed) {
    for (work, pid) in std::mem::take(&mut parsed.work_pids) {
        let found = identity::identify(pid);
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

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_core::AgentKind;

    /// What becomes of work for which an agent named `pid`.
    fn check(pid: u32, expected: impl Fn(&SignalBody) -> bool) {
        let said = format!("Command moved to background (PID: {pid}).");
        let payload = format!(
            r#"{{"session_id":"s","tool_name":"run_shell_command","tool_response":{{"llmContent":"{said}"}}}}"#
        );
        let adapter = watchkeeper_agents::adapter(AgentKind::Gemini).unwrap();
        let mut parsed = adapter.payload(Some("AfterTool"), &[], payload.as_bytes());
        complete(&mut parsed);
        assert!(parsed.observations.iter().any(|o| expected(&o.body)), "{parsed:?}");
    }

    #[test]
    fn the_named_process_is_the_works() {
        let own = std::process::id();
        check(
            own,
            |body| matches!(body, SignalBody::WorkStarted { process: Some(process), .. } if process.pid == own),
        );
    }

    #[test]
    fn work_whose_process_is_gone_is_over() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .arg("--list")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        child.wait().unwrap();
        check(child.id(), |body| {
            matches!(body, SignalBody::WorkFinished { cause: WorkEnd::ProcessGone, .. })
        });
    }
}
