#!/usr/bin/python3
"""The judge is itself judged: each complaint has a case that raises it, and one beside it that does not."""

from __future__ import annotations

import subprocess
import unittest

from judge import Moment, Observation, problems
from logind import KINDS, Sample
from model_server import Anthropic, Responses, Step, Turn, next_step, parse_script
from processes import nice_of, session_nice, share_like_us

DAEMON = 7
NO_PID = 2**22 + 1  # above the kernel's largest possible pid
# Working from second 10, idle from 20.
MOMENTS = [Moment(10.0, "a prompt", "working", True), Moment(20.0, "a stop", "idle", False)]


def seen(changes: list[tuple[float, str]], until: float = 30.0) -> list[Observation]:
    """Looks every 0.1 s from second 8 on; each change says from when on which state is shown."""
    times = [8.0 + 0.1 * i for i in range(int((until - 8.0) * 10))]
    state_at = lambda t: [state for start, state in changes if start <= t][-1]  # noqa: E731
    return [Observation(t, t + 0.05, state_at(t)) for t in times]


def samples(held_from: float, held_to: float, kinds: frozenset[str] = KINDS, pid: int = DAEMON) -> list[Sample]:
    """Looks every 0.02 s; the kinds are held in between."""
    times = [8.0 + 0.02 * i for i in range(1100)]
    held = frozenset((pid, kind) for kind in kinds)
    return [Sample(t, held if held_from <= t < held_to else frozenset()) for t in times]


class TheJudge(unittest.TestCase):
    def check(self, states: list[tuple[float, str]], taken: list[Sample], complaint: str | None) -> None:
        found = problems(MOMENTS, seen(states), taken, {DAEMON})
        if complaint is None:
            self.assertEqual(found, [])
        else:
            self.assertTrue(any(complaint in each for each in found), found)

    def test_states(self) -> None:
        held = samples(10.1, 20.5)
        self.check([(0, "idle"), (10.8, "working"), (20.8, "idle")], held, None)
        self.check([(0, "idle"), (11.4, "working"), (20.8, "idle")], held, "state wrong for")
        self.check([(0, "idle"), (10.2, "working"), (21.4, "idle")], held, "state wrong for")
        self.check([(0, "idle"), (10.2, "working"), (14, "waiting"), (15.5, "working"), (20.2, "idle")], held, "shown waiting")
        self.check([(0, "working")], held, "idle was never shown")

    def test_inhibitor(self) -> None:
        states = [(0.0, "idle"), (10.1, "working"), (20.1, "idle")]
        self.check(states, samples(10.25, 20.9), None)
        self.check(states, samples(10.4, 20.9), "not held though a prompt")
        self.check(states, samples(10.1, 21.2), "held though a stop")
        self.check(states, samples(10.1, 20.5, frozenset({"idle"})), "not held though a prompt")
        self.check(states, samples(10.1, 20.5, pid=DAEMON + 1), "not held though a prompt")

    def test_blind_witnesses(self) -> None:
        states = [(0.0, "idle"), (10.1, "working"), (20.1, "idle")]
        self.check(states, [s for s in samples(10.1, 20.5) if not 12 < s.at < 12.5], "looked away")
        self.check(states, [], "saw nothing")
        blind = [o for o in seen(states) if not 12 < o.asked < 14]
        held = samples(10.1, 20.5)
        self.assertTrue(any("no answer" in each for each in problems(MOMENTS, blind, held, {DAEMON})))
        self.assertEqual(problems(MOMENTS, blind, held, {DAEMON}, [(12.0, 13.9)]), [])


class TheShare(unittest.TestCase):
    """What a process inherits of the processor's shares is looked up under every condition that a test may be started in."""

    def test_what_the_kernel_prints(self) -> None:
        self.assertEqual(nice_of("/autogroup-7 nice -12\n"), -12)
        self.assertIsNone(nice_of(""))
        self.assertIsNone(nice_of("nonsense\n"))

    def test_a_session_of_its_own(self) -> None:
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        before = session_nice(child.pid)
        share_like_us(child.pid)
        ours = session_nice("self")
        self.assertEqual(session_nice(child.pid), before if ours is None else ours)

    def test_nobody(self) -> None:
        self.assertIsNone(session_nice(NO_PID))
        share_like_us(NO_PID)


class TheModel(unittest.TestCase):
    def check(self, turns: list[Turn], expected: Step) -> None:
        self.assertEqual(next_step(turns), expected)

    def test_steps_follow_the_calls_made(self) -> None:
        script = Turn("user", "text", "PLAY bash:true ;; ask ;; slow:2")
        call = Turn("assistant", "call", "Bash")
        self.check([], Step("text", "Hello."))
        self.check([script], Step("bash", "true"))
        self.check([script, call], Step("ask"))
        self.check([script, call, call], Step("slow", "2"))
        self.check([script, call, call, Turn("user", "text", "PLAY text:again")], Step("text", "again"))

    def test_nonsense_is_answered(self) -> None:
        self.assertEqual(parse_script("PLAY frob:1")[0].verb, "text")
        self.assertEqual(parse_script("PLAY slow:2/exit")[0].verb, "text")

    def test_wires(self) -> None:
        block = {"type": "text", "text": "PLAY bash:true"}
        use = {"type": "tool_use", "name": "Bash"}
        messages = [{"role": "user", "content": [block]}, {"role": "assistant", "content": [use]}]
        self.assertEqual([t.kind for t in Anthropic.turns({"messages": messages})], ["text", "call"])
        text = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "PLAY bash:true"}]}
        items = [text, {"type": "function_call", "name": "exec_command"}, {"type": "function_call_output"}]
        self.assertEqual([t.kind for t in Responses.turns({"input": items})], ["text", "call"])


if __name__ == "__main__":
    unittest.main()
