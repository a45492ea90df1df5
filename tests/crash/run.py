#!/usr/bin/python3
"""The crash test: the daemon is killed 200 times at random while 64 agents send hooks at once.

    tests/crash/run.py [--kills N] [--senders N] [--seed N] [--keep]

Then the journal is read and compared with the receipts that the hooks wrote about themselves. Required:

* every delivery that a hook handed over, to a daemon or to the spool, stands in the journal exactly once;
* no session ends twice, none lives a second time, every session has ended once its agent is gone, met through the spool or
  not (but for one whose only hook outlived its agent: nobody knows any more whose child it was);
* every hook ends with 0; by its own clock at least 99.9 % stay within their deadline and 50 ms, none takes over 2 s;
* after each kill logind shows none of the killed daemon's inhibitors within 1 s, and its successor's within 1 s of its
  first answer (an anchor session works all the time).

The daemon comes back by itself, started by a hook, or by this test: both ways are drawn at random, and so is a second kill
while it boots.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agents"))

import product  # noqa: E402
from logind import KINDS, Rig, RigError, Sample  # noqa: E402
from processes import end_all, with_argument, with_home  # noqa: E402

SENDER = Path(__file__).with_name("sender.py")
# The hook's own deadline, and what the requirement allows beyond it.
HOOK_WAIT_MS = 250
HOOK_GRACE_MS = 50
WITHIN_SHARE_MIN = 0.999
HOOK_MS_MAX = 2000
GONE_SECONDS_MAX = 1.0
BACK_SECONDS_MAX = 1.0
# How long a daemon lives before it is killed; and, if it is killed while it boots, how soon.
LIFE_SECONDS = (0.1, 1.1)
BOOT_SECONDS = (0.0, 0.15)
BOOT_KILL_SHARE = 0.15
# The share of restarts that are left to the hooks; a hook that starts work starts the daemon.
LEFT_TO_HOOKS_SHARE = 0.4
COMEBACK_SECONDS_MAX = 20
DRAIN_SECONDS_MAX = 120


@dataclass
class Storm:
    """What happened, for the judgement."""

    # (time of death, pid)
    deaths: list[tuple[float, int]] = field(default_factory=list)
    # (time of the first answer, pid, time of death)
    lives: list[tuple[float, int, float]] = field(default_factory=list)
    boot_kills: int = 0
    by_hooks: int = 0


class Senders:
    """Keeps so many agents running; each that leaves is replaced."""

    def __init__(self, count: int, folder: Path, hook: Path, instance: Path, bus_address: str, seed: int) -> None:
        self._folder = folder
        self._command = [str(folder / "claude"), str(SENDER), str(hook), str(instance)]
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self._started = 0
        # An interpreter under an agent's name: by that the daemon knows the process for an agent.
        shutil.copy(os.path.realpath("/usr/bin/python3"), folder / "claude")
        self._environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONHOME": "/usr", "PYTHONDONTWRITEBYTECODE": "1",
            "DBUS_SYSTEM_BUS_ADDRESS": bus_address,
        }  # fmt: skip
        self._running = [self._start("--anchor")] + [self._start() for _ in range(count)]
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        self._started += 1
        log = self._folder / f"sender-{self._started}.jsonl"
        command = [*self._command, str(log), str(self._random.getrandbits(32)), *more]
        with open(self._folder / "senders.err", "ab") as errors:
            return subprocess.Popen(command, env=self._environment, stdin=subprocess.DEVNULL, stderr=errors)

    def _keep(self) -> None:
        while not self._stopping.wait(0.1):
            for place, sender in enumerate(self._running):
                if sender.poll() is not None:
                    self._running[place] = self._start()

    def end(self) -> int:
        """Kills all of them in the middle of what they do; returns how many ran in all."""
        self._stopping.set()
        self._keeper.join()
        for sender in self._running:
            sender.kill()
        for sender in self._running:
            sender.wait()
        return self._started

    def calls(self) -> list[dict[str, Any]]:
        """Every finished call; a line that was being written when its sender was killed is no finished call."""
        found = []
        for log in sorted(self._folder.glob("sender-*.jsonl")):
            for line in log.read_text().splitlines():
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
        return found


class Journal:
    """What the journal says, read along: it keeps the newest 50,000 rows only."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._last = 0
        self.rows = 0
        self.gaps = 0
        self.deliveries: collections.Counter[str] = collections.Counter()
        self.ends: collections.Counter[tuple[str, int]] = collections.Counter()
        self.second_lives: set[str] = set()

    def read(self) -> None:
        """Takes in what was added since the last time. Committed rows only; what is dead or alive does not matter."""
        query = "SELECT seq, incarnation, delivery, body FROM journal WHERE seq > ? ORDER BY seq"
        connection = sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=10)
        try:
            oldest = connection.execute("SELECT min(seq) FROM journal").fetchone()[0]
            self.gaps += oldest is not None and oldest > self._last + 1
            for seq, incarnation, delivery, body in connection.execute(query, (self._last,)):
                self._last = seq
                self._note(incarnation, delivery, json.loads(body))
        finally:
            connection.close()

    def _note(self, incarnation: int | None, delivery: bytes | None, row: dict[str, Any]) -> None:
        self.rows += 1
        if delivery is not None and row.get("verdict") != "duplicate":
            self.deliveries[delivery.hex()] += 1
        for change in row.get("transitions", []):
            if change["to"] == "ended":
                self.ends[(change["session"], incarnation or 0)] += 1
            if incarnation is not None and incarnation > 1:
                self.second_lives.add(change["session"])


