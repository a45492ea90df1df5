"""The scenarios: what a person does, and what is true after each step. A table at the end lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evidence import Evidence, Predicate
from scene import Scene

# A shell command that takes its time; a bare `sleep` is refused by Claude's shell tool.
BUSY_3 = "python3 -c 'import time; time.sleep(3)'"
BUSY_60 = "python3 -c 'import time; time.sleep(60)'"

# ---- evidence ---------------------------------------------------------------------------------------------------------


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


AGENT_GONE = any_of(hook("SessionEnd"), registry("removed"), lambda e: e.kind == "exit" and e.name == "agent")
# Codex creates a rollout just before its first hook, in a folder of the day: until the hook nobody can know of it.
FIRST_PROMPT = any_of(hook("UserPromptSubmit"), registry("busy"))
TURN_STARTED = any_of(hook("UserPromptSubmit"), registry("busy"), record("event_msg/task_started"))
TURN_STOPPED = any_of(hook("Stop"), registry("idle", "shell"), record("event_msg/task_complete"))
INTERRUPTED = any_of(hook("Interrupt"), registry("idle"), interrupt_record, record("event_msg/turn_aborted"))
ASKED = any_of(hook("PermissionRequest"), registry("waiting"))
OPENCODE_STARTED = any_of(of_opencode("chat.message"), of_opencode("session.status", status="busy"))
OPENCODE_STOPPED = any_of(of_opencode("session.status", status="idle"), of_opencode("session.idle"))
EXIT = lambda e: e.kind == "exit" and e.name == "agent"  # noqa: E731

# ---- print mode -------------------------------------------------------------------------------------------------------


def print_text(scene: Scene) -> None:
    scene.print_mode("PLAY slow:4")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def print_tool(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_3} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("working", hook("PostToolUse"), "the tool returned")
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


def print_permission(scene: Scene) -> None:
    """Nobody can be asked: the request is denied at once and is never a lock."""
    scene.print_mode("PLAY permit:touch asked ;; slow:3", asks=True)
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("idle", TURN_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", AGENT_GONE, "the agent ended")


def print_kill(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_60} ;; text:never")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", hook("PreToolUse"), "a tool was started")
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")


def print_daemon_kill(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_3} ;; bash:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", hook("PreToolUse"), "a tool was started")
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
    """Claude reports a session when it starts, Codex with the first prompt."""
    scene.open_terminal(**options)
    if scene.agent.name == "claude":
        scene.expect("idle", hook("SessionStart"), "the interface opened")


def leave(scene: Scene) -> None:
    scene.send("/exit" if scene.agent.name == "claude" else "/quit")
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
    scene.expect("working", hook("PostToolUse"), "the tool returned")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def terminal_background_claude(scene: Scene) -> None:
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


def terminal_permission_claude(scene: Scene) -> None:
    open_idle(scene, asks=True)
    scene.send(f"PLAY permit:{BUSY_3} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", ASKED, "a permission dialog opened", waiting_for="permission_prompt")
    scene.press("Enter")
    scene.expect("working", any_of(registry("busy"), hook("PostToolUse")), "the person allowed it")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    scene.send("PLAY permit:touch denied ;; slow:2")
    scene.expect("working", TURN_STARTED, "a second prompt was given", brief=True)
    scene.expect("waiting", ASKED, "a second dialog opened", waiting_for="permission_prompt")
    scene.press("Escape")
    scene.expect("idle", INTERRUPTED, "the person refused with Esc")
    leave(scene)


def terminal_permission_codex(scene: Scene) -> None:
    """Codex reports no approval: until the tool returns nothing tells that the person has answered."""
    open_idle(scene, asks=True)
    scene.send(f"PLAY permit:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", ASKED, "an approval dialog opened", waiting_for="permission_prompt")
    scene.terminal.wait_for("Would you like to run")
    scene.press("y")
    scene.expect(None, lambda e: e.kind == "act" and e.name == "press y", "the person allowed it")
    scene.expect("working", any_of(hook("PostToolUse"), command_ended), "the tool returned")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    scene.send("PLAY permit:touch denied ;; slow:2")
    scene.expect("working", TURN_STARTED, "a second prompt was given", brief=True)
    scene.expect("waiting", ASKED, "a second dialog opened", waiting_for="permission_prompt")
    scene.terminal.wait_for("Would you like to run")
    scene.press("Escape")
    scene.expect("idle", INTERRUPTED, "the person refused with Esc")
    leave(scene)


def terminal_question_claude(scene: Scene) -> None:
    open_idle(scene)
    scene.send("PLAY ask ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("waiting", ASKED, "a question was asked", waiting_for="question")
    scene.press("Enter")
    scene.expect("working", any_of(registry("busy"), hook("PostToolUse")), "the person answered")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


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
    open_idle(scene)
    scene.send("PLAY slow:30")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.pause(1.0)
    scene.press("Escape")
    scene.expect("idle", INTERRUPTED, "Esc interrupted the answer")
    leave(scene)


def terminal_escape_tool_claude(scene: Scene) -> None:
    """Claude ends the tool that ran."""
    open_idle(scene)
    scene.send(f"PLAY bash:{BUSY_60} ;; text:never")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", hook("PreToolUse"), "a tool was started")
    scene.press("Escape")
    scene.expect("idle", INTERRUPTED, "Esc interrupted the tool")
    leave(scene)


def terminal_escape_tool_codex(scene: Scene) -> None:
    """Codex leaves the command running, as a terminal in the background."""
    open_idle(scene)
    scene.send(f"PLAY bash:{BUSY_60} ;; text:never")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", hook("PreToolUse"), "a tool was started")
    scene.press("Escape")
    scene.expect("background", INTERRUPTED, "Esc interrupted the turn, not the command")
    leave(scene)


def terminal_escape_before_first_byte(scene: Scene) -> None:
    """Claude fires no hook and writes nothing into its transcript: only its registry tells."""
    open_idle(scene)
    scene.send("PLAY think:30")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.pause(1.0)
    scene.press("Escape")
    scene.expect("idle", INTERRUPTED, "Esc came before the first byte")
    leave(scene)


def terminal_kill(scene: Scene) -> None:
    open_idle(scene)
    scene.send(f"PLAY bash:{BUSY_60} ;; text:never")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", hook("PreToolUse"), "a tool was started")
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")


def terminal_daemon_kill(scene: Scene) -> None:
    open_idle(scene)
    scene.send(f"PLAY bash:{BUSY_3} ;; bash:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", hook("PreToolUse"), "a tool was started")
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


def shared_server(scene: Scene) -> None:
    """Codex as it comes: hooks trusted through its dialog, turns run by the shared app-server."""
    scene.open_terminal(trust_dialog=True)
    scene.send(f"PLAY bash:{BUSY_3} ;; slow:2")
    scene.expect("working", FIRST_PROMPT, "a prompt was given")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    scene.send("/quit")
    scene.expect("idle", EXIT, "the person left; the thread stays loaded")
    scene.agent.clean_up()
    scene.expect("ended", hook("SessionEnd"), "the shared server stopped")


# ---- OpenCode ---------------------------------------------------------------------------------------------------------
# Its plugins see each turn begin and stop, in `run` and in its terminal interface alike; of its end only the exit tells.


def opencode_run_text(scene: Scene) -> None:
    scene.print_mode("PLAY slow:4")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given")
    scene.expect("idle", OPENCODE_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", EXIT, "the agent ended")


def opencode_run_tool(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_3} ;; slow:2")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given")
    scene.expect("working", of_opencode("tool.execute.after"), "the tool returned")
    scene.expect("idle", OPENCODE_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", EXIT, "the agent ended")


def opencode_run_permission(scene: Scene) -> None:
    """`run` rejects at once what it would have to ask: never a lock, and the end of the turn."""
    scene.print_mode("PLAY permit:touch asked ;; text:never", asks=True)
    scene.expect("working", OPENCODE_STARTED, "a prompt was given")
    scene.expect("working", of_opencode("permission.asked"), "a permission was asked for", brief=True)
    scene.expect("idle", OPENCODE_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", EXIT, "the agent ended")


def opencode_run_subagent(scene: Scene) -> None:
    """The turn waits for the subagent, a session of its own whose end is not the turn's."""
    scene.print_mode(f"PLAY task:bash:{BUSY_3} ;; slow:3")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given", brief=True)
    scene.expect("working", of_opencode("tool.execute.before", tool="bash", child=True), "the subagent works")
    scene.expect("working", of_opencode("session.idle", child=True), "the subagent ended")
    scene.expect("idle", OPENCODE_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", EXIT, "the agent ended")


def opencode_run_background(scene: Scene) -> None:
    """`run` does not wait for a subagent in the background: it ends with the turn, and ends the subagent.

    The end of such a subagent mostly begins a turn: until the agent is gone nothing tells that this one does not.
    """
    scene.print_mode(f"PLAY bgtask:bash:{BUSY_60} ;; slow:2")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given")
    scene.expect("background", OPENCODE_STOPPED, "the turn stopped with a subagent at work", brief=True)
    scene.expect(None, of_opencode("session.idle", child=True), "the agent ended the subagent")
    scene.expect("ended", EXIT, "the agent ended")


def opencode_run_interrupt(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_60} ;; text:never")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given", brief=True)
    scene.expect("working", of_opencode("tool.execute.before"), "a tool was started")
    scene.interrupt_agent()
    scene.expect("ended", EXIT, "the agent was interrupted")


