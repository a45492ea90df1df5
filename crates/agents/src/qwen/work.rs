//! How Qwen Code speaks of background work: the beginnings of tool results. Its end comes as a notification into the
//! chat file; only for subagents there is a hook too.

use watchkeeper_core::signal::WorkKind;

use crate::{content_parts::leading_pid, observe::is_id};

/// The tool by which Qwen runs commands, and the one by which it starts subagents.
const SHELL_TOOL: &str = "run_shell_command";
pub(super) const AGENT_TOOL: &str = "agent";

/// Lines of a result among which its fields are; further ones are not looked at.
const FIELD_LINES_MAX: usize = 4;

/// Work that a tool call left running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) what: WorkKind,
    pub(super) pid: Option<u32>,
}

/// What the result of a call of `tool` says about background work, if anything. Only these tools speak in Qwen's own words;
/// others hand on what a file or a server says.
pub(super) fn begun(tool: &str, result: &str) -> Option<Begun> {
    match tool {
        SHELL_TOOL => command(result),
        AGENT_TOOL => {
            let behind = result.strip_prefix("Background agent launched successfully.\n")?;
            named(field(behind, "task_id: ")?, WorkKind::Subagent, None)
        }
        _ => None,
    }
}

fn command(result: &str) -> Option<Begun> {
    if let Some(behind) = result.strip_prefix("Background shell started.\n") {
        let pid = field(behind, "pid: ").and_then(leading_pid);
        return named(field(behind, "id: ")?, WorkKind::Shell, pid);
    }
    // The command stands in the first line and may have any number of lines itself.
    if result.starts_with("Foreground command \"") {
        let (_, behind) = result.split_once("\" promoted to background as ")?;
        let (id, status) = behind.split_once(".\nStatus: running. PID: ")?;
        return named(id, WorkKind::Shell, leading_pid(status));
    }
    None
}

/// The rest of the line that begins with `name`, among the first few.
fn field<'a>(lines: &'a str, name: &str) -> Option<&'a str> {
    lines.lines().take(FIELD_LINES_MAX).find_map(|line| line.strip_prefix(name))
}

fn named(words: &str, what: WorkKind, pid: Option<u32>) -> Option<Begun> {
    let id = words.split_whitespace().next().filter(|id| is_id(id))?;
    Some(Begun { id: id.to_owned(), what, pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says it by the tool that may, and by another.
    fn check(result: &str, expected: Option<(&str, WorkKind, Option<u32>)>) {
        let expected = expected.map(|(id, what, pid)| Begun { id: id.to_owned(), what, pid });
        let of_agent = result.starts_with("Background agent");
        let tool = if of_agent { AGENT_TOOL } else { SHELL_TOOL };
        assert_eq!(begun(tool, result), expected, "{result}");
        let other = if of_agent { SHELL_TOOL } else { AGENT_TOOL };
        for tool in [other, "read_file"] {
            assert_eq!(begun(tool, result), None, "{tool}: {result}");
        }
    }

    #[test]
    fn reads_what_was_left_running() {
        check(
            "Background shell started.\nid: bg_8\npid: 130\noutput file: /x",
            Some(("bg_8", WorkKind::Shell, Some(130))),
        );
        check("Background shell started.\nid: bg_8\noutput file: /x", Some(("bg_8", WorkKind::Shell, None)));
        check(
            "Background agent launched successfully.\ntask_id: g-1 (internal ID)\nThe agent",
            Some(("g-1", WorkKind::Subagent, None)),
        );
        let promoted = "Foreground command \"a\nb\" promoted to background as bg_9.\nStatus: ";
        check(&format!("{promoted}running. PID: 77.\nOutput"), Some(("bg_9", WorkKind::Shell, Some(77))));
        check(&format!("{promoted}completed. PID: 77.\n"), None);
    }

    #[test]
    fn output_is_no_marker() {
        check("Command: echo\nOutput: Background shell started.\nid: bg_1", None);
        check("Background shell started.", None);
        check("Background shell started.\nid: \n", None);
        check("", None);
    }
}
