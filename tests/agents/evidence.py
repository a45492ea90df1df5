"""The independent witness: what an agent itself shows, with the time at which it showed it.

Four kinds of evidence, none of them read through the product under test:

    hook        an own second hook entry beside the product's ran (`witness-hook`); the time is that of its start. For
                OpenCode, an own second plugin was told of an event (`opencode-witness.js`); the time is that of the telling
    registry    Claude's own `~/.claude/sessions/<pid>.json` was written or removed; the time is the file's own
    transcript  a record was appended to a transcript or rollout; the time is that of the sighting
    exit        a watched process ended, as its pidfd says

and `act`: what the harness itself did. The files are looked at every 10 ms.
"""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LOOK_EVERY_SECONDS = 0.01
# Folders are listed less often: a session's files stay where they are once they exist.
LIST_EVERY_SECONDS = 0.1
# One look reads at most this much of a transcript; the rest comes with the next look.
READ_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True)
class Evidence:
    at: float
    kind: str
    name: str
    data: dict[str, Any] = field(default_factory=dict, compare=False)

    def brief(self) -> dict[str, Any]:
        """For the record on disk: who, what, when, without the bulk of the payloads."""
        wanted = ("session_id", "sessionId", "reason", "tool_name", "type", "subtype", "pid", "source", "status")
        shown = {key: self.data[key] for key in wanted if isinstance(self.data.get(key), str | int)}
        return {"at": round(self.at, 4), "kind": self.kind, "name": self.name, **shown}


Predicate = Callable[[Evidence], bool]


class Witness:
    """Collects evidence from one agent home until `close`."""

    def __init__(self, hook_dir: Path, registry_dir: Path | None, transcript_roots: list[Path]) -> None:
        self._hook_dir = hook_dir
        self._registry_dir = registry_dir
        self._transcript_roots = transcript_roots
        self._all: list[Evidence] = []
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._hooks_seen: set[str] = set()
        self._registry_seen: dict[str, int] = {}
        self._transcripts: dict[Path, int] = {}
        self._pidfds: dict[int, tuple[int, str]] = {}
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        hook_dir.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    # ---- for the scenario

    def act(self, name: str) -> float:
        """Notes what the harness does; returns the time."""
        return self._add(Evidence(time.time(), "act", name)).at

    def watch_exit(self, pid: int, label: str) -> None:
        """Reports the end of the process as `exit` evidence named `label`."""
        with self._changed:
            self._pidfds[os.pidfd_open(pid)] = (pid, label)

    def all(self) -> list[Evidence]:
        with self._changed:
            return sorted(self._all, key=lambda e: e.at)

    def first(self, matches: Predicate, after: float) -> Evidence | None:
        """The earliest evidence at or after that time which matches."""
        return next((e for e in self.all() if e.at >= after and matches(e)), None)

    def wait(self, matches: Predicate, after: float, timeout_seconds: float) -> Evidence | None:
        deadline = time.monotonic() + timeout_seconds
        while True:
            with self._changed:
                hits = [e for e in self._all if e.at >= after and matches(e)]
                if hits:
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._changed.wait(left)
        # Evidence of one moment can be noticed in another order than it happened: one more look at everything.
        time.sleep(2 * LIST_EVERY_SECONDS)
        return self.first(matches, after)

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        for fd in self._pidfds:
            os.close(fd)

    # ---- the looking

    def _add(self, evidence: Evidence) -> Evidence:
        with self._changed:
            self._all.append(evidence)
            self._changed.notify_all()
        return evidence

    def _run(self) -> None:
        next_listing = 0.0
        while not self._stopping.is_set():
            if time.monotonic() >= next_listing:
                next_listing = time.monotonic() + LIST_EVERY_SECONDS
                self._find_transcripts()
            self._look_at_hooks()
            self._look_at_registry()
            self._look_at_transcripts()
            self._look_at_exits()
            self._stopping.wait(LOOK_EVERY_SECONDS)

    def _look_at_hooks(self) -> None:
        """The witnesses leave `<seconds>.<fraction>-<event>-<number>.json`, renamed into place when complete."""
        for name in os.listdir(self._hook_dir):
            if name in self._hooks_seen or not name.endswith(".json"):
                continue
            self._hooks_seen.add(name)
            at, event, _ = name.removesuffix(".json").split("-")
            try:
                payload = json.loads((self._hook_dir / name).read_bytes())
            except ValueError:
                payload = {}
            self._add(Evidence(float(at), "hook", event, payload))

    def _look_at_registry(self) -> None:
        if self._registry_dir is None:
            return
        try:
            entries = {e.name: e.stat().st_mtime_ns for e in os.scandir(self._registry_dir) if e.name.endswith(".json")}
        except FileNotFoundError:
            entries = {}
        for name in set(self._registry_seen) - set(entries):
            del self._registry_seen[name]
            self._add(Evidence(time.time(), "registry", "removed", {"pid": int(name.removesuffix(".json"))}))
        for name, written_ns in entries.items():
            if self._registry_seen.get(name) == written_ns:
                continue
            try:
                content = json.loads((self._registry_dir / name).read_bytes())
            except (OSError, ValueError):
                continue  # half written: the next look sees the rest
            self._registry_seen[name] = written_ns
            self._add(Evidence(written_ns / 1e9, "registry", str(content.get("status")), content))

    def _find_transcripts(self) -> None:
        for root in self._transcript_roots:
            for folder, _, names in os.walk(root):
                for name in names:
                    if name.endswith(".jsonl"):
                        self._transcripts.setdefault(Path(folder) / name, 0)

    def _look_at_transcripts(self) -> None:
        for path, read in self._transcripts.items():
            try:
                if path.stat().st_size == read:
                    continue
                with open(path, "rb") as file:
                    file.seek(read)
                    chunk = file.read(READ_BYTES_MAX)
            except OSError:
                continue
            seen = time.time()
            whole = chunk.rfind(b"\n") + 1
            self._transcripts[path] = read + whole
            for line in chunk[:whole].splitlines():
                self._note_record(line, seen)

    def _note_record(self, line: bytes, seen: float) -> None:
        try:
            record = json.loads(line)
        except ValueError:
            return
        payload = record.get("payload")
        inner = payload.get("type") if isinstance(payload, dict) else record.get("subtype")
        name = f"{record.get('type')}/{inner}" if inner else str(record.get("type"))
        self._add(Evidence(seen, "transcript", name, record))

    def _look_at_exits(self) -> None:
        with self._changed:
            watched = dict(self._pidfds)
        if not watched:
            return
        poll = select.poll()
        for fd in watched:
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(0):
            pid, label = watched[fd]
            with self._changed:
                del self._pidfds[fd]
            os.close(fd)
            self._add(Evidence(time.time(), "exit", label, {"pid": pid}))