class Daemon:
    """Whoever holds the instance at the moment."""

    def __init__(self, subject: product.Product) -> None:
        self._product = subject

    def wait(self) -> tuple[float, int]:
        """The time of an answer and the pid of the daemon that gave it."""
        deadline = time.monotonic() + COMEBACK_SECONDS_MAX
        while time.monotonic() < deadline:
            if (answer := self._product.daemon()) is not None:
                return answer.told, int(answer.value["pid"])
            time.sleep(0.02)
        raise product.ProductError(f"no daemon answered within {COMEBACK_SECONDS_MAX} s")

    def kill(self, pid: int) -> float:
        end_all([pid])
        return time.time()


def storm(kills: int, daemon: Daemon, journal: Journal, subject: product.Product, dice: random.Random) -> Storm:
    seen = Storm()
    while len(seen.deaths) < kills:
        answered, pid = daemon.wait()
        journal.read()
        time.sleep(dice.uniform(*LIFE_SECONDS))
        died = daemon.kill(pid)
        seen.deaths.append((died, pid))
        seen.lives.append((answered, pid, died))
        if dice.random() < LEFT_TO_HOOKS_SHARE:
            seen.by_hooks += 1
            continue
        booting = subject.spawn()
        if dice.random() < BOOT_KILL_SHARE and len(seen.deaths) < kills:
            time.sleep(dice.uniform(*BOOT_SECONDS))
            if booting.poll() is None:
                booting.kill()
                booting.wait()
                seen.boot_kills += 1
                seen.deaths.append((time.time(), booting.pid))
                subject.spawn()
    return seen


# ---- the judgement ----------------------------------------------------------------------------------------------------


def judge_inhibitor(seen: Storm, samples: list[Sample]) -> tuple[list[str], str]:
    problems = []
    held_last: dict[int, float] = {}
    held_first: dict[int, float] = {}
    for sample in samples:
        for pid in {pid for pid, _ in sample.blocks}:
            held_last[pid] = sample.at
            if sample.held_by({pid}) == KINDS:
                held_first.setdefault(pid, sample.at)
    gone = [max(0.0, held_last.get(pid, 0.0) - died) for died, pid in seen.deaths]
    if max(gone) > GONE_SECONDS_MAX:
        problems.append(f"an inhibitor outlived its daemon by {max(gone):.2f} s")
    back = []
    for answered, pid, died in seen.lives:
        if pid in held_first:
            back.append(max(0.0, held_first[pid] - answered))
        elif died - answered > BACK_SECONDS_MAX:
            problems.append(f"daemon {pid} lived for {died - answered:.2f} s and never held the inhibitor")
    if back and max(back) > BACK_SECONDS_MAX:
        problems.append(f"an inhibitor came back only {max(back):.2f} s after the first answer")
    if len(back) < len(seen.lives) / 2:
        problems.append(f"only {len(back)} of {len(seen.lives)} daemons were seen to hold the inhibitor")
    figures = (
        f"inhibitor gone at most {max(gone):.2f} s after {len(gone)} kills, back at most {max(back, default=0):.2f} s after "
        f"the first answer of {len(back)} daemons ({len(seen.lives) - len(back)} died before)"
    )
    return problems, figures


