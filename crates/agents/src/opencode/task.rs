//! OpenCode's `<task id="…" state="…">`: how the result of a subagent reaches the model, in the result of the call that
//! started it or, from the background, as a prompt of its own.

use watchkeeper_core::signal::WorkEnd;

use crate::observe::is_id;

/// What became of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Task<'a> {
    /// The subagent's session id.
    pub(super) id: &'a str,
    /// `None`: it works in the background.
    pub(super) end: Option<WorkEnd>,
}

/// The task that a text begins with, if any.
pub(super) fn leading(text: &str) -> Option<Task<'_>> {
    let (tag, _) = text.trim_start().strip_prefix("<task ")?.split_once('>')?;
    let end = match attribute(tag, "state=\"")? {
        "running" | "pending" => None,
        "completed" => Some(WorkEnd::Completed),
        "cancelled" => Some(WorkEnd::Killed),
        _ => Some(WorkEnd::Failed),
    };
    Some(Task { id: attribute(tag, "id=\"").filter(|id| is_id(id))?, end })
}

fn attribute<'a>(tag: &'a str, opening: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(opening)?;
    value.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, Option<WorkEnd>)>) {
        assert_eq!(leading(text), expected.map(|(id, end)| Task { id, end }), "{text}");
    }

    #[test]
    fn tells_running_from_ended() {
        check("<task id=\"ses_1\" state=\"running\">\n<summary>x</summary>", Some(("ses_1", None)));
        check("<task id=\"ses_1\" state=\"completed\">", Some(("ses_1", Some(WorkEnd::Completed))));
        check("<task id=\"ses_1\" state=\"error\">", Some(("ses_1", Some(WorkEnd::Failed))));
        check("<task id=\"\" state=\"completed\">", None);
        check("<task state=\"completed\">", None);
        check("words <task id=\"ses_1\" state=\"completed\">", None);
        check("<task id=\"ses_1", None);
    }
}
