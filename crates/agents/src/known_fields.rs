//! The fields that each agent's payloads have in the versions that the adapters were made for, read or not. A further one is
//! counted: a newer version says something that nobody here looks at yet.

use serde_json::Value;

use crate::{adapter::Parsed, observe::unknown};

/// Of all hook payloads in Claude Code's form.
const COMMON: &[&str] = &["session_id", "transcript_path", "cwd", "hook_event_name"];

/// Of tools, turns and subagents in that form, which several agents have taken over.
const SHARED: &[&str] = &[
    "agent_id",
    "agent_transcript_path",
    "agent_type",
    "last_assistant_message",
    "message",
    "model",
    "notification_type",
    "permission_mode",
    "prompt",
    "reason",
    "source",
    "stop_hook_active",
    "tool_input",
    "tool_name",
    "tool_response",
    "tool_use_id",
    "trigger",
];

/// Claude Code 2.1.332. The last two lines are of events that no recording has.
const CLAUDE: &[&str] = &[
    "background_tasks",
    "compact_summary",
    "context_tokens",
    "custom_instructions",
    "delta",
    "duration_ms",
    "effort",
    "error",
    "estimated_cache_write_usd",
    "final",
    "index",
    "is_interrupt",
    "message_id",
    "permission_suggestions",
    "prompt_cache_likely_expired",
    "prompt_id",
    "seconds_since_last_response",
    "session_crons",
    "tool_calls",
    "turn_id",
    "action",
    "content",
    "elicitation_id",
    "mcp_server_name",
    "mode",
    "requested_schema",
    "url",
    "task_description",
    "task_id",
    "task_subject",
    "team_name",
    "teammate_name",
    "title",
];

/// Codex 0.171.0.
const CODEX: &[&str] = &["turn_id"];

/// GitHub Copilot CLI 1.0.102, in both spellings.
const COPILOT: &[&str] = &[
    "agentId",
    "agentName",
    "agentType",
    "agent_name",
    "customInstructions",
    "custom_instructions",
    "error",
    "errorContext",
    "error_context",
    "hookName",
    "initialPrompt",
    "initial_prompt",
    "parentAgentId",
    "parent_agent_id",
    "permissionSuggestions",
    "recoverable",
    "response",
    "sessionId",
    "stopReason",
    "stop_reason",
    "timestamp",
    "title",
    "toolArgs",
    "toolInput",
    "toolName",
    "toolResult",
    "tool_result",
    "transcriptPath",
    "transformedPrompt",
];

/// Gemini CLI 0.61.0.
const GEMINI: &[&str] = &["details", "llm_request", "llm_response", "prompt_response", "timestamp"];

/// Qwen Code 0.24.4.
const QWEN: &[&str] = &[
    "background_tasks",
    "context_limit",
    "context_usage",
    "crons",
    "displayed_text",
    "duration_ms",
    "error",
    "file_path",
    "input_tokens",
    "is_final",
    "is_interrupt",
    "load_reason",
    "memory_type",
    "message_id",
    "permission_suggestions",
    "prompt_id",
    "submitted_prompt",
    "timestamp",
    "title",
    "tool_call_id",
    "tool_calls",
];

/// Whose payload it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Claude,
    Codex,
    Copilot,
    Gemini,
    Qwen,
}

impl Form {
    const fn own(self) -> &'static [&'static str] {
        match self {
            Self::Claude => CLAUDE,
            Self::Codex => CODEX,
            Self::Copilot => COPILOT,
            Self::Gemini => GEMINI,
            Self::Qwen => QWEN,
        }
    }
}

/// Counts the outermost fields that are new.
pub(crate) fn count_new(form: Form, payload: &Value, out: &mut Parsed) {
    let fields = payload.as_object().into_iter().flat_map(|fields| fields.keys());
    for field in fields {
        if ![COMMON, SHARED, form.own()].iter().any(|known| known.contains(&field.as_str())) {
            unknown(out, &format!("field {field}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_new_field_is_counted_by_its_name() {
        let mut out = Parsed::default();
        let payload =
            json!({ "session_id": "s", "tool_name": "t", "turn_id": "u", "mood": "good", "details": 1 });
        count_new(Form::Codex, &payload, &mut out);
        out.unknown.sort();
        assert_eq!(out.unknown, ["field details", "field mood"]);
        let mut out = Parsed::default();
        count_new(Form::Gemini, &json!([1]), &mut out);
        assert!(out.unknown.is_empty());
    }

    #[test]
    fn a_flood_of_fields_is_cut() {
        let many: serde_json::Map<_, _> = (0..1000).map(|n| (format!("field{n}"), Value::Null)).collect();
        let mut out = Parsed::default();
        count_new(Form::Claude, &Value::Object(many), &mut out);
        assert_eq!(out.unknown.len(), crate::observe::UNKNOWN_MAX);
    }
}
