"""How each agent is set up and started: a home of its own, the scripted model, no network, no login.

A home is private to one scenario. The agents get a clean environment, so that nothing of the person's own reaches them.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from install_agents import CLAUDE, CODEX, COPILOT, GEMINI, OPENCODE, QWEN

WITNESS_HOOK = Path(__file__).parent / "witness-hook"
SLOW_HOOK = Path(__file__).parent / "slow-hook"
WITNESS_PLUGIN = Path(__file__).parent / "opencode-witness.js"
# Claude asks once about a key; it remembers the approved ones by their last 20 characters.
KEY = "offline-key"
STOP_SECONDS_MAX = 30

CLAUDE_EVENTS = (
    "SessionStart SessionEnd UserPromptSubmit PreToolUse PermissionRequest PostToolUse PostToolUseFailure Notification "
    "Stop StopFailure SubagentStart SubagentStop"
).split()
CODEX_EVENTS = (
    "SessionStart SessionEnd UserPromptSubmit PreToolUse PermissionRequest PostToolUse SubagentStart SubagentStop Stop Interrupt"
).split()
QWEN_EVENTS = (
    "SessionStart SessionEnd UserPromptSubmit PreToolUse PermissionRequest PostToolUse PostToolUseFailure Notification Stop"
).split()
GEMINI_EVENTS = "SessionStart SessionEnd BeforeAgent BeforeTool AfterTool Notification AfterAgent".split()
COPILOT_EVENTS = (
    "SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Notification Stop SubagentStop"
).split()


@dataclass(frozen=True)
class Home:
    """The folders of one scenario."""

    root: Path
    bus_address: str

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        return self.root / "project"

    @property
    def hook_dir(self) -> Path:
        """Where the witness hook leaves its notes."""
        return self.root / "hooks"

    def base_environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "USER": "tester",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            # For a daemon that a hook starts: a private instance inherits the bus.
            "DBUS_SYSTEM_BUS_ADDRESS": self.bus_address,
        }

    def create(self) -> None:
        self.home.mkdir(parents=True)
        self.work.mkdir()
        self.hook_dir.mkdir()
        subprocess.run(["git", "init", "-q", str(self.work)], check=True, stdin=subprocess.DEVNULL)


def add_witness(hooks_file: Path, events: list[str], hook_dir: Path, timeout: int = 60) -> None:
    """Adds the harness's own entry to each event of a hooks file, after whatever is in it; `timeout` in the agent's own unit."""
    settings = json.loads(hooks_file.read_text()) if hooks_file.exists() else {}
    hooks = settings.setdefault("hooks", {})
    for event in events:
        command = f"'{WITNESS_HOOK}' '{hook_dir}' {event}"
        entry = {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}
        hooks.setdefault(event, []).append(entry)
    hooks_file.write_text(json.dumps(settings, indent=2))


def add_slow_hook(hooks_file: Path, event: str, hook_dir: Path, timeout: int | None) -> None:
    """Somebody's own hook, behind all others of this event. `None`: it sets no time limit of its own."""
    settings = json.loads(hooks_file.read_text())
    entry: dict[str, object] = {"type": "command", "command": f"'{SLOW_HOOK}' '{hook_dir}' {event}"}
    if timeout is not None:
        entry["timeout"] = timeout
    settings["hooks"].setdefault(event, []).append({"hooks": [entry]})
    hooks_file.write_text(json.dumps(settings, indent=2))


