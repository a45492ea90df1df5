"""One agent of the crash test: sends the hooks of one Claude session after another, one at a time, until its parent ends it.

    claude sender.py HOOK HOME LOG SEED [--anchor]

It runs in an interpreter that is called `claude`, so that the daemon finds a living agent process above each hook and
watches its exit. Now and then it leaves in the middle of a turn without a word, as a killed agent does; its parent then
starts another. `--anchor`: one session that starts a turn and works until the end, so that there is demand all the time.

Each call of the hook becomes one line of LOG: what was sent, how it ended, and the receipt that the hook wrote about
itself (delivery, outcome, time by its own clock).
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import uuid

PAUSE_SECONDS = (0.15, 0.75)
LEAVES_MID_TURN = 0.15


class Sender:
    def __init__(self, hook: str, home: str, log: str, seed: int) -> None:
        self._hook = hook
        self._home = home
        self._log = open(log, "a", encoding="ascii", buffering=1)
        self._random = random.Random(seed)

    def call(self, session: str, event: str, **fields: object) -> None:
        payload = {"session_id": session, "hook_event_name": event, "cwd": "/", "transcript_path": f"/none/{session}.jsonl"}
        raw = json.dumps(payload | fields).encode()
        input_read, input_write = os.pipe()
        os.write(input_write, raw)  # far below what a pipe holds
        os.close(input_write)
        error_read, error_write = os.pipe()
        command = [self._hook, "--receipt", "--home", self._home, "claude", event]
        started = time.monotonic()
        pid = os.posix_spawn(
            self._hook, command, os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, input_read, 0),
                (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, error_write, 2),
            ],
        )  # fmt: skip
        os.close(input_read)
        os.close(error_write)
        _, status = os.waitpid(pid, 0)
        seen = time.monotonic() - started
        receipt = os.read(error_read, 4096).decode("ascii", "replace").split()
        os.close(error_read)
        row = {
            "at": time.time(), "session": session, "event": event, "code": os.waitstatus_to_exitcode(status),
            "seen_ms": round(seen * 1000, 2), "receipt": receipt,
        }  # fmt: skip
        self._log.write(json.dumps(row) + "\n")

    def pause(self) -> None:
        time.sleep(self._random.uniform(*PAUSE_SECONDS))

    def session(self) -> None:
        session = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        self.call(session, "SessionStart", source="startup")
        for _ in range(self._random.randint(1, 3)):
            turn = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            self.call(session, "UserPromptSubmit", prompt="work", prompt_id=turn)
            for number in range(self._random.randint(1, 4)):
                tool = {"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": f"{turn}-{number}", "prompt_id": turn}
                self.pause()
                self.call(session, "PreToolUse", **tool)
                if self._random.random() < LEAVES_MID_TURN:
                    os._exit(0)
                self.pause()
                self.call(session, "PostToolUse", tool_response={"stdout": ""}, **tool)
            self.pause()
            self.call(session, "Stop", prompt_id=turn, stop_hook_active=False, background_tasks=[], session_crons=[])
        self.pause()
        self.call(session, "SessionEnd", reason="other")

    def anchor(self) -> None:
        session = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        turn = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        self.call(session, "SessionStart", source="startup")
        self.call(session, "UserPromptSubmit", prompt="work", prompt_id=turn)
        number = 0
        while True:
            number += 1
            tool = {"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": f"{turn}-{number}", "prompt_id": turn}
            self.call(session, "PreToolUse", **tool)
            time.sleep(1)
            self.call(session, "PostToolUse", tool_response={"stdout": ""}, **tool)


def main() -> None:
    hook, home, log, seed = sys.argv[1:5]
    sender = Sender(hook, home, log, int(seed))
    if "--anchor" in sys.argv:
        sender.anchor()
    time.sleep(random.Random(int(seed)).uniform(0, PAUSE_SECONDS[1]))  # not all at once
    while True:
        sender.session()


if __name__ == "__main__":
    main()