def opencode_run_kill(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_60} ;; text:never")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given", brief=True)
    scene.expect("working", of_opencode("tool.execute.before"), "a tool was started")
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")


def opencode_run_daemon_kill(scene: Scene) -> None:
    scene.print_mode(f"PLAY bash:{BUSY_3} ;; bash:{BUSY_3} ;; slow:3")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given", brief=True)
    scene.expect("working", of_opencode("tool.execute.before"), "a tool was started")
    daemon_dies_and_returns(scene)
    scene.expect("idle", OPENCODE_STOPPED, "the turn stopped", brief=True)
    scene.expect("ended", EXIT, "the agent ended")


def opencode_leave(scene: Scene) -> None:
    scene.send("/exit")
    scene.expect("ended", EXIT, "the person left")


def opencode_tui_text(scene: Scene) -> None:
    scene.open_terminal()
    scene.send("PLAY slow:3")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given")
    scene.expect("idle", OPENCODE_STOPPED, "the turn stopped")
    scene.send("PLAY slow:3")
    scene.expect("working", OPENCODE_STARTED, "a second prompt was given")
    scene.expect("idle", OPENCODE_STOPPED, "the second turn stopped")
    opencode_leave(scene)


def opencode_tui_permission(scene: Scene) -> None:
    scene.open_terminal(asks=True)
    scene.send(f"PLAY permit:{BUSY_3} ;; slow:2")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given", brief=True)
    asked = of_opencode("permission.asked")
    scene.expect("waiting", asked, "a permission dialog opened", waiting_for="permission_prompt")
    scene.press("Enter")
    scene.expect("working", of_opencode("permission.replied"), "the person allowed it")
    scene.expect("idle", OPENCODE_STOPPED, "the turn stopped")
    opencode_leave(scene)