def judge_hooks(calls: list[dict[str, Any]]) -> tuple[list[str], str]:
    problems = []
    bad = collections.Counter(call["code"] for call in calls if call["code"] != 0)
    if bad:
        problems.append(f"hooks ended with {dict(bad)}")
    without = sum(1 for call in calls if len(call["receipt"]) != 3)
    if without:
        problems.append(f"{without} hooks gave no receipt")
    times = sorted(int(call["receipt"][2]) / 1e6 for call in calls if len(call["receipt"]) == 3)
    if not times:
        return [*problems, "no hook ran"], "no hooks"
    within = sum(1 for ms in times if ms <= HOOK_WAIT_MS + HOOK_GRACE_MS)
    if within / len(times) < WITHIN_SHARE_MIN:
        problems.append(f"only {within} of {len(times)} hooks ended within their deadline and {HOOK_GRACE_MS} ms")
    if times[-1] > HOOK_MS_MAX:
        problems.append(f"a hook took {times[-1]:.0f} ms")
    outcomes = collections.Counter(call["receipt"][1] for call in calls if len(call["receipt"]) == 3)
    figures = (
        f"{len(times)} hooks ({outcomes['taken']} acknowledged, {outcomes['away']} spooled without a daemon, "
        f"{outcomes['unsure']} spooled beside one); by their own clocks {within} within {HOOK_WAIT_MS + HOOK_GRACE_MS} ms, "
        f"{len(times) - within} later, {sum(1 for ms in times if ms > HOOK_MS_MAX)} over {HOOK_MS_MAX} ms; "
        f"median {times[len(times) // 2]:.1f} ms, p99.9 {times[int(len(times) * 0.999) - 1]:.1f} ms, longest {times[-1]:.1f} ms"
    )
    return problems, figures


def met(calls: list[dict[str, Any]]) -> set[str]:
    """Sessions with a hook that ended before its agent did: their agents' processes are known, by socket or by spool."""
    return {call["session"] for call in calls}


def judge_journal(journal: Journal, calls: list[dict[str, Any]]) -> tuple[list[str], str]:
    problems = []
    ended_twice = [key for key, count in journal.ends.items() if count > 1]
    found = journal.deliveries
    receipts = [call["receipt"] for call in calls if len(call["receipt"]) == 3]
    for outcome in ("taken", "away", "unsure"):
        lost = [r[0] for r in receipts if r[1] == outcome and found[r[0]] == 0]
        if lost:
            problems.append(f"{len(lost)} deliveries that ended '{outcome}' are not in the journal, e.g. {lost[:3]}")
    twice = [delivery for delivery, count in found.items() if count > 1]
    if twice:
        problems.append(f"{len(twice)} deliveries were applied twice, e.g. {twice[:3]}")
    if ended_twice:
        problems.append(f"{len(ended_twice)} sessions ended twice, e.g. {ended_twice[:3]}")
    if journal.second_lives:
        again = sorted(journal.second_lives)
        problems.append(f"{len(again)} sessions lived a second time, e.g. {again[:3]}")
    if journal.gaps:
        problems.append(f"{journal.gaps} times the journal had forgotten rows before they were read: the test is too slow for it")
    ended = {session.partition(":")[2] for session, _ in journal.ends}
    alive = met(calls) - ended
    if alive:
        problems.append(f"{len(alive)} sessions never ended though their agents are gone, e.g. {sorted(alive)[:3]}")
    return problems, f"{journal.rows} rows for {len(receipts)} deliveries; {len(ended)} sessions ended, {len(ended_twice)} of them twice"


