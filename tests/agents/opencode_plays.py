"""What happens with OpenCode where it differs from the other agents.

Its plugins see each turn begin and stop, in `run` and in its terminal interface alike; of its end only the exit tells.
"""

from __future__ import annotations

from plays import begin_long_tool, leave, terminal_question
from scene import Scene
from signs import BUSY_3, BUSY_60, EXIT, FIRST_PROMPT, TURN_STOPPED, any_of, of_opencode


def run_permission(scene: Scene) -> None:
    """`run` rejects at once what it would have to ask: never a lock, and the end of the turn."""
    scene.print_mode("PLAY permit:touch asked ;; text:never", asks=True)
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("working", of_opencode("permission.asked"), "a permission was asked for", brief=True)
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", EXIT, "the agent ended")
    scene.expect_never("waiting")


def run_subagent(scene: Scene) -> None:
    """The turn waits for the subagent, a session of its own whose end is not the turn's."""
    scene.print_mode(f"PLAY task:bash:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", of_opencode("tool.execute.before", tool="bash", child=True), "the subagent works")
    scene.expect("working", of_opencode("session.idle", child=True), "the subagent ended")
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", EXIT, "the agent ended")


def run_background(scene: Scene) -> None:
    """`run` does not wait for a subagent in the background: it ends with the turn, and ends the subagent.

    The end of such a subagent mostly begins a turn: until the agent is gone nothing tells that this one does not.
    """
    scene.print_mode(f"PLAY bgtask:bash:{BUSY_60} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("background", TURN_STOPPED, "the turn stopped with a subagent at work", brief=True)
    scene.expect(None, of_opencode("session.idle", child=True), "the agent ended the subagent")
    scene.expect("ended", EXIT, "the agent ended")


def run_interrupt(scene: Scene) -> None:
    begin_long_tool(scene, scene.print_mode)
    scene.interrupt_agent()
    scene.expect("ended", EXIT, "the agent was interrupted")


def permission(scene: Scene) -> None:
    scene.open_terminal(asks=True)
    scene.send(f"PLAY permit:{BUSY_3} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    asked = of_opencode("permission.asked")
    scene.expect("waiting", asked, "a permission dialog opened", waiting_for="permission_prompt")
    scene.press("Enter")
    scene.expect("working", of_opencode("permission.replied"), "the person allowed it")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def question(scene: Scene) -> None:
    terminal_question(scene, of_opencode("question.asked"), of_opencode("question.replied"))


def background(scene: Scene) -> None:
    """A subagent in the background outlives the turn; its end begins another one."""
    scene.open_terminal()
    scene.send("PLAY bgtask:bash:sleep 9 ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("background", TURN_STOPPED, "the turn stopped with a subagent at work")
    scene.expect("working", of_opencode("chat.message"), "the subagent's end began a turn")
    scene.expect("idle", TURN_STOPPED, "that turn stopped")
    leave(scene)


def escape_turn(scene: Scene) -> None:
    """It wants Esc twice; the answer that was on its way ends with an error of that name."""
    scene.open_terminal()
    scene.send("PLAY slow:30")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.pause(1.0)
    scene.press("Escape")
    scene.terminal.wait_for("again to interrupt")
    scene.press("Escape")
    scene.expect("idle", any_of(of_opencode("session.error"), TURN_STOPPED), "Esc interrupted the answer")
    leave(scene)
