//! Tool results and content parts as Gemini CLI writes them into hooks and chat files, and Qwen Code after it.

use serde_json::Value;

use crate::{json, observe::id};

/// What a tool's result says when the person cancelled the turn that it ran in.
const CANCELLED: &str = "[Operation Cancelled]";

/// The wrapper around output that is not the agent's own.
const UNTRUSTED: &str = "<untrusted_context>";

/// The words that a finished tool gave to the model, in a hook's `tool_response`.
pub(crate) fn result_words(payload: &Value) -> &str {
    let content = payload.get("tool_response").and_then(|response| response.get("llmContent"));
    let words = match content {
        Some(Value::String(words)) => words,
        Some(Value::Array(parts)) => {
            parts.iter().find_map(|part| json::text(part, "text")).unwrap_or_default()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => "",
    };
    let words = words.trim_start();
    words.strip_prefix(UNTRUSTED).map_or(words, str::trim_start)
}

/// The decimal number at the beginning of `text`, as a pid.
pub(crate) fn leading_pid(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok().filter(|pid| *pid > 1)
}

/// The text parts under `key` (a string, or a list of parts), joined; `None` when there are none.
pub(crate) fn words(value: &Value, key: &str) -> Option<String> {
    if let Some(text) = json::text(value, key) {
        return Some(text.to_owned());
    }
    let texts: Vec<&str> = json::items(value, key).filter_map(|part| json::text(part, "text")).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The result of one tool call in a chat file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolResult<'a> {
    pub(crate) call: Option<&'a str>,
    pub(crate) name: &'a str,
    /// The person cancelled it.
    pub(crate) cancelled: bool,
}

/// The results under `key`, in order.
pub(crate) fn results<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = ToolResult<'a>> {
    json::items(value, key).filter_map(|part| {
        let result = part.get("functionResponse")?;
        let error = result.get("response").and_then(|response| json::text(response, "error"));
        let cancelled = error.is_some_and(|error| error.starts_with(CANCELLED));
        Some(ToolResult { call: id(result, "id"), name: json::text(result, "name")?, cancelled })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(response: Value, expected: &str) {
        assert_eq!(result_words(&json!({ "tool_response": response })), expected);
    }

    #[test]
    fn reads_what_a_tool_gave() {
        check(json!({ "llmContent": "plain" }), "plain");
        check(json!({ "llmContent": "<untrusted_context>\nOutput: x" }), "Output: x");
        check(json!({ "llmContent": [{ "inlineData": {} }, { "text": "second" }] }), "second");
        check(json!({ "llmContent": 7 }), "");
        check(json!("text"), "");
    }

    #[test]
    fn reads_results_and_who_cancelled_them() {
        let parts = json!({ "content": [
            { "functionResponse": { "id": "i", "name": "a", "response": { "error": "[Operation Cancelled] Reason: x" } } },
            { "functionResponse": { "name": "b", "response": { "output": "[Operation Cancelled]" } } },
            { "functionResponse": { "response": {} } },
            { "text": "words" },
        ] });
        let found: Vec<_> = results(&parts, "content").collect();
        let result = |call, name, cancelled| ToolResult { call, name, cancelled };
        assert_eq!(found, [result(Some("i"), "a", true), result(None, "b", false)]);
        assert_eq!(words(&parts, "content").as_deref(), Some("words"));
        assert_eq!(words(&json!({ "content": "as it is" }), "content").as_deref(), Some("as it is"));
        assert_eq!(words(&json!({ "content": [] }), "content"), None);
    }

    #[test]
    fn reads_pids() {
        assert_eq!(leading_pid("23032). Output"), Some(23032));
        assert_eq!(leading_pid("12\noutput"), Some(12));
        for none in ["", "x", "0", "1", "99999999999", "-4"] {
            assert_eq!(leading_pid(none), None, "{none}");
        }
    }
}
