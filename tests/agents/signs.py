"""What tells of what: evidence by which a scenario says that something has happened, and commands that take their time."""

from __future__ import annotations

from evidence import Evidence, Predicate

# A shell command that takes its time; a bare `sleep` is refused by Claude's shell tool.
BUSY_3 = "python3 -c 'import time; time.sleep(3)'"
BUSY_60 = "python3 -c 'import time; time.sleep(60)'"


def hook(*names: str, tool: str | None = None) -> Predicate:
    return lambda e: e.kind == "hook" and e.name in names and tool in (None, e.data.get("tool_name"))


def registry(*statuses: str) -> Predicate:
    return lambda e: e.kind == "registry" and e.name in statuses


def record(*names: str) -> Predicate:
    return lambda e: e.kind == "transcript" and e.name in names


def any_of(*predicates: Predicate) -> Predicate:
    return lambda e: any(matches(e) for matches in predicates)


def interrupt_record(e: Evidence) -> bool:
    """Claude's transcript tells of an interruption with a user record, if the answer had begun."""
    if e.kind != "transcript" or e.name != "user":
        return False
    return "[Request interrupted by user" in str((e.data.get("message") or {}).get("content"))


def command_ended(e: Evidence) -> bool:
    """Codex: a command that ran in the background has ended."""
    if e.kind != "transcript" or e.name != "event_msg/item_completed":
        return False
    return ((e.data.get("payload") or {}).get("item") or {}).get("type") == "CommandExecution"


def of_opencode(*names: str, tool: str | None = None, status: str | None = None, child: bool = False) -> Predicate:
    """An event that OpenCode told its plugins, of the session itself or of one that it started."""

    def matches(e: Evidence) -> bool:
        same = tool in (None, e.data.get("tool_name")) and status in (None, e.data.get("status"))
        return e.kind == "hook" and e.name in names and same and e.data.get("child") is child

    return matches


def notified(*kinds: str) -> Predicate:
    """Copilot's word that a dialog is really shown; its request for a permission comes with every call of a tool."""
    return lambda e: e.kind == "hook" and e.name == "Notification" and e.data.get("notification_type") in kinds


def asks_person(e: Evidence) -> bool:
    """Copilot calls its tool for questions."""
    return e.kind == "transcript" and e.name == "tool.execution_start" and (e.data.get("data") or {}).get("toolName") == "ask_user"


EXIT = lambda e: e.kind == "exit" and e.name == "agent"  # noqa: E731
AGENT_GONE = any_of(hook("SessionEnd"), registry("removed"), EXIT)
OPENCODE_BEGAN = any_of(of_opencode("chat.message"), of_opencode("session.status", status="busy"))
OPENCODE_STOPPED = any_of(of_opencode("session.status", status="idle"), of_opencode("session.idle"))
# Codex creates a rollout just before its first hook, in a folder of the day: until the hook nobody can know of it.
FIRST_PROMPT = any_of(hook("UserPromptSubmit", "BeforeAgent"), registry("busy"), OPENCODE_BEGAN)
TURN_STARTED = any_of(FIRST_PROMPT, record("event_msg/task_started"))
TURN_STOPPED = any_of(hook("Stop", "AfterAgent"), registry("idle", "shell"), record("event_msg/task_complete"), OPENCODE_STOPPED)
TOOL_STARTED = any_of(hook("PreToolUse", "BeforeTool"), of_opencode("tool.execute.before"))
TOOL_RETURNED = any_of(hook("PostToolUse", "AfterTool"), of_opencode("tool.execute.after"))
INTERRUPTED = any_of(hook("Interrupt"), registry("idle"), interrupt_record, record("event_msg/turn_aborted"))
ASKED = any_of(hook("PermissionRequest"), registry("waiting"))
# What tells that the model's service refused: a hook, an event, a record of the transcript.
FAILED = any_of(
    hook("StopFailure", "ErrorOccurred", "session.error"), record("error", "session.error"),
)  # fmt: skip