def opencode_tui_question(scene: Scene) -> None:
    scene.open_terminal()
    scene.send("PLAY ask ;; slow:3")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given", brief=True)
    scene.expect("waiting", of_opencode("question.asked"), "a question was asked", waiting_for="question")
    scene.press("Enter")
    scene.expect("working", of_opencode("question.replied"), "the person answered")
    scene.expect("idle", OPENCODE_STOPPED, "the turn stopped")
    opencode_leave(scene)


def opencode_tui_background(scene: Scene) -> None:
    """A subagent in the background outlives the turn; its end begins another one."""
    scene.open_terminal()
    scene.send("PLAY bgtask:bash:sleep 9 ;; slow:2")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given")
    scene.expect("background", OPENCODE_STOPPED, "the turn stopped with a subagent at work")
    scene.expect("working", of_opencode("chat.message"), "the subagent's end began a turn")
    scene.expect("idle", OPENCODE_STOPPED, "that turn stopped")
    opencode_leave(scene)


def opencode_tui_escape(scene: Scene) -> None:
    """It wants Esc twice; the answer that was on its way ends with an error of that name."""
    scene.open_terminal()
    scene.send("PLAY slow:30")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given")
    scene.pause(1.0)
    scene.press("Escape")
    scene.terminal.wait_for("again to interrupt")
    scene.press("Escape")
    scene.expect("idle", any_of(of_opencode("session.error"), OPENCODE_STOPPED), "Esc interrupted the answer")
    opencode_leave(scene)


