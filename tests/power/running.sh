# shellcheck shell=bash
# Sourced: running RUN   whether the rig of that folder runs. The pid alone is not believed.
running() {
  local pid
  [ -f "$1/ready" ] && [ -f "$1/rig.pid" ] && pid=$(cat "$1/rig.pid") &&
    tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -q '/rig/rig\.py$'
}
