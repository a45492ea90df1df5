#!/usr/bin/python3
"""The end-to-end test: real agents, a scripted model, the product's own hooks, the real logind.

    tests/agents/run.py [--core | --full] [--only PART] [--jobs N] [--keep] [--list]

Each scenario gets a home, an instance of the product and a model server of its own, and prints one line. The last line
counts; the exit status is 0 only if every scenario passed. A failed scenario leaves its folder, with `record.jsonl`: what
was true, what was shown, what logind held, in the order of time.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import install_agents
import product
from logind import Rig, RigError
from scenarios import SCENARIOS, Scenario
from scene import Scene


@dataclass(frozen=True)
class Result:
    scenario: Scenario
    seconds: float
    figures: str
    failures: list[str]
    folder: Path


def play(scenario: Scenario, folder: Path, rig: Rig, programs: Path, keep: bool) -> Result:
    started = time.monotonic()
    place = folder / scenario.name.replace("/", "-")
    failures: list[str] = []
    figures = "not played"
    scene = None
    try:
        scene = Scene(place, rig, programs, scenario.agent, scenario.codex_daemon)
        scenario.play(scene)
    except Exception as error:  # noqa: BLE001 - whatever it is, the scenario has failed and the next one is played
        where = traceback.extract_tb(error.__traceback__)[-1]
        failures.append(f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})")
    finally:
        if scene is not None:
            try:
                scene.close()
                figures = scene.figures()
                failures += scene.failures
            except Exception:  # noqa: BLE001
                failures.append(f"closing failed: {traceback.format_exc()}")
            if not failures and not keep:
                scene.discard()
    return Result(scenario, time.monotonic() - started, figures, failures, place)


def report(result: Result) -> None:
    verdict = "FAILED" if result.failures else "passed"
    print(f"{verdict}  {result.scenario.name:<36} {result.seconds:5.1f} s  {result.figures}", flush=True)
    for failure in result.failures:
        print("        " + failure.replace("\n", "\n        "), flush=True)
    if result.failures:
        print(f"        record: {result.folder / 'record.jsonl'}", flush=True)


def choose(arguments: argparse.Namespace) -> list[Scenario]:
    chosen = [s for s in SCENARIOS if s.core or not arguments.core]
    return [s for s in chosen if arguments.only is None or arguments.only in s.name]


def main() -> int:
    parser = argparse.ArgumentParser(description="Real agents against the product and the real logind.")
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--core", action="store_true", help="only what has to hold in every change")
    depth.add_argument("--full", action="store_true", help="everything (the default)")
    parser.add_argument("--only", metavar="PART", help="scenarios whose name contains PART")
    parser.add_argument("--jobs", type=int, default=1, help="scenarios at a time (default 1)")
    parser.add_argument("--keep", action="store_true", help="keep the folders of passed scenarios too")
    parser.add_argument("--list", action="store_true", help="name the scenarios and end")
    arguments = parser.parse_args()
    chosen = choose(arguments)
    if not chosen:
        print("no scenario has that name; --list shows all", file=sys.stderr)
        return 2
    if arguments.list:
        for scenario in chosen:
            print(f"{scenario.name}{'' if scenario.core else '  (only with --full)'}")
        return 0
    try:
        install_agents.install_agents({scenario.agent for scenario in chosen})
        programs = product.build()
    except (install_agents.InstallError, product.ProductError) as error:
        print(f"cannot begin: {error}", file=sys.stderr)
        return 1
    folder = Path(tempfile.mkdtemp(prefix="wk-agents-"))
    folder.chmod(0o755)  # polkitd gives up root before it connects to the rig's bus
    try:
        rig = Rig(folder)
    except RigError as error:
        print(f"the power rig did not start: {error}", file=sys.stderr)
        return 1
    failed = 0
    try:
        with ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
            plays = [pool.submit(play, s, folder, rig, programs, arguments.keep) for s in chosen]
            try:
                for done in as_completed(plays):
                    report(done.result())
                    failed += bool(done.result().failures)
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)  # what plays now comes to its end and cleans up
                raise
    finally:
        rig.close()
    if not failed and not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Started in the background of a shell, all of this would ignore it, and an agent could not be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
