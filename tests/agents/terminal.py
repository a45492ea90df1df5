"""A terminal for an agent's full-screen interface: one tmux server of our own per scenario."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from processes import share_like_us

COLUMNS, ROWS = 160, 50
TMUX_SECONDS_MAX = 10
# Both interfaces take a fast "text then Enter" for a paste and keep the Enter as a newline.
BEFORE_ENTER_SECONDS = 0.7
# A busy machine sometimes loses a key anyway.
KEY_TRIES = 3
TAKEN_SECONDS_MAX = 3
LOOK_EVERY_SECONDS = 0.05


class TerminalError(Exception):
    """The screen did not become what the scenario waits for; carries the screen."""


class Terminal:
    def __init__(self, socket: Path, folder: Path, command: list[str], environment: Mapping[str, str]) -> None:
        self._socket = str(socket)
        clean = ["env", "-i", *(f"{key}={value}" for key, value in environment.items())]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        # Given as several arguments, the command runs without a shell: the pane's process is the agent itself.
        self._tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", *size, "-c", str(folder), *clean, *command)
        share_like_us(int(self._tmux("display-message", "-p", "#{pid}")))
        share_like_us(self.pid)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=TMUX_SECONDS_MAX, check=False)
        if result.returncode != 0:
            raise TerminalError(f"{shlex.join(command[:5])} ...: {result.stderr.strip()}")
        return result.stdout

    @property
    def pid(self) -> int:
        """The process that the pane started."""
        return int(self._tmux("list-panes", "-t", "t", "-F", "#{pane_pid}"))

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "t")

    def wait_for(self, pattern: str, timeout_seconds: float = 30) -> None:
        """Until the screen shows the pattern."""
        deadline = time.monotonic() + timeout_seconds
        while not re.search(pattern, screen := self.screen()):
            if time.monotonic() > deadline:
                raise TerminalError(f"the screen never showed {pattern!r}; it shows:\n{screen.rstrip()}")
            time.sleep(LOOK_EVERY_SECONDS)

    def press(self, *keys: str) -> None:
        """Keys by their tmux names, such as `Escape`, `Enter`, `Down`."""
        self._tmux("send-keys", "-t", "t", *keys)

    def press_until(self, key: str, pattern: str) -> None:
        """Again where nothing comes of it: a dialog that was just drawn sometimes does not listen yet."""
        for _ in range(KEY_TRIES - 1):
            self.press(key)
            try:
                return self.wait_for(pattern, TAKEN_SECONDS_MAX)
            except TerminalError:
                continue
        self.press(key)
        self.wait_for(pattern)

    def write(self, text: str) -> None:
        self._tmux("send-keys", "-t", "t", "-l", text)

    def enter(self, text: str) -> None:
        """Empties the input box (an interrupted prompt goes back into it), types a line and sends it."""
        self.press("C-u")
        self.write(text)
        for _ in range(KEY_TRIES):
            time.sleep(BEFORE_ENTER_SECONDS)
            self.press("Enter")
            if self._was_taken(text):
                return
        raise TerminalError(f"the interface does not take {text!r}; it shows:\n{self.screen().rstrip()}")

    def _was_taken(self, text: str) -> bool:
        """The box, which is the last line that starts with the prompt sign, no longer has the text."""
        deadline = time.monotonic() + TAKEN_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                boxes = re.findall(r"(?m)^[❯›](.*)$", self.screen())
            except TerminalError:
                return True  # the agent has left, and the terminal with it
            if not boxes or text[:20] not in boxes[-1]:
                return True
            time.sleep(LOOK_EVERY_SECONDS)
        return False

    def close(self) -> None:
        """Ends the server and, by SIGHUP, what still runs in it."""
        try:
            self._tmux("kill-server")
        except TerminalError:
            pass  # it is gone already
