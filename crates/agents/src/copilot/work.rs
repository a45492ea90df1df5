//! How Copilot CLI speaks of background shells and agents: the markers in tool results and notices. Hooks and
//! transcript use the same words.

use watchkeeper_core::signal::{SignalBody, WorkEnd, WorkKind};

use crate::{json::clipped, observe::is_id};

/// How far into a result its marker can stand; a command's own output comes behind it.
const MARKER_WITHIN: usize = 512;

/// The key of a background shell; the agent's numbers alone could meet other ids.
pub(super) fn shell_key(shell: &str) -> String {
    format!("shell:{shell}")
}

/// The name under which the PascalCase hooks speak of a tool of the transcript.
pub(super) fn hook_name(tool: &str) -> &str {
    match tool {
        "bash" => "Bash",
        "task" => "Agent",
        "ask_user" => "AskUserQuestion",
        other => other,
    }
}

/// What the result of a tool call (by its name in hooks) says about background work, if anything.
pub(super) fn of_result(tool: &str, result: &str) -> Option<SignalBody> {
    match tool {
        "Bash" | "bash" | "powershell" => {
            let head = clipped(result, MARKER_WITHIN);
            // A detached shell is nobody's work.
            let runs = (head.contains("started in background") || head.contains("still running"))
                && !head.contains("detached");
            let shell = number_after(head, "shellId: ").filter(|_| runs)?;
            Some(started(shell_key(shell), WorkKind::Shell))
        }
        "read_bash" | "read_powershell" | "write_bash" => {
            let (_, tail) = result.rsplit_once("<shellId: ")?;
            let (shell, said) = tail.split_once(' ')?;
            let cause = match said.strip_prefix("completed with exit code ")?.split(['>', ' ']).next()? {
                "0" => WorkEnd::Completed,
                _ => WorkEnd::Failed,
            };
            is_id(shell).then(|| finished(shell_key(shell), cause))
        }
        "Agent" | "task" | "write_agent" => {
            let head = clipped(result, MARKER_WITHIN);
            let (_, behind) = head.split_once("agent_id: ")?;
            let agent = word(behind);
            (head.contains("background") && is_id(agent))
                .then(|| started(agent.to_owned(), WorkKind::Subagent))
        }
        _ => None,
    }
}

/// The shell whose end a notice tells of.
pub(super) fn ended_shell(notice: &str) -> Option<SignalBody> {
    let shell = number_after(notice, "(shellId: ")?;
    let cause = if notice.contains("successfully") { WorkEnd::Completed } else { WorkEnd::Failed };
    Some(finished(shell_key(shell), cause))
}

pub(super) fn started(id: String, what: WorkKind) -> SignalBody {
    SignalBody::WorkStarted { id, what, label: None, process: None }
}

pub(super) fn finished(id: String, cause: WorkEnd) -> SignalBody {
    SignalBody::WorkFinished { id, cause }
}

fn number_after<'a>(text: &'a str, marker: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(marker)?;
    let id = word(behind);
    is_id(id).then_some(id)
}

/// The leading letters, digits, dashes and underscores.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')));
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: &str, result: &str, expected: Option<SignalBody>) {
        assert_eq!(of_result(tool, result), expected, "{tool}: {result}");
    }

    #[test]
    fn reads_the_markers_of_results() {
        let shell = || Some(started("shell:0".to_owned(), WorkKind::Shell));
        check("Bash", "<command started in background with shellId: 0>", shell());
        check("Bash", "<command with shellId: 0 is still running after 30 seconds.>", shell());
        check("Bash", "<command started in detached background with shellId: 0>", None);
        check("Bash", "plain output\n<exited with exit code 0>", None);
        let agent = "Agent started in background with agent_id: f8-da. You'll be notified";
        check("Agent", agent, Some(started("f8-da".to_owned(), WorkKind::Subagent)));
        check("Agent", "The answer is 4", None);
        let done = "bgdone\n<shellId: 3 completed with exit code 0>";
        check("read_bash", done, Some(finished("shell:3".to_owned(), WorkEnd::Completed)));
        check(
            "read_bash",
            "<shellId: 3 completed with exit code 7>",
            Some(finished("shell:3".to_owned(), WorkEnd::Failed)),
        );
        check("read_bash", "<shellId: 3 is still running>", None);
    }

    #[test]
    fn reads_notices() {
        let notice = "Shell command \"x\" (shellId: 0) has completed successfully.";
        assert_eq!(ended_shell(notice), Some(finished("shell:0".to_owned(), WorkEnd::Completed)));
        assert_eq!(ended_shell("Agent \"x\" has finished"), None);
    }
}