class Claude:
    """Claude Code."""

    name = "claude"

    def __init__(self, home: Home, model_port: int) -> None:
        self.home = home
        self._port = model_port

    def prepare(self) -> None:
        state = {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": "9.9.9",
            "theme": "dark",
            "numStartups": 5,
            "autoUpdates": False,
            "customApiKeyResponses": {"approved": [KEY], "rejected": []},
            "bypassPermissionsModeAccepted": True,
            "projects": {str(self.home.work): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        }
        (self.home.home / ".claude").mkdir()
        (self.home.home / ".claude.json").write_text(json.dumps(state))

    def add_witness(self) -> None:
        add_witness(self.home.home / ".claude" / "settings.json", CLAUDE_EVENTS, self.home.hook_dir)

    def add_slow_hook(self, event: str, has_timeout: bool) -> None:
        add_slow_hook(self.home.home / ".claude" / "settings.json", event, self.home.hook_dir, 60 if has_timeout else None)

    def environment(self) -> dict[str, str]:
        return self.home.base_environment() | {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self._port}",
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",  # lets root use the mode without permissions
        }

    def print_command(self, prompt: str, asks: bool) -> list[str]:
        return [str(CLAUDE.binary), "-p", prompt, *self._mode(asks)]

    def terminal_command(self, asks: bool) -> list[str]:
        return [str(CLAUDE.binary), *self._mode(asks)]

    @staticmethod
    def _mode(asks: bool) -> list[str]:
        return ["--permission-mode", "default"] if asks else ["--dangerously-skip-permissions"]

    ready_screen = r"(?m)^❯"
    resume_words = ["--continue"]
    reports_start = True

    def registry_dir(self) -> Path | None:
        return self.home.home / ".claude" / "sessions"

    def transcript_roots(self) -> list[Path]:
        return [self.home.home / ".claude" / "projects"]

    def clean_up(self) -> None:
        """Nothing outlives a Claude session that was started here."""


class Codex:
    """Codex. `daemon`: its terminal interface starts the shared app-server, with hooks trusted through the dialog."""

    name = "codex"

    def __init__(self, home: Home, model_port: int, daemon: bool = False) -> None:
        self.home = home
        self._port = model_port
        self._daemon = daemon

    @property
    def _folder(self) -> Path:
        return self.home.home / ".codex"

    def prepare(self) -> None:
        self._folder.mkdir()
        (self._folder / "config.toml").write_text(
            f"""model = "gpt-5.4"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{self._port}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false

[features]
hooks = true
default_mode_request_user_input = true

[projects."{self.home.work}"]
trust_level = "trusted"
"""
        )

    def add_witness(self) -> None:
        add_witness(self._folder / "hooks.json", CODEX_EVENTS, self.home.hook_dir)

    def add_slow_hook(self, event: str, has_timeout: bool) -> None:
        add_slow_hook(self._folder / "hooks.json", event, self.home.hook_dir, 60 if has_timeout else None)

    def environment(self) -> dict[str, str]:
        return self.home.base_environment() | {"CODEX_HOME": str(self._folder), "SCRIPTED_API_KEY": KEY}

    def print_command(self, prompt: str, asks: bool) -> list[str]:
        assert not asks, "`codex exec` never asks"
        return [str(CODEX.binary), "exec", *self._trust(), "--dangerously-bypass-approvals-and-sandbox", prompt]

    def terminal_command(self, asks: bool) -> list[str]:
        mode = ["-a", "on-request", "-s", "workspace-write"] if asks else ["--dangerously-bypass-approvals-and-sandbox"]
        return [str(CODEX.binary), *self._trust(), *mode]

    def _trust(self) -> list[str]:
        """Skipping the trust dialog also keeps the turns inside the process that was started."""
        return [] if self._daemon else ["--dangerously-bypass-hook-trust"]

    ready_screen = r"(?m)^›"
    resume_words = ["resume", "--last"]
    reports_start = False

    def registry_dir(self) -> Path | None:
        return None

    def transcript_roots(self) -> list[Path]:
        return [self._folder / "sessions"]

    def clean_up(self) -> None:
        """Stops the shared app-server, if this home has one; its update loop stays and is a leftover."""
        if self._daemon:
            command = [str(CODEX.binary), "app-server", "daemon", "stop"]
            subprocess.run(
                command, env=self.environment(), cwd=self.home.work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, timeout=STOP_SECONDS_MAX, check=False,
            )  # fmt: skip


