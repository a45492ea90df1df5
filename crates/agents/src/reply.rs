//! What a held hook prints; Claude Code and Codex share the form.

use serde_json::json;
use watchkeeper_core::effect::HookAnswer;

/// The JSON for this event's hook, `None` to print nothing and leave the agent alone.
pub(crate) fn claude_form(event: &str, answer: &HookAnswer) -> Option<String> {
    let decision = |behavior: &str, message: Option<&str>| {
        let mut decision = json!({ "behavior": behavior });
        if let (Some(message), Some(fields)) = (message, decision.as_object_mut()) {
            fields.insert("message".to_owned(), message.into());
        }
        let output = json!({ "hookEventName": "PermissionRequest", "decision": decision });
        Some(json!({ "hookSpecificOutput": output }).to_string())
    };
    match (event, answer) {
        ("Stop", HookAnswer::Continue { message }) => {
            Some(json!({ "decision": "block", "reason": message }).to_string())
        }
        ("PermissionRequest", HookAnswer::Allow) => decision("allow", None),
        ("PermissionRequest", HookAnswer::Deny { message }) => decision("deny", Some(message)),
        (
            _,
            HookAnswer::Nothing | HookAnswer::Continue { .. } | HookAnswer::Allow | HookAnswer::Deny { .. },
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: &str, answer: HookAnswer, expected: Option<serde_json::Value>) {
        let printed = claude_form(event, &answer).map(|text| text.parse().unwrap());
        assert_eq!(printed, expected, "{event} {answer:?}");
    }

    #[test]
    fn answers_only_what_the_event_can_carry() {
        let message = || "go on".to_owned();
        check(
            "Stop",
            HookAnswer::Continue { message: message() },
            Some(json!({"decision": "block", "reason": "go on"})),
        );
        check(
            "PermissionRequest",
            HookAnswer::Allow,
            Some(
                json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}),
            ),
        );
        check(
            "PermissionRequest",
            HookAnswer::Deny { message: message() },
            Some(
                json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "go on"}}}),
            ),
        );
        check("Stop", HookAnswer::Allow, None);
        check("PermissionRequest", HookAnswer::Continue { message: message() }, None);
        check("Stop", HookAnswer::Nothing, None);
    }
}
