"""One scenario on stage: its agent, its model, its daemon, and everything that watches them.

A scenario function plays with `begin`, `send`, `press` and friends, and after each step says with `expect` what is true
now and which evidence shows it first. `expect` waits for that evidence, asks the product one second later, and keeps the
moment for the judge, who compares the whole run afterwards.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import judge
from agents import Claude, Codex, Copilot, Gemini, Home, OpenCode, Qwen
from evidence import Predicate, Witness
from logind import Rig
from processes import arguments_of, children, end_all, is_zombie, program_name, with_home
from product import Product, ProductError
from signs import BUSY_60
from terminal import Terminal

MODEL_SERVER = Path(__file__).with_name("model_server.py")
EVIDENCE_SECONDS_MAX = 45
MODEL_START_SECONDS_MAX = 10
# A hook that its agent kills is gone by then.
HOOK_END_SECONDS_MAX = 10
# Between two looks at `status`; each is a process of its own.
OBSERVE_EVERY_SECONDS = 0.05
# How long a moment lasts at least after the product was asked about it.
LINGER_SECONDS = 0.4
# What the processes of the long command are called, after their program's name.
LONG_TOOL = [os.fsencode(word) for word in shlex.split(BUSY_60)[1:]]
# States in which the machine has to stay awake.
DEMANDING = frozenset({"working", "background"})


class SceneError(Exception):
    """The scenario could not be played to its end: something never happened."""


class Scene:
    def __init__(self, folder: Path, rig: Rig, programs: Path, agent: str, codex_daemon: bool = False) -> None:
        self.folder = folder
        self.failures: list[str] = []
        self.moments: list[judge.Moment] = []
        self._rig = rig
        # What `status` said of each session of the scene; one that replaces another comes behind it.
        self._seen: dict[str, list[judge.Observation]] = {}
        self.shared_server = codex_daemon
        self._trusted = not codex_daemon
        self._slow_hooks: set[str] = set()
        self._terminal: Terminal | None = None
        self._printing: subprocess.Popen[bytes] | None = None
        self._down = threading.Event()
        self._pauses: list[tuple[float, float]] = []
        self._stopping = threading.Event()
        self.home = Home(folder, rig.bus_address)
        self.home.create()
        self._model = self._start_model()
        port = int((folder / "model-port").read_text())
        self.agent = {
            "claude": lambda: Claude(self.home, port),
            "codex": lambda: Codex(self.home, port, codex_daemon),
            "opencode": lambda: OpenCode(self.home, port),
            "copilot": lambda: Copilot(self.home, port),
            "qwen": lambda: Qwen(self.home, port),
            "gemini": lambda: Gemini(self.home, port),
        }[agent]()
        self.agent.prepare()
        (folder / "instance").mkdir()
        self.product = Product(programs, folder / "instance", rig.bus_address)
        self.product.configure(keep_awake="busy")
        self.product.install(agent, self.agent.environment())
        self.agent.add_witness()
        self.witness = Witness(self.home.hook_dir, self.agent.registry_dir(), self.agent.transcript_roots())
        self.started = time.time()
        self.product.start()
        self._observer = threading.Thread(target=self._observe, name="observer", daemon=True)
        self._observer.start()

    def _start_model(self) -> subprocess.Popen[bytes]:
        port_file = self.folder / "model-port"
        model = subprocess.Popen(
            [sys.executable, str(MODEL_SERVER), "--port-file", str(port_file), "--log", str(self.folder / "model.jsonl")]
        )
        deadline = time.monotonic() + MODEL_START_SECONDS_MAX
        while not port_file.exists():
            if time.monotonic() > deadline or model.poll() is not None:
                raise SceneError("the model server did not start")
            time.sleep(0.02)
        return model

    # ---- what a scenario does

    def print_mode(self, prompt: str, asks: bool = False) -> None:
        """Starts the agent without a terminal; it ends by itself."""
        self.witness.act("start")
        with open(self.folder / "agent.out", "wb") as output:
            self._printing = subprocess.Popen(
                self.agent.print_command(prompt, asks), env=self.agent.environment(), cwd=self.home.work,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._watch_agent(self._printing.pid)

    def open_terminal(self, asks: bool = False, resume: bool = False) -> None:
        """Starts the agent's full-screen interface. `asks`: with permission dialogs. `resume`: with the last conversation."""
        self.witness.act("resume" if resume else "start")
        command = self.agent.terminal_command(asks) + (self.agent.resume_words if resume else [])
        self._terminal = Terminal(self.folder / "tmux", self.home.work, command, self.agent.environment())
        self._watch_agent(self._terminal.pid)
        if not self._trusted:
            self._trusted = True
            self._terminal.wait_for("Hooks need review")
            self._terminal.press_until("Down", "› 2. Trust all and continue")
            self._terminal.press("Enter")
            self._terminal.wait_for(r"(?s)^(?!.*Hooks need review)")
        self._terminal.wait_for(self.agent.ready_screen)

    @property
    def terminal(self) -> Terminal:
        assert self._terminal is not None, "this scenario has no terminal"
        return self._terminal

    def send(self, prompt: str) -> None:
        self.witness.act(f"send {prompt}")
        self.terminal.enter(prompt)

    def press(self, *keys: str) -> None:
        self.witness.act(f"press {' '.join(keys)}")
        self.terminal.press(*keys)

    def kill_agent(self) -> None:
        """kill -9 of the process that runs the turn, or is its client where a shared server runs it."""
        self._signal("kill the agent", self._agent_pid, signal.SIGKILL)

    def kill_wrapper(self) -> None:
        """kill -9 of the process that was started, where the agent is another one below it."""
        assert self._root_pid != self._agent_pid, "this agent has no wrapper"
        self._signal("kill the wrapper", self._root_pid, signal.SIGKILL)

    def interrupt_agent(self) -> None:
        """What Ctrl-C does to an agent without an interface of its own."""
        self._signal("interrupt the agent", self._agent_pid, signal.SIGINT)

    def terminate(self) -> None:
        """SIGTERM to the process that was started, as a service manager or a `timeout` does it."""
        self._signal("terminate", self._root_pid, signal.SIGTERM)

    def kill_server(self) -> None:
        """kill -9 of Codex's shared app-server; its exit is evidence named `server`."""
        server = next(pid for pid in with_home(self.home.home) if {b"app-server", b"--listen"} <= set(arguments_of(pid)))
        self.witness.watch_exit(server, "server")
        self._signal("kill the server", server, signal.SIGKILL)

    @staticmethod
    def acted(name: str) -> Predicate:
        """What the harness itself did is the evidence."""
        return lambda e: e.kind == "act" and e.name == name

    def _signal(self, name: str, pid: int, number: signal.Signals) -> None:
        self.witness.act(name)
        os.kill(pid, number)

    def close_terminal(self) -> None:
        """The terminal's window is closed: all in it get SIGHUP."""
        self.witness.act("close the terminal")
        self.terminal.close()

    def slow_hook(self, event: str, has_timeout: bool = True) -> None:
        """Before the agent starts: somebody's own hook on this event, which does not return for a minute."""
        self.agent.add_slow_hook(event, has_timeout)

    def slow_hook_runs(self, event: str, runs: bool) -> None:
        """Whether it still runs is the agent's affair; that this is what happens here is checked.

        From the first such look on its end is evidence: an `exit` with the event's name.
        """
        path = self.home.hook_dir / f"{event}.pid"
        deadline = time.monotonic() + EVIDENCE_SECONDS_MAX
        while not path.exists():
            if time.monotonic() > deadline:
                raise SceneError(f"the slow hook on {event} never ran")
            time.sleep(0.02)
        pid = int(path.read_text())
        if runs and not is_zombie(pid) and event not in self._slow_hooks:
            self._slow_hooks.add(event)
            self.witness.watch_exit(pid, event)
        deadline = time.monotonic() + (0 if runs else HOOK_END_SECONDS_MAX)
        while not runs and not is_zombie(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        self._check(is_zombie(pid) != runs, f"the slow hook on {event} {'has ended' if runs else 'still runs'}")

    def session_ids(self) -> list[str]:
        """Of this scene, in the order of their appearance."""
        return list(self._seen)

    def tool_survives(self, survives: bool) -> None:
        """Whether the long command outlives its agent is the agent's affair; that this is what happens here is checked."""
        tools = [pid for pid in with_home(self.home.home) if arguments_of(pid)[1:] == LONG_TOOL]
        self._check(bool(tools) == survives, f"the tool's processes are {tools}, it {'survives' if survives else 'dies'} with its agent")

    def kill_daemon(self) -> None:
        self._down.set()
        # Its locks go with the signal, while the end of the process may take its time.
        self._killed_at = self.witness.act("kill the daemon")
        self.product.kill()
        self._moment(self._killed_at, "the daemon was killed", None, False)

    def restart_daemon(self) -> None:
        """The harness brings it back; the truth counts from its first answer."""
        self._is_back(self.product.start())

    def adopt_daemon(self) -> None:
        """A hook has started the daemon; the truth counts from its first answer."""
        self._is_back(self.product.adopt())

    def _is_back(self, answered: float) -> None:
        self._back_at = answered
        self._pauses.append((self._killed_at, answered))
        self._down.clear()
        self.witness.act("the daemon answers")

    def expect_back(self, state: str, **options: Any) -> None:
        """After a restart: this is true since its first answer, without new evidence."""
        self._moment(self._back_at, f"the daemon was back while {state}", state, state in DEMANDING, list(self._seen)[-1])
        self._look(state, self._back_at, list(self._seen)[-1], **options)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    # ---- what a scenario says

    def expect(
        self, state: str | None, on: Predicate, name: str, *, brief: bool = False, demand: bool | None = None,
        waiting_for: str | None = None, session: int = -1, within: float = EVIDENCE_SECONDS_MAX,
    ) -> None:  # fmt: skip
        """From the first evidence that matches, the session is in this state.

        `brief`: too short to be looked at. `demand`: only where the state does not tell. A `state` of `None` makes no
        statement until the next moment. `session`: which one of the scene, the newest if nothing is said. `within`:
        seconds, where the agent takes its time.
        """
        after = self.moments[-1].at if self.moments else self.started
        shown = self.witness.wait(on, after, within)
        if shown is None:
            screen = self._terminal.screen().rstrip() if self._terminal else ""
            raise SceneError(f"no evidence within {within} s that {name}\n{screen}")
        if not self._seen:
            self._find_session(self.started)
        wanted = demand if demand is not None or state is None else state in DEMANDING
        of = list(self._seen)[session]
        self._moment(shown.at, name, state, wanted, of)
        if state is not None and not brief:
            self._look(state, shown.at, of, waiting_for=waiting_for)

    def expect_new_session(self, on: Predicate) -> None:
        """A session begins, by a hook that names it. From now on the play is about this one."""
        hook = self.witness.wait(lambda e: on(e) and e.data.get("session_id") not in self._seen, self.started, EVIDENCE_SECONDS_MAX)
        if hook is None:
            raise SceneError("no other session began")
        self._seen[str(hook.data["session_id"])] = []

    def expect_never(self, state: str) -> None:
        """Not for a moment was the session in this state, by what `explain` remembers of it."""
        explain = self.product.ask("explain", f"{self.agent.name}:{next(iter(self._seen))}")
        rows = (explain.value or {}).get("evidence", [])
        self._check(bool(rows), f"`explain` ended with {explain.code} and tells nothing")
        led = [row for row in rows if row.get("to") == state]
        self._check(not led, f"it was {state}, by {led}")

    def _moment(self, at: float, name: str, state: str | None, demand: bool | None, session: str | None = None) -> None:
        self.moments.append(judge.Moment(at, name, state, demand, session))

    def _find_session(self, after: float) -> None:
        hook = self.witness.wait(lambda e: e.kind == "hook" and "session_id" in e.data, after, EVIDENCE_SECONDS_MAX)
        if hook is None:
            raise SceneError("no hook ran at all")
        self._seen[str(hook.data["session_id"])] = []

    # ---- what the product says at such a moment

    def _look(self, state: str, since: float, of: str, waiting_for: str | None = None) -> None:
        """Asks `status`, `why` and `explain` once, one second after the first evidence."""
        time.sleep(max(0.0, since + judge.STATE_SECONDS_MAX - time.time()))
        demand = state in DEMANDING
        status = self.product.ask("status")
        why = self.product.ask("why")
        explain = self.product.ask("explain", f"{self.agent.name}:{of}")
        session = self._session_of(status.value, of) or {}
        self._check(session.get("state") == state, f"status says {session.get('state')}, true is {state}")
        if waiting_for is not None:
            self._check(session.get("waiting_for") == waiting_for, f"waits for {session.get('waiting_for')!r}, not {waiting_for!r}")
        self._check_why(why, status.value, demand, session)
        self._check_explain(explain, state, of)
        time.sleep(LINGER_SECONDS)

    def _check_why(self, why: Any, status: Any, demand: bool, session: dict[str, Any]) -> None:
        value, key = why.value or {}, session.get("key")
        self._check(why.code == (0 if demand else 1), f"`why` ended with {why.code} while demand is {demand}: {value}")
        code = "demand" if demand else "no_demand"
        self._check(value.get("code") == code, f"`why` says {value}, expected the code {code}")
        self._check(value.get("awake") is demand, f"`why` says awake={value.get('awake')} while demand is {demand}")
        reasons = [r.get("session") for r in ((status or {}).get("machine") or {}).get("reasons", [])]
        self._check(reasons == ([key] if demand else []), f"the reasons to be awake are {reasons}, the session is {key}")
        if demand and key:
            words = value.get("why", "")
            self._check(session["id"][:8] in words, f"`why` does not name the session: {words!r}")

    def _check_explain(self, explain: Any, state: str, of: str) -> None:
        value = explain.value or {}
        self._check(explain.code == 0, f"`explain` ended with {explain.code}: {value}")
        self._check((value.get("session") or {}).get("id") == of, "`explain` tells of another session")
        changes = [row for row in value.get("evidence", []) if row.get("to")]
        last = changes[-1] if changes else {}
        self._check(last.get("to") == state, f"the last step that `explain` shows leads to {last.get('to')}, true is {state}")
        self._check(bool(last.get("source")) and bool(last.get("rule")), f"`explain` gives no source or rule: {last}")

    def _check(self, holds: bool, complaint: str) -> None:
        if not holds:
            name = self.moments[-1].name if self.moments else "the start"
            self.failures.append(f"{name}: {complaint}")

    @staticmethod
    def _session_of(status: Any, of: str) -> dict[str, Any] | None:
        return next((s for s in (status or {}).get("sessions", []) if s.get("id") == of), None)

    def _observe(self) -> None:
        while not self._stopping.is_set():
            if not self._down.is_set():
                try:
                    answer = self.product.status()
                except (ProductError, subprocess.TimeoutExpired) as error:
                    self.failures.append(f"status failed: {error}")
                    return
                for session, seen in list(self._seen.items()) if answer is not None else ():
                    state = (self._session_of(answer.value, session) or {}).get("state", "unknown to it")
                    seen.append(judge.Observation(answer.asked, answer.told, state))
            self._stopping.wait(OBSERVE_EVERY_SECONDS)

    # ---- the agent's process

    def _watch_agent(self, root: int) -> None:
        """Claude and OpenCode are the process that was started; the others are a program below their node wrappers."""
        below = {"codex": ["codex"], "copilot": ["copilot"], "qwen": ["node", "node"], "gemini": ["node"]}.get(self.agent.name, [])
        self._agent_pid = self._root_pid = root
        deadline = time.monotonic() + EVIDENCE_SECONDS_MAX
        while below:
            found = [pid for pid in children(self._agent_pid) if program_name(pid) == below[0]]
            if found:
                self._agent_pid = found[0]
                del below[0]
            elif time.monotonic() > deadline:
                raise SceneError(f"{self.agent.name} did not start its own program")
            else:
                time.sleep(0.01)
        self.witness.watch_exit(self._agent_pid, "agent")

    # ---- the end

    def close(self) -> None:
        """Ends everything that this scene started, judges the run, and leaves a record if something was wrong."""
        ended = time.time()
        self._stopping.set()
        if hasattr(self, "_observer"):
            self._observer.join()
        if self._terminal is not None:
            self._terminal.close()
        if self._printing is not None:
            self._printing.kill()
            self._printing.wait()
        self.agent.clean_up()
        try:
            self.product.stop()
        except ProductError as error:
            self.failures.append(str(error))
        self.witness.close()
        end_all(with_home(self.home.home))
        self._model.terminate()
        self._model.wait()
        samples = self._rig.samples(self.started, ended)
        self.failures += judge.hold_problems(self.moments, samples, self.product.daemon_pids)
        for session, seen in self._seen.items():
            self.failures += judge.state_problems(self._moments_of(session), seen, self._pauses)
        self._samples = samples
        self._write_record()

    def _moments_of(self, session: str) -> list[judge.Moment]:
        return [m for m in self.moments if m.session in (None, session)]

    def figures(self) -> str:
        """The longest disagreements, for the one line that a scenario prints."""
        states = [judge.state_lag(self._moments_of(session), seen) for session, seen in self._seen.items()]
        untaken, unreleased = judge.hold_lags(self.moments, self._samples, self.product.daemon_pids)
        return (
            f"{len(self.moments)} moments; longest wrong: state {max((lag.seconds for lag in states), default=0.0):.2f} s, "
            f"not held {untaken.seconds:.2f} s, held {unreleased.seconds:.2f} s"
        )

    def _write_record(self) -> None:
        rows: list[dict[str, Any]] = [e.brief() for e in self.witness.all()]
        rows += [{"at": m.at, "kind": "truth", "name": m.name, "state": m.state, "demand": m.demand, "session": m.session} for m in self.moments]
        previous: Any = None
        for session, shown in self._seen.items():
            for seen in shown:
                if seen.state != previous:
                    rows.append({"at": seen.told, "kind": "shown", "state": seen.state, "asked": seen.asked, "session": session})
                previous = seen.state
            previous = None
        for sample in self._samples:
            held = sorted(sample.held_by(self.product.daemon_pids))
            if held != previous:
                rows.append({"at": sample.at, "kind": "logind", "held": held})
            previous = held
        rows.sort(key=lambda row: row["at"])
        with open(self.folder / "record.jsonl", "w", encoding="utf-8") as file:
            for row in rows:
                row["t"] = round(row.pop("at") - self.started, 3)
                file.write(json.dumps(row) + "\n")

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