def opencode_tui_kill(scene: Scene) -> None:
    scene.open_terminal()
    scene.send(f"PLAY bash:{BUSY_60} ;; text:never")
    scene.expect("working", OPENCODE_STARTED, "a prompt was given", brief=True)
    scene.expect("working", of_opencode("tool.execute.before"), "a tool was started")
    scene.kill_agent()
    scene.expect("ended", EXIT, "the agent was killed")


# ---- the table --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    name: str
    play: Callable[[Scene], None]
    core: bool = True
    codex_daemon: bool = False

    @property
    def agent(self) -> str:
        return self.name.split("-")[0]


SCENARIOS = (
    Scenario("claude-print/text", print_text),
    Scenario("claude-print/tool", print_tool),
    Scenario("claude-print/background-shell", print_background),
    Scenario("claude-print/permission", print_permission, core=False),
    Scenario("claude-print/kill-agent", print_kill),
    Scenario("claude-print/kill-daemon", print_daemon_kill),
    Scenario("claude-tui/text", terminal_text),
    Scenario("claude-tui/tool", terminal_tool),
    Scenario("claude-tui/background-shell", terminal_background_claude),
    Scenario("claude-tui/permission", terminal_permission_claude),
    Scenario("claude-tui/question", terminal_question_claude, core=False),
    Scenario("claude-tui/esc-in-turn", terminal_escape_turn),
    Scenario("claude-tui/esc-in-tool", terminal_escape_tool_claude, core=False),
    Scenario("claude-tui/esc-before-first-byte", terminal_escape_before_first_byte),
    Scenario("claude-tui/kill-agent", terminal_kill),
    Scenario("claude-tui/kill-daemon", terminal_daemon_kill),
    Scenario("claude-tui/hook-starts-daemon", terminal_hook_starts_daemon),
    Scenario("codex-exec/text", print_text),
    Scenario("codex-exec/tool", print_tool),
    Scenario("codex-exec/background-shell", exec_background),
    Scenario("codex-exec/kill-agent", print_kill),
    Scenario("codex-exec/kill-daemon", print_daemon_kill),
    Scenario("codex-tui/text", terminal_text),
    Scenario("codex-tui/tool", terminal_tool),
    Scenario("codex-tui/background-shell", terminal_background_codex),
    Scenario("codex-tui/permission", terminal_permission_codex),
    Scenario("codex-tui/question", terminal_question_codex, core=False),
    Scenario("codex-tui/esc-in-turn", terminal_escape_turn),
    Scenario("codex-tui/esc-in-tool", terminal_escape_tool_codex, core=False),
    Scenario("codex-tui/esc-before-first-byte", terminal_escape_before_first_byte),
    Scenario("codex-tui/kill-agent", terminal_kill),
    Scenario("codex-tui/kill-daemon", terminal_daemon_kill),
    Scenario("codex-tui/hook-starts-daemon", terminal_hook_starts_daemon),
    Scenario("codex-shared/trust-dialog", shared_server, codex_daemon=True),
    Scenario("opencode-run/text", opencode_run_text),
    Scenario("opencode-run/tool", opencode_run_tool),
    Scenario("opencode-run/permission", opencode_run_permission),
    Scenario("opencode-run/subagent", opencode_run_subagent),
    Scenario("opencode-run/background-subagent", opencode_run_background),
    Scenario("opencode-run/interrupt", opencode_run_interrupt),
    Scenario("opencode-run/kill-agent", opencode_run_kill),
    Scenario("opencode-run/kill-daemon", opencode_run_daemon_kill, core=False),
    Scenario("opencode-tui/text", opencode_tui_text, core=False),
    Scenario("opencode-tui/background-subagent", opencode_tui_background, core=False),
    Scenario("opencode-tui/permission", opencode_tui_permission, core=False),
    Scenario("opencode-tui/question", opencode_tui_question, core=False),
    Scenario("opencode-tui/esc-in-turn", opencode_tui_escape, core=False),
    Scenario("opencode-tui/kill-agent", opencode_tui_kill, core=False),
)
