"""What a person does, and what is true after each step, where several agents do alike."""

from __future__ import annotations

from collections.abc import Callable

from evidence import Predicate
from scene import Scene
from signs import (
    AGENT_GONE, ASKED, BUSY_3, BUSY_60, EXIT, FIRST_PROMPT, INTERRUPTED, TOOL_RETURNED, TOOL_STARTED, TURN_STARTED, TURN_STOPPED,
    any_of, command_ended, hook, registry,
)  # fmt: skip

# ---- print mode -------------------------------------------------------------------------------------------------------


def print_text(scene: Scene) -> None:
    scene.print_mode("PLAY slow:4")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def print_tool(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_3} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("working", TOOL_RETURNED, "the tool returned")
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def print_background(scene: Scene) -> None:
    """Claude waits for its background shells; each end of one is a turn of its own."""
    scene.print_mode("PLAY bgbash:sleep 7; echo finished ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("background", TURN_STOPPED, "the turn stopped with a shell running")
    scene.expect("working", TURN_STARTED, "the shell's end began a turn")
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def exec_background(scene: Scene) -> None:
    """`codex exec` does not wait: it ends, and ends the command."""
    scene.print_mode("PLAY bgbash:sleep 20; echo finished ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("background", TURN_STOPPED, "the turn stopped with a command running", brief=True)
    scene.expect("idle", any_of(command_ended, hook("SessionEnd")), "the agent ended the command", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def print_background_ended(scene: Scene) -> None:
    """Qwen Code does not wait in print mode either."""
    scene.print_mode("PLAY bgbash:sleep 20; echo finished ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("background", TURN_STOPPED, "the turn stopped with a shell running", brief=True)
    scene.expect("ended", EXIT, "the agent ended, and the shell with it")


def print_permission(scene: Scene) -> None:
    """Nobody can be asked: the request is denied at once and is never a lock."""
    scene.print_mode("PLAY permit:touch asked ;; slow:3", asks=True)
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")
    scene.expect_never("waiting")


def print_kill(scene: Scene) -> None:
    begin_long_tool(scene, scene.print_mode)
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")


def print_daemon_kill(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_3} ;; bash:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", TOOL_STARTED, "a tool was started")
    daemon_dies_and_returns(scene)
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def daemon_dies_and_returns(scene: Scene) -> None:
    scene.kill_daemon()
    scene.pause(1.3)  # the inhibitor has to be gone by then; the samples say so
    scene.restart_daemon()
    scene.expect_back("working")


# ---- terminal interface -----------------------------------------------------------------------------------------------


def open_idle(scene: Scene, **options: bool) -> None:
    """Some agents report a session when it starts, the others with the first prompt."""
    scene.open_terminal(**options)
    if scene.agent.reports_start:
        scene.expect("idle", hook("SessionStart"), "the interface opened")


def begin_long_tool(scene: Scene, give: Callable[[str], None]) -> None:
    """A tool runs, for longer than anything that is about to happen."""
    give(f"PLAY bash:{BUSY_60} ;; text:never")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", TOOL_STARTED, "a tool was started")


def escape_answer(scene: Scene, prompt: str, truth: str, interrupted: Predicate = INTERRUPTED) -> None:
    """Esc a second after the prompt, while the model is at it."""
    open_idle(scene)
    scene.send(prompt)
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.pause(1.0)
    scene.press("Escape")
    scene.expect("idle", interrupted, truth)
    leave(scene)


def leave(scene: Scene) -> None:
    if scene.shared_server:
        leave_shared(scene)
        return
    scene.send("/quit" if scene.agent.name in ("codex", "qwen", "gemini") else "/exit")
    scene.expect("ended", AGENT_GONE, "the person left")


def terminal_text(scene: Scene) -> None:
    open_idle(scene)
    scene.send("PLAY slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    scene.send("PLAY slow:3")
    scene.expect("working", TURN_STARTED, "a second prompt was given")
    scene.expect("idle", TURN_STOPPED, "the second turn stopped")
    leave(scene)


def terminal_tool(scene: Scene) -> None:
    open_idle(scene)
    scene.send(f"PLAY bash:{BUSY_3} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("working", TOOL_RETURNED, "the tool returned")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def terminal_background_woken(scene: Scene) -> None:
    open_idle(scene)
    scene.send("PLAY bgbash:sleep 7; echo finished ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("background", TURN_STOPPED, "the turn stopped with a shell running")
    scene.expect("working", TURN_STARTED, "the shell's end began a turn")
    scene.expect("idle", TURN_STOPPED, "that turn stopped")
    leave(scene)


def terminal_background_codex(scene: Scene) -> None:
    """Codex tells of the end only in its rollout, and never wakes the model for it."""
    open_idle(scene)
    scene.send("PLAY bgbash:sleep 7; echo finished ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("background", TURN_STOPPED, "the turn stopped with a command running")
    scene.expect("idle", command_ended, "the command ended")
    leave(scene)


def terminal_permission(scene: Scene, opened: Predicate, allowed: Predicate, refused: Predicate) -> None:
    open_idle(scene, asks=True)
    scene.send(f"PLAY permit:{BUSY_3} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", opened, "a permission dialog opened", waiting_for="permission_prompt")
    scene.press("Enter")
    scene.expect("working", allowed, "the person allowed it")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    scene.send("PLAY permit:touch denied ;; slow:2")
    scene.expect("working", TURN_STARTED, "a second prompt was given", brief=True)
    scene.expect("waiting", opened, "a second dialog opened", waiting_for="permission_prompt")
    scene.press("Escape")
    scene.expect("idle", refused, "the person refused with Esc")
    leave(scene)


def terminal_permission_claude(scene: Scene) -> None:
    terminal_permission(scene, ASKED, any_of(registry("busy"), TOOL_RETURNED), INTERRUPTED)


def terminal_permission_codex(scene: Scene) -> None:
    """Codex reports no approval: until the tool returns nothing tells that the person has answered."""
    open_idle(scene, asks=True)
    scene.send(f"PLAY permit:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", ASKED, "an approval dialog opened", waiting_for="permission_prompt")
    scene.terminal.wait_for("Would you like to run")
    scene.press("y")
    scene.expect(None, scene.acted("press y"), "the person allowed it")
    scene.expect("working", any_of(hook("PostToolUse"), command_ended), "the tool returned")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    scene.send("PLAY permit:touch denied ;; slow:2")
    scene.expect("working", TURN_STARTED, "a second prompt was given", brief=True)
    scene.expect("waiting", ASKED, "a second dialog opened", waiting_for="permission_prompt")
    scene.terminal.wait_for("Would you like to run")
    scene.press("Escape")
    scene.expect("idle", INTERRUPTED, "the person refused with Esc")
    leave(scene)


def terminal_question(scene: Scene, asked: Predicate, answered: Predicate) -> None:
    open_idle(scene)
    scene.send("PLAY ask ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", asked, "a question was asked", waiting_for="question")
    scene.press("Enter")
    scene.expect("working", answered, "the person answered")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def terminal_question_claude(scene: Scene) -> None:
    terminal_question(scene, ASKED, any_of(registry("busy"), TOOL_RETURNED))


def terminal_question_codex(scene: Scene) -> None:
    open_idle(scene)
    scene.send("PLAY ask ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", hook("PreToolUse", tool="request_user_input"), "a question was asked")
    scene.press("Enter")
    scene.expect("working", hook("PostToolUse", tool="request_user_input"), "the person answered")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def terminal_escape_turn(scene: Scene) -> None:
    escape_answer(scene, "PLAY slow:30", "Esc interrupted the answer")


def escape_tool(scene: Scene, state: str, truth: str, interrupted: Predicate = INTERRUPTED) -> None:
    open_idle(scene)
    begin_long_tool(scene, scene.send)
    scene.press("Escape")
    scene.expect(state, interrupted, truth)
    leave(scene)


def terminal_escape_tool_claude(scene: Scene) -> None:
    """Claude ends the tool that ran."""
    escape_tool(scene, "idle", "Esc interrupted the tool")


def terminal_escape_tool_codex(scene: Scene) -> None:
    """Codex leaves the command running, as a terminal in the background."""
    escape_tool(scene, "background", "Esc interrupted the turn, not the command")


def terminal_escape_before_first_byte(scene: Scene) -> None:
    """Claude fires no hook and writes nothing into its transcript: only its registry tells."""
    escape_answer(scene, "PLAY think:30", "Esc came before the first byte")


def terminal_kill(scene: Scene) -> None:
    open_idle(scene)
    begin_long_tool(scene, scene.send)
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")


def terminal_daemon_kill(scene: Scene) -> None:
    open_idle(scene)
    scene.send(f"PLAY bash:{BUSY_3} ;; bash:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", TOOL_STARTED, "a tool was started")
    daemon_dies_and_returns(scene)
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def terminal_hook_starts_daemon(scene: Scene) -> None:
    """Nobody restarts the daemon: the next prompt's hook does."""
    open_idle(scene)
    scene.kill_daemon()
    scene.send("PLAY slow:6")
    scene.expect(None, TURN_STARTED, "a prompt was given without a daemon")
    scene.adopt_daemon()
    scene.expect_back("working")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def leave_shared(scene: Scene) -> None:
    """Codex's thread stays loaded when its client has left; whoever waits for a minute sees it go, this one stops the server."""
    scene.send("/quit")
    scene.expect("idle", EXIT, "the person left; the thread stays loaded")
    scene.agent.clean_up()
    scene.expect("ended", hook("SessionEnd"), "the shared server stopped")


def shared_text(scene: Scene) -> None:
    """Codex as it comes: hooks trusted through its dialog, turns run by the shared app-server."""
    open_idle(scene)
    scene.send(f"PLAY bash:{BUSY_3} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)
