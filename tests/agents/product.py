"""The program under test, used as a person uses it: through its command line, in a private instance of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import end_all, is_zombie, share_like_us, with_argument

REPOSITORY = Path(__file__).resolve().parents[2]
# A debug build under load is slow to link; once built this takes a second.
BUILD_SECONDS_MAX = 1800
COMMAND_SECONDS_MAX = 20
READY_SECONDS_MAX = 20
STOP_SECONDS_MAX = 20


class ProductError(Exception):
    """A command of the product failed, or its daemon did not come up."""


def build() -> Path:
    """Builds the two programs; returns the folder that has both. `WATCHKEEPER_BIN_DIR` names one that is built already."""
    given = os.environ.get("WATCHKEEPER_BIN_DIR")
    if given:
        folder = Path(given).resolve()
    else:
        cargo = ["cargo", "build", "--quiet", "-p", "watchkeeper", "-p", "watchkeeper-hook"]
        subprocess.run(cargo, cwd=REPOSITORY, check=True, timeout=BUILD_SECONDS_MAX)
        question = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
        answer = subprocess.run(question, cwd=REPOSITORY, check=True, capture_output=True, timeout=COMMAND_SECONDS_MAX)
        folder = Path(json.loads(answer.stdout)["target_directory"]) / "debug"
    for name in ("watchkeeper", "watchkeeper-hook"):
        if not os.access(folder / name, os.X_OK):
            raise ProductError(f"{folder / name} is no program; build it or unset WATCHKEEPER_BIN_DIR")
    return folder


@dataclass(frozen=True)
class Answer:
    """What a command with `--json` said. `asked` and `told` bracket the moment at which it was true."""

    asked: float
    told: float
    code: int
    value: Any


class Product:
    """One private instance: its folder, its daemon, its commands."""

    def __init__(self, programs: Path, folder: Path, bus_address: str) -> None:
        self._programs = programs
        self.folder = folder
        self._bus_address = bus_address
        self._daemon: subprocess.Popen[bytes] | None = None
        # A daemon that a hook started, by its pid.
        self._adopted: int | None = None
        # Every daemon that ran: an inhibitor belongs to the process that took it.
        self.daemon_pids: set[int] = set()

    @property
    def _command(self) -> list[str]:
        return [str(self._programs / "watchkeeper"), "--home", str(self.folder)]

    def _run(self, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=COMMAND_SECONDS_MAX, check=False,
        )  # fmt: skip

    def install(self, agent: str, environment: Mapping[str, str]) -> None:
        """Lets the product put its hooks into the agent's home, which the environment names."""
        result = self._run("install", "--yes", agent, environment=environment)
        if result.returncode != 0:
            raise ProductError(f"install ended with {result.returncode}:\n{result.stdout}{result.stderr}")

    def configure(self, **settings: str) -> None:
        """Writes the instance's configuration, before its daemon starts."""
        folder = self.folder / "config"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f'{key} = "{value}"\n' for key, value in settings.items()]
        (folder / "config.toml").write_text("".join(lines))

    def spawn(self) -> subprocess.Popen[bytes]:
        """Starts the daemon and does not wait. If the instance has one already, it leaves again by itself."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "DBUS_SYSTEM_BUS_ADDRESS": self._bus_address}
        with open(self.folder / "daemon.log", "ab") as log:
            daemon = subprocess.Popen(
                [*self._command, "daemon", "run"], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        share_like_us(daemon.pid)
        return daemon

    def start(self) -> float:
        """Starts the daemon and waits until it answers; returns when it did."""
        self._daemon = self.spawn()
        self.daemon_pids.add(self._daemon.pid)
        deadline = time.monotonic() + READY_SECONDS_MAX
        while (answer := self.status()) is None:
            # On a busy machine a hook may have been faster; then ours leaves again, maybe before that one answers.
            is_alone = self._daemon.poll() is not None and not with_argument(str(self.folder))
            if is_alone or time.monotonic() > deadline:
                raise ProductError(f"the daemon does not answer; its output is in {self.folder / 'daemon.log'}")
            time.sleep(0.02)
        running = self.daemon()
        if running is not None and running.value["pid"] != self._daemon.pid:
            self._adopted = running.value["pid"]
            self.daemon_pids.add(self._adopted)
        return answer.told

    def adopt(self) -> float:
        """Waits for a daemon that somebody else started (a hook); returns when it answered."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            if (answer := self.daemon()) is not None:
                self._adopted = answer.value["pid"]
                self.daemon_pids.add(self._adopted)
                return answer.told
            time.sleep(0.02)
        raise ProductError(f"nobody started a daemon within {READY_SECONDS_MAX} s")

    def daemon(self) -> Answer | None:
        """What the daemon says of itself, whoever started it; `None` while none answers."""
        for pid in with_argument(str(self.folder)):
            share_like_us(pid)  # one that a hook started may still be booting
        answer = self.ask("daemon", "status")
        return answer if answer.code == 0 and isinstance(answer.value, dict) and "pid" in answer.value else None

    def kill(self) -> None:
        """kill -9 of the daemon."""
        assert self._daemon is not None
        self._daemon.send_signal(signal.SIGKILL)
        self._daemon.wait()
        self._daemon = None

    def stop(self) -> None:
        """A graceful end; a daemon that does not obey is killed and reported."""
        if self._adopted is not None:
            self._run("daemon", "stop")
            deadline = time.monotonic() + STOP_SECONDS_MAX
            while not is_zombie(self._adopted) and time.monotonic() < deadline:
                time.sleep(0.02)
            if not is_zombie(self._adopted):
                end_all([self._adopted])
                raise ProductError("`daemon stop` did not end the daemon")
        if self._daemon is None:
            return
        daemon, self._daemon = self._daemon, None
        daemon.terminate()
        try:
            daemon.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
            raise ProductError(f"the daemon ignored SIGTERM for {STOP_SECONDS_MAX} s") from None

    def ask(self, *words: str) -> Answer:
        """A command with `--json`, whatever its exit status."""
        asked = time.time()
        result = self._run(*words, "--json")
        told = time.time()
        try:
            value = json.loads(result.stdout)
        except ValueError:
            value = None
        if value is None and result.returncode == 0:
            raise ProductError(f"'{' '.join(words)} --json' printed no JSON: {result.stdout[:200]!r} {result.stderr[:200]!r}")
        return Answer(asked, told, result.returncode, value)

    def status(self) -> Answer | None:
        """`None` while no daemon answers."""
        answer = self.ask("status")
        return answer if answer.code == 0 and isinstance(answer.value, dict) and "sessions" in answer.value else None