class OpenCode:
    """OpenCode. It has no hook entries: plugins run inside it, the product's and the harness's own from one folder."""

    name = "opencode"

    def __init__(self, home: Home, model_port: int) -> None:
        self.home = home
        self._port = model_port

    @property
    def _folder(self) -> Path:
        return self.home.home / ".config" / "opencode"

    def prepare(self) -> None:
        model = {"name": "scripted", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"http://127.0.0.1:{self._port}/v1", "apiKey": KEY},
            "models": {"scripted": model},
        }
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "provider": {"scripted": provider},
            "enabled_providers": ["scripted"],
        }
        (self._folder / "plugin").mkdir(parents=True)
        (self._folder / "opencode.json").write_text(json.dumps(settings))
        # It would fetch the package for plugins that import it, which ours do not, unless these say that it is there.
        (self._folder / "node_modules").mkdir()
        locked = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": OPENCODE.version}}}}
        (self._folder / "package-lock.json").write_text(json.dumps(locked))

    def add_witness(self) -> None:
        text = WITNESS_PLUGIN.read_text()
        placed = text.replace('FOLDER = ""', f"FOLDER = {json.dumps(str(self.home.hook_dir))}")
        assert placed != text, "the witness has no place for its folder"
        (self._folder / "plugin" / WITNESS_PLUGIN.name).write_text(placed)

    def environment(self) -> dict[str, str]:
        return self.home.base_environment() | {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS": "1",
        }

    def print_command(self, prompt: str, asks: bool) -> list[str]:
        # It joins its arguments, puts those with blanks into quotes that the model would see, and fails on a lone number.
        return [*self._binary(asks), "run", "--", *prompt.split(" ")]

    def terminal_command(self, asks: bool) -> list[str]:
        return self._binary(asks)

    @staticmethod
    def _binary(asks: bool) -> list[str]:
        permission = json.dumps({"edit": "allow", "bash": "ask" if asks else "allow"})
        return ["env", f"OPENCODE_PERMISSION={permission}", str(OPENCODE.binary)]

    ready_screen = r"Ask anything"
    resume_words = ["--continue"]
    reports_start = False

    def registry_dir(self) -> Path | None:
        return None

    def transcript_roots(self) -> list[Path]:
        """Its conversations are in a database; the witness plugin has told each of these things before."""
        return []

    def clean_up(self) -> None:
        """Nothing outlives an OpenCode that was started here, except tools of a killed one: they are leftovers."""


class Copilot:
    """Copilot CLI. Any file of its hooks' folder counts, so that the product's and the harness's stand side by side."""

    name = "copilot"

    def __init__(self, home: Home, model_port: int) -> None:
        self.home = home
        self._port = model_port

    @property
    def _folder(self) -> Path:
        return self.home.home / ".copilot"

    def prepare(self) -> None:
        (self._folder / "hooks").mkdir(parents=True)
        settings = json.dumps({"trustedFolders": [str(self.home.work)], "banner": "never"})
        for name in ("config.json", "settings.json"):
            (self._folder / name).write_text(settings)

    def add_witness(self) -> None:
        hooks = {
            event: [{"type": "command", "bash": f"'{WITNESS_HOOK}' '{self.home.hook_dir}' {event}", "timeoutSec": 60}]
            for event in COPILOT_EVENTS
        }
        (self._folder / "hooks" / "witness.json").write_text(json.dumps({"version": 1, "hooks": hooks}))

    def add_slow_hook(self, event: str, has_timeout: bool) -> None:
        entry: dict[str, object] = {"type": "command", "bash": f"'{SLOW_HOOK}' '{self.home.hook_dir}' {event}"}
        if has_timeout:
            entry["timeoutSec"] = 60
        (self._folder / "hooks" / "slow.json").write_text(json.dumps({"version": 1, "hooks": {event: [entry]}}))

    def environment(self) -> dict[str, str]:
        return self.home.base_environment() | {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{self._port}/v1",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": "gpt-5.4",
        }

    def print_command(self, prompt: str, asks: bool) -> list[str]:
        return [str(COPILOT.binary), "-p", prompt, *self._mode(asks)]

    def terminal_command(self, asks: bool) -> list[str]:
        return [str(COPILOT.binary), *self._mode(asks)]

    @staticmethod
    def _mode(asks: bool) -> list[str]:
        return [] if asks else ["--allow-all"]

    ready_screen = r"(?m)^❯"
    resume_words = ["--continue"]
    reports_start = False

    def registry_dir(self) -> Path | None:
        return None

    def transcript_roots(self) -> list[Path]:
        return [self._folder / "session-state"]

    def clean_up(self) -> None:
        """Nothing outlives a Copilot that was started here, except tools of a killed one: they are leftovers."""


