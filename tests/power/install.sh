#!/usr/bin/env bash
# install.sh   installs by apt what the rig needs and is not there, and makes its users; says what cannot be had and fails.
set -euo pipefail
PYTHON=/usr/bin/python3 # Debian's own: its bindings for D-Bus and GLib belong to no other Python

missing() {
  local pair
  for pair in dbus-daemon:dbus busctl:systemd umockdev-wrapper:umockdev upower:upower unshare:util-linux setpriv:util-linux useradd:passwd; do
    command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
  done
  [ -x /usr/lib/polkit-1/polkitd ] || echo polkitd
  [ -x /lib/systemd/systemd-logind ] || echo systemd
  [ -x "$PYTHON" ] || echo python3
  "$PYTHON" -c 'import dbus, gi; gi.require_version("UMockdev", "1.0"); from gi.repository import UMockdev' 2>/dev/null ||
    printf '%s\n' python3-dbus python3-gi gir1.2-umockdev-1.0
}

# Two users, with and without polkit's consent; see inside.sh.
make_users() {
  local user why
  for user in rig-allowed:64901 rig-denied:64902; do
    id "${user%:*}" >/dev/null 2>&1 && continue
    why=$(useradd --no-create-home --no-user-group --shell /bin/bash --uid "${user#*:}" "${user%:*}" 2>&1) ||
      { echo "power rig: cannot make the user ${user%:*}: $why" >&2; exit 1; }
  done
}

mapfile -t packages < <(missing | sort -u)
[ ${#packages[@]} = 0 ] && { make_users; exit 0; }
[ "$(id -u)" = 0 ] || { echo "power rig: as root, run: apt-get install ${packages[*]}" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "power rig: needs ${packages[*]}, and there is no apt-get here" >&2; exit 1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "power rig: apt-get could not install ${packages[*]}" >&2
  exit 1
fi
mapfile -t packages < <(missing | sort -u)
[ ${#packages[@]} = 0 ] || { echo "power rig: still missing after the installation: ${packages[*]}" >&2; exit 1; }
make_users
