"""The table of all scenarios: which are played with which agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import copilot_plays
import opencode_plays
import plays
from scene import Scene


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
    Scenario("claude-print/text", plays.print_text),
    Scenario("claude-print/tool", plays.print_tool),
    Scenario("claude-print/background-shell", plays.print_background),
    Scenario("claude-print/permission", plays.print_permission, core=False),
    Scenario("claude-print/kill-agent", plays.print_kill),
    Scenario("claude-print/kill-daemon", plays.print_daemon_kill),
    Scenario("claude-tui/text", plays.terminal_text),
    Scenario("claude-tui/tool", plays.terminal_tool),
    Scenario("claude-tui/background-shell", plays.terminal_background_woken),
    Scenario("claude-tui/permission", plays.terminal_permission_claude),
    Scenario("claude-tui/question", plays.terminal_question_claude, core=False),
    Scenario("claude-tui/esc-in-turn", plays.terminal_escape_turn),
    Scenario("claude-tui/esc-in-tool", plays.terminal_escape_tool_claude, core=False),
    Scenario("claude-tui/esc-before-first-byte", plays.terminal_escape_before_first_byte),
    Scenario("claude-tui/kill-agent", plays.terminal_kill),
    Scenario("claude-tui/kill-daemon", plays.terminal_daemon_kill),
    Scenario("claude-tui/hook-starts-daemon", plays.terminal_hook_starts_daemon),
    Scenario("codex-exec/text", plays.print_text),
    Scenario("codex-exec/tool", plays.print_tool),
    Scenario("codex-exec/background-shell", plays.exec_background),
    Scenario("codex-exec/kill-agent", plays.print_kill),
    Scenario("codex-exec/kill-daemon", plays.print_daemon_kill),
    Scenario("codex-tui/text", plays.terminal_text),
    Scenario("codex-tui/tool", plays.terminal_tool),
    Scenario("codex-tui/background-shell", plays.terminal_background_codex),
    Scenario("codex-tui/permission", plays.terminal_permission_codex),
    Scenario("codex-tui/question", plays.terminal_question_codex, core=False),
    Scenario("codex-tui/esc-in-turn", plays.terminal_escape_turn),
    Scenario("codex-tui/esc-in-tool", plays.terminal_escape_tool_codex, core=False),
    Scenario("codex-tui/esc-before-first-byte", plays.terminal_escape_before_first_byte),
    Scenario("codex-tui/kill-agent", plays.terminal_kill),
    Scenario("codex-tui/kill-daemon", plays.terminal_daemon_kill),
    Scenario("codex-tui/hook-starts-daemon", plays.terminal_hook_starts_daemon),
    Scenario("codex-shared/trust-dialog", plays.shared_server, codex_daemon=True),
    Scenario("opencode-run/text", plays.print_text),
    Scenario("opencode-run/tool", plays.print_tool),
    Scenario("opencode-run/permission", opencode_plays.run_permission),
    Scenario("opencode-run/subagent", opencode_plays.run_subagent),
    Scenario("opencode-run/background-subagent", opencode_plays.run_background),
    Scenario("opencode-run/interrupt", opencode_plays.run_interrupt),
    Scenario("opencode-run/kill-agent", plays.print_kill),
    Scenario("opencode-run/kill-daemon", plays.print_daemon_kill, core=False),
    Scenario("opencode-tui/text", plays.terminal_text, core=False),
    Scenario("opencode-tui/background-subagent", opencode_plays.background, core=False),
    Scenario("opencode-tui/permission", opencode_plays.permission, core=False),
    Scenario("opencode-tui/question", opencode_plays.question, core=False),
    Scenario("opencode-tui/esc-in-turn", opencode_plays.escape_turn, core=False),
    Scenario("opencode-tui/kill-agent", plays.terminal_kill, core=False),
    Scenario("copilot-print/text", plays.print_text, core=False),
    Scenario("copilot-print/tool", plays.print_tool, core=False),
    Scenario("copilot-print/background-shell", plays.print_background, core=False),
    Scenario("copilot-print/permission", plays.print_permission, core=False),
    Scenario("copilot-print/subagent", copilot_plays.print_subagent, core=False),
    Scenario("copilot-print/kill-agent", plays.print_kill, core=False),
    Scenario("copilot-print/kill-daemon", plays.print_daemon_kill, core=False),
    Scenario("copilot-tui/text", plays.terminal_text, core=False),
    Scenario("copilot-tui/background-shell", plays.terminal_background_woken, core=False),
    Scenario("copilot-tui/permission", copilot_plays.permission, core=False),
    Scenario("copilot-tui/question", copilot_plays.question, core=False),
    Scenario("copilot-tui/esc-in-turn", copilot_plays.escape_turn, core=False),
    Scenario("copilot-tui/esc-in-tool", copilot_plays.escape_tool, core=False),
    Scenario("copilot-tui/kill-agent", plays.terminal_kill, core=False),
    Scenario("qwen-print/text", plays.print_text, core=False),
    Scenario("qwen-print/tool", plays.print_tool, core=False),
    Scenario("qwen-print/background-shell", plays.print_background_ended, core=False),
    Scenario("qwen-print/kill-agent", plays.print_kill, core=False),
    Scenario("qwen-print/kill-daemon", plays.print_daemon_kill, core=False),
    Scenario("qwen-tui/text", plays.terminal_text, core=False),
    Scenario("qwen-tui/kill-agent", plays.terminal_kill, core=False),
    Scenario("gemini-print/text", plays.print_text, core=False),
    Scenario("gemini-print/tool", plays.print_tool, core=False),
    Scenario("gemini-print/kill-agent", plays.print_kill, core=False),
    Scenario("gemini-print/kill-daemon", plays.print_daemon_kill, core=False),
    Scenario("gemini-tui/text", plays.terminal_text, core=False),
    Scenario("gemini-tui/tool", plays.terminal_tool, core=False),
    Scenario("gemini-tui/kill-agent", plays.terminal_kill, core=False),
)
