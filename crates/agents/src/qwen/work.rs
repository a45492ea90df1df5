//! How Qwen Code speaks of background work: the beginnings of tool results. Its end comes as a notification into the
//! chat file; only for subagents there is a hook too.

use watchkeeper_core::signal::WorkKind;

use crate::{function_parts::leading_pid, observe::is_id};

/// Work that a tool call left running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) what: WorkKind,
    pub(super) pid: Option<u32>,
}

/// What the result of a tool call says about background work, if anything.
pub(super) fn begun(result: &str) -> Option<Begun> {
    let mut lines = result.lines();
    let first = lines.next()?;
    let field = |name: &str| result.lines().skip(1).take(4).find_map(|line| line.strip_prefix(name));
    if first == "Background shell started." {
        let pid = field("pid: ").and_then(leading_pid);
        return named(field("id: ")?, WorkKind::Shell, pid);
    }
    if first == "Background agent launched successfully." {
        return named(field("task_id: ")?, WorkKind::Subagent, None);
    }
    // The command stands in the first line and may have any number of lines itself.
    if result.starts_with("Foreground command \"") {
        let (_, behind) = result.split_once("\" promoted to background as ")?;
        let (id, status) = behind.split_once(".\nStatus: running. PID: ")?;
        return named(id, WorkKind::Shell, leading_pid(status));
    }
    None
}

fn named(words: &str, what: WorkKind, pid: Option<u32>) -> Option<Begun> {
    let id = words.split_whitespace().next().filter(|id| is_id(id))?;
    Some(Begun { id: id.to_owned(), what, pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: &str, expected: Option<(&str, WorkKind, Option<u32>)>) {
        let expected = expected.map(|(id, what, pid)| Begun { id: id.to_owned(), what, pid });
        assert_eq!(begun(result), expected, "{result}");
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
