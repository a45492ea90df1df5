#!/usr/bin/env bash
# ctl.sh COMMAND [VALUE]   turns the rig's knobs (root only; DBUS_SYSTEM_BUS_ADDRESS from start-logind.sh):
#   SetLid true|false      close or open the lid          SetAC true|false     plug or unplug mains
#   SetBattery PERCENT     set the charge                 Sleeps               list what /sys/power was told
#   ResetSleeps            forget that list               FailSleep true|false let the next sleeps fail
#   SetSleepDelay MS       before a sleep takes effect    Wake                 end a sleep with the lid shut
#   StopLogind, StartLogind   end logind as a crash would, start it again
set -euo pipefail
: "${DBUS_SYSTEM_BUS_ADDRESS:?the rig does not run: eval \"\$(tests/power/start-logind.sh)\"}"
command=${1:?a command; see the head of this file}
case $command in
SetLid | SetAC | FailSleep) type=b ;;
SetBattery) type=d ;;
SetSleepDelay) type=u ;;
*) type= ;;
esac
# shellcheck disable=SC2086 # no type, no value: two words fewer
exec busctl call org.watchkeeper.Rig /org/watchkeeper/rig org.watchkeeper.Rig "$command" ${type:+$type "${2:?a value}"}
