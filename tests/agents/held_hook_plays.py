"""What happens to a hook that still runs, somebody's own and slow, and to the session beside it."""

from __future__ import annotations

from plays import leave, open_idle
from scene import Scene
from session_plays import one_turn
from signs import AGENT_GONE, ASKED, BUSY_60, EXIT, FIRST_PROMPT, INTERRUPTED, any_of, hook, registry


def ended_by_agent(event: str):
    return lambda e: e.kind == "exit" and e.name == event


def slow_session_end(scene: Scene) -> None:
    """The agent does not wait for it, and kills it within seconds. The session is over when it is told so."""
    scene.slow_hook("SessionEnd", has_timeout=scene.agent.name != "claude")
    open_idle(scene)
    one_turn(scene)
    leave(scene)
    scene.expect("ended", EXIT, "the agent ended before the hook")
    scene.slow_hook_runs("SessionEnd", False)


def slow_session_end_awaited(scene: Scene) -> None:
    """With a time limit of its own Claude waits for it: the session is over, the process is not."""
    scene.slow_hook("SessionEnd")
    open_idle(scene)
    leave(scene)
    scene.slow_hook_runs("SessionEnd", True)


def begin_slow_stop(scene: Scene) -> None:
    """While a hook on the turn's end runs the agent is neither at work nor free: nothing is said about that time."""
    scene.slow_hook("Stop")
    open_idle(scene)
    scene.send("PLAY slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect(None, hook("Stop"), "the turn stopped, with a slow hook on it")
    scene.slow_hook_runs("Stop", True)


def slow_stop_escape(scene: Scene) -> None:
    begin_slow_stop(scene)
    scene.press("Escape")
    scene.expect("idle", any_of(INTERRUPTED, ended_by_agent("Stop")), "Esc ended the hook")
    scene.slow_hook_runs("Stop", False)
    leave(scene)


def slow_stop_terminal_closed(scene: Scene) -> None:
    begin_slow_stop(scene)
    scene.close_terminal()
    scene.expect("ended", AGENT_GONE, "the terminal was closed")
    scene.expect("ended", ended_by_agent("Stop"), "the hook ended with it")


def begin_slow_permission(scene: Scene) -> None:
    scene.slow_hook("PermissionRequest")
    open_idle(scene, asks=True)
    scene.send(f"PLAY permit:{BUSY_60} ;; text:never")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    if scene.agent.name == "claude":
        scene.expect("waiting", any_of(ASKED, registry("waiting")), "a dialog opened beside the hook")
    else:
        scene.expect(None, hook("PermissionRequest", "PreToolUse"), "a permission was asked for; the dialog waits for the hook")
    scene.slow_hook_runs("PermissionRequest", True)


def slow_permission_escape(scene: Scene) -> None:
    begin_slow_permission(scene)
    scene.press("Escape")
    scene.expect("idle", INTERRUPTED, "Esc refused, and ended the hook")
    scene.slow_hook_runs("PermissionRequest", False)
    leave(scene)


def slow_permission_answered(scene: Scene) -> None:
    """The dialog wins; the hook is not told and goes on."""
    begin_slow_permission(scene)
    scene.press("Enter")
    scene.expect("working", registry("busy"), "the person allowed it")
    scene.slow_hook_runs("PermissionRequest", True)
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")


def slow_permission_kill(scene: Scene) -> None:
    """The hook goes on as an orphan: it speaks for nobody."""
    begin_slow_permission(scene)
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")
    scene.slow_hook_runs("PermissionRequest", True)
