"""What `/proc` says about the processes of one scenario; who belongs to it is told by its private HOME."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

END_SECONDS_MAX = 10


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def program_name(pid: int) -> str:
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def arguments_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


def is_zombie(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def session_nice(pid: int | str) -> int | None:
    """The nice value of the process's autogroup; None where it is in none that can be read."""
    try:
        return nice_of(Path(f"/proc/{pid}/autogroup").read_text())
    except OSError:
        return None  # a kernel without autogroups, a process that is gone


def nice_of(autogroup: str) -> int | None:
    """The nice value in `/autogroup-7 nice 0`.

    The file is empty for what never left the machine's first session, such as a job that init itself started.
    """
    _, _, nice = autogroup.rpartition(" nice ")
    try:
        return int(nice)
    except ValueError:
        return None


def share_like_us(pid: int) -> None:
    """Gives a process that began a session of its own the same share of the processor as this one has.

    Linux weighs sessions against each other (autogroups, sched(7)), each with a nice value of its own: where the test was
    started with another than 0, its daemons and terminals would starve beside it or outrun it.
    """
    nice = session_nice("self")
    if nice is None:
        return
    try:
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
    except OSError:
        pass  # no right to: then the shares are what they are


def with_home(home: Path) -> list[int]:
    """Living processes whose environment has exactly this HOME: agents, their tools, and what those left behind."""
    wanted = b"HOME=" + os.fsencode(home)
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in environment and not is_zombie(int(name)):
            found.append(int(name))
    return found


def with_argument(word: str) -> list[int]:
    """Living processes that were started with exactly this argument, such as the folder of a private instance."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and os.fsencode(word) in arguments_of(int(name)) and not is_zombie(int(name)):
            found.append(int(name))
    return found


def end_all(pids: list[int]) -> None:
    """SIGKILL through pidfds, so that a reused pid is never hit; waits until they are gone."""
    deadline = time.monotonic() + END_SECONDS_MAX
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(fd)
    while any(not is_zombie(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
