"""What happens when an agent, its wrapper or its terminal is ended from outside while a tool runs."""

from __future__ import annotations

from collections.abc import Callable

from plays import begin_long_tool, open_idle
from scene import Scene
from session_plays import one_turn
from signs import AGENT_GONE, BUSY_3, EXIT, FIRST_PROMPT, TOOL_STARTED, TURN_STOPPED


def print_kill_wrapper(scene: Scene) -> None:
    """The agent below it does not notice: it comes to its end by itself."""
    scene.print_mode(f"PLAY bash:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", TOOL_STARTED, "a tool was started", brief=True)
    scene.kill_wrapper()
    scene.expect("working", scene.acted("kill the wrapper"), "the wrapper was killed")
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def in_a_long_tool(scene: Scene, end: Callable[[], None], truth: str) -> None:
    """In the terminal interface the agent goes with what is ended."""
    open_idle(scene)
    begin_long_tool(scene, scene.send)
    end()
    scene.expect("ended", AGENT_GONE, truth)


def terminal_kill_wrapper(scene: Scene) -> None:
    """The wrapper was the pane's process: the terminal goes with it, and the agent with that."""
    in_a_long_tool(scene, scene.kill_wrapper, "the terminal went with the wrapper")


def terminal_closed(scene: Scene) -> None:
    in_a_long_tool(scene, scene.close_terminal, "the terminal was closed")


def terminal_closed_idle(scene: Scene) -> None:
    open_idle(scene)
    one_turn(scene)
    scene.close_terminal()
    scene.expect("ended", AGENT_GONE, "the terminal was closed")


def print_terminated(scene: Scene) -> None:
    begin_long_tool(scene, scene.print_mode)
    scene.terminate()
    scene.expect("ended", AGENT_GONE, "the agent was told to end")


def terminal_terminated(scene: Scene) -> None:
    in_a_long_tool(scene, scene.terminate, "the agent was told to end")


def orphan(scene: Scene) -> None:
    """The tool of an agent that was killed is nobody's work, whether it goes on or not."""
    begin_long_tool(scene, scene.print_mode)
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")
    scene.tool_survives(scene.agent.name != "codex")
