#!/usr/bin/env python3
"""The real logind of the rig in `tests/power`, and a sampler that looks at its inhibitors every 20 ms.

As a program (`logind.py FILE`, on the bus that `DBUS_SYSTEM_BUS_ADDRESS` names) it is the sampler: it writes one line a
look, `<time> <pid>:<what>:<mode>;...`, until it is ended. It is a process of its own so that nothing delays it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

RIG = Path(__file__).resolve().parents[1] / "power"
# The one for which the rig installs the D-Bus library; another may have started this.
SYSTEM_PYTHON = "/usr/bin/python3"
SAMPLE_EVERY_SECONDS = 0.02
RIG_SECONDS_MAX = 300
# What the product takes while there is demand, each kind on its own.
KINDS = frozenset({"idle", "handle-lid-switch"})


class RigError(Exception):
    """The rig did not start: a failure, never a reason to skip."""


class Rig:
    """A private system bus with logind on it."""

    def __init__(self, folder: Path) -> None:
        self._run_folder = folder / "rig"
        result = subprocess.run(
            [str(RIG / "start-logind.sh"), str(self._run_folder)], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=RIG_SECONDS_MAX, check=False,
        )  # fmt: skip
        found = re.search(r"DBUS_SYSTEM_BUS_ADDRESS='([^']+)'", result.stdout)
        if result.returncode != 0 or not found:
            raise RigError(f"start-logind.sh ended with {result.returncode}:\n{result.stdout}{result.stderr}")
        self.bus_address = found.group(1)
        self._samples_file = folder / "inhibitors.txt"
        environment = {"PATH": os.environ["PATH"], "DBUS_SYSTEM_BUS_ADDRESS": self.bus_address}
        self._sampler = subprocess.Popen([SYSTEM_PYTHON, __file__, str(self._samples_file)], env=environment)

    def samples(self, since: float, until: float) -> list[Sample]:
        if self._sampler.poll() is not None:
            raise RigError(f"the sampler ended with {self._sampler.returncode}")
        lines = self._samples_file.read_text().splitlines()
        return [s for s in map(Sample.parse, lines) if since <= s.at <= until]

    def close(self) -> None:
        self._sampler.terminate()
        self._sampler.wait()
        subprocess.run([str(RIG / "stop-logind.sh"), str(self._run_folder)], check=False, timeout=RIG_SECONDS_MAX)


@dataclass(frozen=True)
class Sample:
    at: float
    blocks: frozenset[tuple[int, str]]

    @classmethod
    def parse(cls, line: str) -> Sample:
        at, _, rest = line.partition(" ")
        entries = [entry.split("|") for entry in rest.split(";") if entry]
        # One inhibitor may name several kinds, joined by colons.
        blocks = {(int(pid), kind) for pid, what, mode in entries if mode == "block" for kind in what.split(":")}
        return cls(float(at), frozenset(blocks))

    def held_by(self, pids: set[int]) -> set[str]:
        """Which of our kinds these processes hold."""
        return {kind for pid, kind in self.blocks if pid in pids} & KINDS


def sample_for_ever(path: str) -> None:
    import dbus  # only the sampler needs it

    bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])
    manager = dbus.Interface(
        bus.get_object("org.freedesktop.login1", "/org/freedesktop/login1", introspect=False),
        "org.freedesktop.login1.Manager",
    )
    try:
        os.nice(-5)
    except PermissionError:
        pass  # without the right it samples at the usual priority; the judge sees gaps
    with open(path, "w", encoding="ascii", buffering=1) as file:
        while True:
            started = time.time()
            entries = manager.ListInhibitors()
            seen = ";".join(f"{int(pid)}|{what}|{mode}" for what, _, _, mode, _, pid in entries)
            file.write(f"{(started + time.time()) / 2:.4f} {seen}\n")
            time.sleep(max(0.0, started + SAMPLE_EVERY_SECONDS - time.time()))


if __name__ == "__main__":
    try:
        sample_for_ever(sys.argv[1])
    except KeyboardInterrupt:
        pass