class Qwen:
    """Qwen Code: hooks in Claude's shape; the innermost of three node processes is the agent."""

    name = "qwen"

    def __init__(self, home: Home, model_port: int) -> None:
        self.home = home
        self._port = model_port

    @property
    def _folder(self) -> Path:
        return self.home.home / ".qwen"

    def prepare(self) -> None:
        self._folder.mkdir()
        settings = {
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
            "model": {"name": "scripted"},
            "tools": {"enableHooks": True},
        }
        (self._folder / "settings.json").write_text(json.dumps(settings))

    def add_witness(self) -> None:
        add_witness(self._folder / "settings.json", QWEN_EVENTS, self.home.hook_dir)

    def environment(self) -> dict[str, str]:
        return self.home.base_environment() | {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{self._port}/v1",
            "OPENAI_API_KEY": KEY,
            "OPENAI_MODEL": "scripted",
        }

    def print_command(self, prompt: str, asks: bool) -> list[str]:
        return [str(QWEN.binary), "-p", prompt, *self._mode(asks)]

    def terminal_command(self, asks: bool) -> list[str]:
        return [str(QWEN.binary), *self._mode(asks)]

    @staticmethod
    def _mode(asks: bool) -> list[str]:
        return [] if asks else ["--yolo"]

    ready_screen = r"Type your message"
    resume_words = ["--continue"]
    reports_start = False

    def registry_dir(self) -> Path | None:
        return None

    def transcript_roots(self) -> list[Path]:
        return [self._folder / "projects"]

    def clean_up(self) -> None:
        """Nothing outlives a Qwen Code that was started here, except tools of a killed one: they are leftovers."""


class Gemini:
    """Gemini CLI: the inner of two node processes is the agent; its hooks' timeouts are in milliseconds."""

    name = "gemini"

    def __init__(self, home: Home, model_port: int) -> None:
        self.home = home
        self._port = model_port

    @property
    def _folder(self) -> Path:
        return self.home.home / ".gemini"

    def prepare(self) -> None:
        self._folder.mkdir()
        settings = {
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "model": {"name": "gemini-2.5-flash"},
            "tools": {"enableHooks": True},
        }
        (self._folder / "settings.json").write_text(json.dumps(settings))

    def add_witness(self) -> None:
        add_witness(self._folder / "settings.json", GEMINI_EVENTS, self.home.hook_dir, timeout=60_000)

    def environment(self) -> dict[str, str]:
        return self.home.base_environment() | {
            "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{self._port}",
            "GEMINI_API_KEY": KEY,
        }

    def print_command(self, prompt: str, asks: bool) -> list[str]:
        return [str(GEMINI.binary), "-p", prompt, *self._mode(asks)]

    def terminal_command(self, asks: bool) -> list[str]:
        return [str(GEMINI.binary), *self._mode(asks)]

    @staticmethod
    def _mode(asks: bool) -> list[str]:
        return [] if asks else ["--yolo"]

    ready_screen = r"Type your message"
    resume_words = ["--resume", "latest"]
    reports_start = True

    def registry_dir(self) -> Path | None:
        return None

    def transcript_roots(self) -> list[Path]:
        return [self._folder / "tmp"]

    def clean_up(self) -> None:
        """Nothing outlives a Gemini CLI that was started here, except tools of a killed one: they are leftovers."""
