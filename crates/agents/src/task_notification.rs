//! `<task-notification>` blocks: how the completion (or a tick) of background work reaches the model of Claude Code and
//! Qwen Code.

use watchkeeper_core::signal::WorkEnd;

use crate::observe::is_id;

/// Notices read from one text; a prompt carries one or a few.
const NOTICES_MAX: usize = 64;

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) task: String,
    /// `None`: a progress notice, the work goes on.
    pub(crate) end: Option<WorkEnd>,
}

/// All blocks of a prompt, in order; empty when it delivers none.
pub(crate) fn notices(text: &str) -> Vec<Notice> {
    let mut found = Vec::new();
    let mut rest = text;
    while found.len() < NOTICES_MAX {
        let Some((_, after)) = rest.split_once("<task-notification>") else { break };
        let (block, behind) = after.split_once("</task-notification>").unwrap_or((after, ""));
        rest = behind;
        if let Some(task) = element(block, "task-id").filter(|id| is_id(id)) {
            let end = element(block, "status").and_then(end_of_status);
            found.push(Notice { task: task.to_owned(), end });
        }
    }
    found
}

/// The end that a status word means; `None` for words that are no end (`running`, unknown ones).
pub(crate) fn end_of_status(status: &str) -> Option<WorkEnd> {
    match status {
        "completed" => Some(WorkEnd::Completed),
        "failed" => Some(WorkEnd::Failed),
        "killed" | "stopped" | "cancelled" => Some(WorkEnd::Killed),
        _ => None,
    }
}

/// The trimmed content of the first `<name>` element.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    let (content, _) = after.split_once(&format!("</{name}>"))?;
    Some(content.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, Option<WorkEnd>)]) {
        let found: Vec<_> = notices(text).into_iter().map(|n| (n.task, n.end)).collect();
        let expected: Vec<_> = expected.iter().map(|(t, e)| ((*t).to_owned(), *e)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn tells_an_end_from_a_tick() {
        let block = |inner: &str| format!("<task-notification>\n{inner}\n</task-notification>");
        check("plain words", &[]);
        check(
            &block("<task-id>b1</task-id>\n<status>completed</status>"),
            &[("b1", Some(WorkEnd::Completed))],
        );
        check(&block("<task-id>b1</task-id><status>killed</status>"), &[("b1", Some(WorkEnd::Killed))]);
        check(&block("<task-id>b1</task-id><status>cancelled</status>"), &[("b1", Some(WorkEnd::Killed))]);
        check(&block("<task-id>b1</task-id><event>tick 3</event>"), &[("b1", None)]);
        check(&block("<task-id>b1</task-id><status>running</status>"), &[("b1", None)]);
        check(&block("<status>completed</status>"), &[]);
        let two = [
            block("<task-id>a</task-id><status>failed</status>"),
            block("<task-id>b</task-id><event>x</event>"),
        ];
        check(&two.concat(), &[("a", Some(WorkEnd::Failed)), ("b", None)]);
        // A block that is cut off still counts by what it says.
        check(
            "<task-notification><task-id>a</task-id><status>stopped</status>",
            &[("a", Some(WorkEnd::Killed))],
        );
    }
}
