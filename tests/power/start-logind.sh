#!/usr/bin/env bash
# start-logind.sh [RUN]   starts the rig in the folder RUN (made if need be) unless it runs there already, and prints
# the exports for its bus:   eval "$(tests/power/start-logind.sh)"
# Real systemd-logind, polkitd and upowerd on a private bus, over a simulated lid, mains, battery and /sys/power.
#   RIG_DELAY_MAX=SECONDS   logind's InhibitDelayMaxSec (2)
#   RIG_LOGIND_CONF=LINES   more lines for logind.conf, e.g. HandleLidSwitch=ignore
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
RUN=${1:-${RIG_RUN:-/tmp/watchkeeper-rig}}
START_LIMIT_S=30
INSTALL_LOCK=/run/watchkeeper-rig.lock

fail() { echo "power rig: $*" >&2; exit 1; }
[ "$(uname)" = Linux ] || fail "needs Linux"
[ "$(id -u)" = 0 ] || fail "needs root, for a mount namespace of its own"
command -v unshare >/dev/null || fail "needs util-linux (unshare)"
why=$(unshare --mount --propagation private true 2>&1) || fail "cannot make a mount namespace here, which needs CAP_SYS_ADMIN: $why"

# shellcheck source=tests/power/running.sh
. "$HERE/running.sh"
if ! running "$RUN"; then
  # One rig at a time installs what is missing.
  flock "$INSTALL_LOCK" "$HERE/install.sh"
  "$HERE/stop-logind.sh" "$RUN" # one that never got ready; removes the folder
  mkdir -p "$RUN"
  RUN=$(cd "$RUN" && pwd)
  chmod 755 "$RUN"
  # In a mount namespace of its own: nothing of the host's /run or /etc is touched.
  RIG_RUN=$RUN RIG_HERE=$HERE setsid unshare --mount --propagation private bash "$HERE/rig/inside.sh" >"$RUN/rig.log" 2>&1 </dev/null &
  starter=$!
  for ((i = 0; i < START_LIMIT_S * 20; i++)); do
    [ -f "$RUN/ready" ] && break
    kill -0 "$starter" 2>/dev/null || break
    sleep 0.05
  done
  if ! [ -f "$RUN/ready" ]; then
    tail -n 20 "$RUN"/*.log >&2
    "$HERE/stop-logind.sh" "$RUN"
    [ "$i" -lt $((START_LIMIT_S * 20)) ] && fail "ended while starting; its logs are above"
    fail "was not ready within $START_LIMIT_S s; its logs are above"
  fi
fi
printf "export DBUS_SYSTEM_BUS_ADDRESS='%s' RIG_RUN='%s'\n" "$(cat "$RUN/ready")" "$(cd "$RUN" && pwd)"