# ---- the run ----------------------------------------------------------------------------------------------------------


def wait_until_drained(instance: Path) -> list[str]:
    spool = instance / "state" / "spool"
    deadline = time.monotonic() + DRAIN_SECONDS_MAX
    while time.monotonic() < deadline:
        left = [name for name in os.listdir(spool) if name.endswith(".frame")] if spool.exists() else []
        if not left:
            return []
        time.sleep(0.1)
    return [f"{len(left)} frames are still in the spool after {DRAIN_SECONDS_MAX} s"]


def judge_end(subject: product.Product, known: set[str]) -> list[str]:
    """All agents are gone: what has not ended must be a session whose only hook was left behind. Those are removed, as a
    person would."""
    status = subject.status()
    if status is None:
        return ["the daemon does not answer in the end"]
    left = [s for s in status.value["sessions"] if s["state"] != "ended"]
    for session in left:
        subject.ask("remove", session["key"])
    wrong = [s["key"] for s in left if s["id"] in known]
    return [f"{len(wrong)} sessions have not ended after their agents, e.g. {wrong[:3]}"] if wrong else []


def let_go(subject: product.Product, rig: Rig, pid: int) -> list[str]:
    """No session, no demand: nothing may be held a second later."""
    quiet = time.time()
    time.sleep(GONE_SECONDS_MAX + 0.1)
    held = [s for s in rig.samples(quiet + GONE_SECONDS_MAX, time.time()) if s.held_by({pid})]
    return ["the inhibitor is still held though every agent is gone"] if held else []


def play(arguments: argparse.Namespace, folder: Path, rig: Rig, programs: Path) -> list[str]:
    instance = folder / "instance"
    instance.mkdir()
    subject = product.Product(programs, instance, rig.bus_address)
    subject.configure(keep_awake="busy")
    daemon = Daemon(subject)
    journal = Journal(instance / "state" / "journal.db")
    started = time.time()
    subject.spawn()
    daemon.wait()
    senders = Senders(arguments.senders, folder, programs / "watchkeeper-hook", instance, rig.bus_address, arguments.seed)
    try:
        seen = storm(arguments.kills, daemon, journal, subject, random.Random(arguments.seed))
        subject.spawn()
        daemon.wait()
    finally:
        ran = senders.end()
    _, pid = daemon.wait()
    problems = wait_until_drained(instance)
    time.sleep(GONE_SECONDS_MAX)
    calls = senders.calls()
    problems += judge_end(subject, met(calls))
    problems += let_go(subject, rig, pid)
    samples = rig.samples(started, time.time())
    end_all([pid])
    journal.read()
    print(f"seed {arguments.seed}: {len(seen.deaths)} kills ({seen.boot_kills} while it booted, {seen.by_hooks} restarts left to "
          f"hooks), {ran} agents, {time.time() - started:.0f} s")  # fmt: skip
    for found, figures in (
        judge_hooks(calls),
        judge_journal(journal, calls),
        judge_inhibitor(seen, samples),
    ):
        print(figures)
        problems += found
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills the daemon at random under many hooks.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--senders", type=int, default=64)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--keep", action="store_true", help="keep the folder even if everything held")
    arguments = parser.parse_args()
    programs = product.build()
    folder = Path(tempfile.mkdtemp(prefix="wk-crash-"))
    folder.chmod(0o755)  # polkitd gives up root before it connects to the rig's bus
    try:
        rig = Rig(folder)
    except RigError as error:
        print(f"the power rig did not start: {error}", file=sys.stderr)
        return 1
    try:
        problems = play(arguments, folder, rig, programs)
    except product.ProductError as error:
        problems = [str(error)]
    finally:
        rig.close()
        end_all(with_home(folder))
        end_all(with_argument(str(folder / "instance")))
    for problem in problems:
        print(f"FAILED: {problem}")
    if problems or arguments.keep:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    print("1 passed, 0 failed" if not problems else "0 passed, 1 failed")
    return 1 if problems else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
