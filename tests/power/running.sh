# shellcheck shell=bash
# Sourced: alive RUN     whether the rig of that folder is there, ready or not. The pid alone is not believed.
#          running RUN   whether it is ready.
alive() {
  local pid
  [ -f "$1/rig.pid" ] && pid=$(cat "$1/rig.pid") &&
    tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxF "RIG_RUN=$1"
}
running() { [ -f "$1/ready" ] && alive "$1"; }
