#!/usr/bin/env python3
"""Installs the agents that the tests drive, in the versions that they were written against.

They land below `$WATCHKEEPER_TEST_CACHE` (default `~/.cache/watchkeeper-tests`), one folder a version, so that a second
run finds them and a new version never mixes with an old one. A folder counts only when the installation was finished.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

INSTALL_SECONDS_MAX = 900


@dataclass(frozen=True)
class Package:
    command: str
    package: str
    version: str

    @property
    def folder(self) -> Path:
        return cache_dir() / "npm" / f"{self.command}-{self.version}"

    @property
    def binary(self) -> Path:
        return self.folder / "node_modules" / ".bin" / self.command


CLAUDE = Package("claude", "@anthropic-ai/claude-code", "2.1.332")
CODEX = Package("codex", "@openai/codex", "0.171.0")
OPENCODE = Package("opencode", "opencode-ai", "1.18.33")
COPILOT = Package("copilot", "@github/copilot", "1.0.102")
QWEN = Package("qwen", "@qwen-code/qwen-code", "0.24.4")
GEMINI = Package("gemini", "@google/gemini-cli", "0.61.0")
AGENTS = (CLAUDE, CODEX, OPENCODE, COPILOT, QWEN, GEMINI)
NODE_MAJOR_MIN = 20
NODE_CPUS = {"x86_64": "x64", "aarch64": "arm64"}
NODE_VERSION = "22.22.0"


class InstallError(Exception):
    """Says what is missing and what to run."""


def cache_dir() -> Path:
    given = os.environ.get("WATCHKEEPER_TEST_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "watchkeeper-tests"


def check_tools() -> None:
    missing = [tool for tool in ("node", "npm", "tmux", "git") if shutil.which(tool) is None]
    if missing:
        names = ", ".join(missing)
        raise InstallError(f"{names} not found; on Debian: apt-get install -y nodejs npm tmux git")


def node_version() -> str:
    return subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def provide_node() -> None:
    """Puts a node that the agents run with first in the search path, where the system's own is too old (Debian 12 has 18)."""
    found = node_version()
    if int(found.removeprefix("v").split(".")[0]) >= NODE_MAJOR_MIN:
        return
    cpu = NODE_CPUS.get(platform.machine())
    if cpu is None:
        raise InstallError(f"node is {found}; the agents need {NODE_MAJOR_MIN} or newer")
    node = Package("node", f"node-linux-{cpu}", NODE_VERSION)
    install(node)
    os.environ["PATH"] = f"{node.binary.parent}{os.pathsep}{os.environ['PATH']}"


def is_installed(package: Package) -> bool:
    manifest = package.folder / "node_modules" / package.package / "package.json"
    try:
        found = json.loads(manifest.read_text())["version"]
    except (OSError, ValueError, KeyError):
        return False
    return found == package.version and package.binary.exists() and (package.folder / "finished").exists()


def install(package: Package) -> None:
    """Installs the package unless it is there; two runs at once wait for each other."""
    package.folder.mkdir(parents=True, exist_ok=True)
    with open(package.folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_installed(package):
            return
        (package.folder / "package.json").write_text('{"private": true}\n')
        log = package.folder / "install.log"
        command = ["npm", "install", "--no-audit", "--no-fund", f"{package.package}@{package.version}"]
        with open(log, "wb") as output:
            result = subprocess.run(
                command, cwd=package.folder, stdout=output, stderr=subprocess.STDOUT, timeout=INSTALL_SECONDS_MAX, check=False
            )
        if result.returncode != 0 or not package.binary.exists():
            raise InstallError(f"'{' '.join(command)}' failed with status {result.returncode}; its output is in {log}")
        (package.folder / "finished").touch()


def install_agents(commands: Collection[str]) -> None:
    """Those of the agents that have these commands."""
    check_tools()
    provide_node()
    for package in AGENTS:
        if package.command in commands:
            install(package)


if __name__ == "__main__":
    try:
        install_agents([each.command for each in AGENTS])
    except InstallError as error:
        sys.exit(f"the agents are not installed: {error}")
    for each in AGENTS:
        print(f"{each.command} {each.version}: {each.binary}")
