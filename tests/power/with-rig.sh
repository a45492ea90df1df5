#!/usr/bin/env bash
# with-rig.sh COMMAND...   runs the command with a rig of its own and ends with the command's exit code.
# A rig that does not start is a failure.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
RUN=$(mktemp -d /tmp/watchkeeper-rig.XXXXXX)
trap '"$HERE/stop-logind.sh" "$RUN"' EXIT
exports=$("$HERE/start-logind.sh" "$RUN")
eval "$exports"
RIG_CTL=$HERE/ctl.sh "$@"
