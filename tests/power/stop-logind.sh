#!/usr/bin/env bash
# stop-logind.sh [RUN]   stops the rig of that folder and removes the folder.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
RUN=${1:-${RIG_RUN:-/tmp/watchkeeper-rig}}
# shellcheck source=tests/power/running.sh
. "$HERE/running.sh"
RUN=$(cd "$RUN" 2>/dev/null && pwd) || exit 0 # no folder, no rig
if alive "$RUN"; then
  pid=$(cat "$RUN/rig.pid")
  kill "$pid" 2>/dev/null || true
  for ((i = 0; i < 160; i++)); do
    alive "$RUN" || break
    sleep 0.05
  done
  if alive "$RUN"; then
    # Stuck: its daemons, which have its bus in their environment, are not left behind.
    kill -9 "$pid" 2>/dev/null || true
    for file in "$RUN"/*.pid; do
      pid=$(cat "$file")
      if tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxF "DBUS_SYSTEM_BUS_ADDRESS=unix:path=$RUN/bus"; then
        kill -9 "$pid" 2>/dev/null || true
      fi
    done
  fi
fi
rm -rf "$RUN"
