#!/usr/bin/env python3
"""Plants faults in copies of the core, one at a time, and expects the simulator to find each: within 1,000 made-up schedules, or
with the recordings while something goes wrong.

    tests/sim/planted_faults.py [NAME...]

A fault is a small change of text. One that no longer applies is a failure: the list must follow the code. The copies lie in
one folder, so that only the core and the simulator are built again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS = 1000
# What a copy of the workspace needs; everything else stays where it is.
NEEDED = ["Cargo.toml", "Cargo.lock", "clippy.toml", "rustfmt.toml", "crates", "fuzz", "xtask"]

# Ways to find a fault: what the simulator is told to do, and how the lines begin that name what it found.
SCHEDULES = (["simulate", "--seeds", str(SEEDS), "--partial"], "seed ")
REPEATED = (["perturb", str(ROOT / "tests/recordings"), "--kind", "repeated"], "- ")

# name, file below crates/core/src, text, replacement, the way to find it
FAULTS: list[tuple[str, str, str, str, tuple[list[str], str]]] = [
    (
        "unknown_lid_counts_as_shut",
        "machine.rs",
        "self.state.machine.lid_closed == Known::Is(true) && self.known_external()",
        "self.state.machine.lid_closed != Known::Is(false) && self.known_external()",
        SCHEDULES,
    ),
    (
        "leases_are_no_demand",
        "machine.rs",
        "            || !self.state.machine.leases.is_empty()\n    }",
        "    }",
        SCHEDULES,
    ),
    (
        "older_life_is_heard",
        "dispatch.rs",
        "            return named < session.incarnation;",
        "            return named.0 + 1 < session.incarnation.0;",
        SCHEDULES,
    ),
    (
        "display_is_work",
        "apply.rs",
        "SignalBody::Displayed { .. } => step.recorded(Mark::DisplayedOnly),",
        "SignalBody::Displayed { .. } => self.activity(said, &Activity::ModelOutput, rules, step),",
        SCHEDULES,
    ),
    (
        "snapshot_forgets_heirs",
        "core.rs",
        "    pub(crate) bequests: Vec<Bequest>,",
        "    #[serde(skip)]\n    pub(crate) bequests: Vec<Bequest>,",
        SCHEDULES,
    ),
    (
        "repetition_counts",
        "dispatch.rs",
        "        if !self.index.deliveries.insert(entry) {\n            return true;",
        "        if !self.index.deliveries.insert(entry) {\n            return false;",
        REPEATED,
    ),
]


def copy(folder: Path) -> None:
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("target", "corpus"))
        elif source.exists():
            shutil.copy2(source, folder / name)


def found(folder: Path, target: Path, way: tuple[list[str], str]) -> tuple[bool, str]:
    environment = os.environ | {"CARGO_TARGET_DIR": str(target)}
    build = ["cargo", "build", "--quiet", "--profile", "sim", "--package", "watchkeeper-sim"]
    built = subprocess.run(build, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        return False, "it does not build:\n" + built.stderr[-2000:]
    program = target / "sim" / "watchkeeper-sim"
    arguments, beginning = way
    played = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    lines = [line for line in played.stdout.splitlines() if line.startswith(beginning)]
    return played.returncode != 0 and bool(lines), (lines or ["nothing was found"])[0]


def main() -> int:
    wanted = sys.argv[1:]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    passed = failed = 0
    # Always in the same place: what is built there is found again the next time.
    folder = target / "planted-faults"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        copy(folder)
        for fault, file, text, replacement, way in FAULTS:
            if wanted and fault not in wanted:
                continue
            path = folder / "crates/core/src" / file
            good = path.read_text()
            started = time.monotonic()
            if good.count(text) != 1:
                verdict, detail = False, f"the text stands {good.count(text)} times in {file}"
            else:
                path.write_text(good.replace(text, replacement))
                verdict, detail = found(folder, target, way)
                path.write_text(good)
            passed, failed = passed + verdict, failed + (not verdict)
            print(f"{'found ' if verdict else 'MISSED'} {fault:<24} {time.monotonic() - started:5.1f} s  {detail[:300]}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
