"""What happens with Gemini CLI and Qwen Code, its descendant, where they differ from the other agents."""

from __future__ import annotations

import plays
from plays import escape_answer, leave, open_idle
from scene import Scene
from signs import BUSY_3, FIRST_PROMPT, TOOL_RETURNED, TURN_STOPPED, any_of, hook, notified, record

CANCELLED = any_of(record("info"), hook("AfterTool"), hook("AfterAgent"), hook("PostToolUseFailure"), notified("idle_prompt"))
DIALOG_OPENED = any_of(notified("ToolPermission"), hook("PermissionRequest"))


def permission(scene: Scene) -> None:
    """An approval is not reported: until the tool returns nothing tells that the person has answered."""
    open_idle(scene, asks=True)
    scene.send(f"PLAY permit:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", DIALOG_OPENED, "a permission dialog opened", waiting_for="permission_prompt")
    scene.press("Enter")
    scene.expect(None, scene.acted("press Enter"), "the person allowed it")
    scene.expect("working", TOOL_RETURNED, "the tool returned")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def question(scene: Scene) -> None:
    open_idle(scene)
    scene.send("PLAY ask ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", any_of(DIALOG_OPENED, hook("BeforeTool", "PreToolUse")), "a question was asked", waiting_for="question")
    scene.terminal.wait_for("Red")
    scene.press("Enter")
    scene.expect("working", TOOL_RETURNED, "the person answered")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def escape_turn(scene: Scene) -> None:
    escape_answer(scene, "PLAY slow:30", "Esc interrupted the answer", CANCELLED)


def escape_tool(scene: Scene) -> None:
    plays.escape_tool(scene, "idle", "Esc interrupted the tool", CANCELLED)


def background(scene: Scene) -> None:
    """Gemini CLI leaves a command running behind the turn; its end wakes nobody."""
    open_idle(scene)
    scene.send("PLAY bgbash:sleep 12; echo finished ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("background", TURN_STOPPED, "the turn stopped with a command running")
    leave(scene)
