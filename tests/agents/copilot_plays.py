"""What happens with Copilot CLI where it differs from the other agents."""

from __future__ import annotations

from evidence import Evidence
from plays import begin_long_tool, leave, terminal_permission, terminal_question
from scene import Scene
from signs import (
    AGENT_GONE, BUSY_3, FIRST_PROMPT, TOOL_RETURNED, any_of, asks_person, hook, notified, record,
)  # fmt: skip

DIALOG_OPENED = any_of(notified("permission_prompt"), record("permission.requested"))
QUESTION_ASKED = any_of(notified("elicitation_dialog"), asks_person, hook("PreToolUse", tool="AskUserQuestion"))


def own_stop(e: Evidence) -> bool:
    """A subagent's stop has the name of the session's, and names the subagent."""
    return e.kind == "hook" and e.name == "Stop" and not {"agentId", "agent_id"} & e.data.keys()


def print_subagent(scene: Scene) -> None:
    """The turn waits for the subagent, whose hooks have an id of their own for the session."""
    scene.print_mode(f"PLAY task:bash:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", hook("PreToolUse", tool="Bash"), "the subagent works")
    scene.expect("working", hook("SubagentStop"), "the subagent ended")
    scene.expect("idle", own_stop, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def interrupt(scene: Scene, name: str) -> None:
    """It wants Esc twice. No hook tells of it."""
    scene.press("Escape")
    scene.terminal.wait_for("esc again to interrupt")
    scene.press("Escape")
    scene.expect("idle", record("abort"), name)


def permission(scene: Scene) -> None:
    terminal_permission(scene, DIALOG_OPENED, any_of(record("permission.completed"), TOOL_RETURNED), record("abort"))


def question(scene: Scene) -> None:
    terminal_question(scene, QUESTION_ASKED, any_of(TOOL_RETURNED, record("tool.execution_complete")))


def escape_turn(scene: Scene) -> None:
    scene.open_terminal()
    scene.send("PLAY slow:30")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.pause(1.0)
    interrupt(scene, "Esc interrupted the answer")
    leave(scene)


def escape_tool(scene: Scene) -> None:
    scene.open_terminal()
    begin_long_tool(scene, scene.send)
    interrupt(scene, "Esc interrupted the tool")
    leave(scene)
