#!/usr/bin/env bash
# stop-logind.sh [RUN]   stops the rig of that folder and removes the folder.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
RUN=${1:-${RIG_RUN:-/tmp/watchkeeper-rig}}
# shellcheck source=tests/power/running.sh
. "$HERE/running.sh"
if running "$RUN"; then
  pid=$(cat "$RUN/rig.pid")
  kill "$pid" 2>/dev/null || true
  for ((i = 0; i < 160; i++)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  if running "$RUN"; then kill -9 "$pid" 2>/dev/null || true; fi
fi
rm -rf "$RUN"
