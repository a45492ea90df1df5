#!/usr/bin/env bash
# Runs inside the mount namespace that start-logind.sh makes: lays out what the daemons will read, then becomes the rig.
set -euo pipefail
for folder in /run/systemd /run/udev /etc/polkit-1/rules.d; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 rig "$folder"
done
# logind finds the lid through udev's database: character device 13:64, tagged as a power switch.
mkdir -p /run/systemd/logind.conf.d /run/udev/tags/power-switch /run/udev/data
: >/run/udev/tags/power-switch/c13:64
printf 'I:1\nE:ID_INPUT=1\nE:ID_INPUT_SWITCH=1\nG:power-switch\nQ:power-switch\nV:1\n' >/run/udev/data/c13:64
cat >/run/systemd/logind.conf.d/rig.conf <<X
[Login]
HoldoffTimeoutSec=0
NAutoVTs=0
ReserveVT=0
InhibitDelayMaxSec=${RIG_DELAY_MAX:-2}
${RIG_LOGIND_CONF:-}
X
# rig-allowed may what a person at the screen may; rig-denied has no session, so polkit's defaults refuse it.
cat >/etc/polkit-1/rules.d/10-rig.rules <<'X'
polkit.addRule(function(action, subject) {
  if (subject.user == "rig-allowed" && action.id.indexOf("org.freedesktop.login1.") == 0 && action.id.indexOf("ignore-inhibit") < 0)
    return polkit.Result.YES;
});
X
echo $$ >"$RIG_RUN/rig.pid"
exec umockdev-wrapper /usr/bin/python3 "$RIG_HERE/rig/rig.py"
