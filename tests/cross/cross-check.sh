#!/usr/bin/env bash
# Build and test this Cargo workspace for Windows (run under Wine) and check it for macOS, on Debian 12 x86_64.
#
#   cross-check.sh windows-test   [nextest/cargo-test args]   x86_64-pc-windows-gnu, tests run under Wine
#   cross-check.sh windows-clippy [cargo-clippy args]         clippy --all-targets for x86_64-pc-windows-gnu
#   cross-check.sh macos-check    [cargo-check args]          cargo check --all-targets for aarch64-apple-darwin
#   cross-check.sh macos-clippy   [cargo-clippy args]
#   cross-check.sh macos-link     [cargo-build args]          links with zig and empty framework stubs (not run)
#   cross-check.sh msvc-check     [cargo-check args]          cargo check for x86_64-pc-windows-msvc
#   cross-check.sh setup-windows | setup-macos | env | clean
#
# The compiler is Debian's rustc-web, unpacked below $WK_CROSS_HOME (never installed, so rustup's toolchain and /usr/bin
# stay as they are). std for the other targets is built once from rust-web-src with build-std and laid in that copy's
# sysroot, so that later builds are plain stable cargo: no -Z flag, no RUSTC_BOOTSTRAP.
set -euo pipefail
: "${WK_CROSS_HOME:=${XDG_CACHE_HOME:-$HOME/.cache}/watchkeeper-cross}"
: "${WK_CROSS_MAC_TARGET:=aarch64-apple-darwin}" # or x86_64-apple-darwin
WIN=x86_64-pc-windows-gnu MSVC=x86_64-pc-windows-msvc
H=$WK_CROSS_HOME TC=$WK_CROSS_HOME/tc/usr
say() { echo "cross-check: $*" >&2; }

apt_need() { # install the named packages if missing
  local miss=() p
  for p; do dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || miss+=("$p"); done
  [ ${#miss[@]} = 0 ] && return
  say "apt-get install ${miss[*]}"
  apt_update
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${miss[@]}" >"$H/apt.log" 2>&1 || { tail -20 "$H/apt.log" >&2; return 1; }
}
apt_update() { [ -n "${apt_updated:-}" ] || { apt-get update -qq; apt_updated=1; }; }

setup_rust() { # unpack rustc, cargo, clippy and std's source; about 120 MB fetched, 400 MB on disk
  [ -e "$H/tc/.done" ] && return
  apt_update
  local ver mm d deps
  ver=$(apt-cache policy rustc-web | awk '/Candidate:/{print $2}')
  case $ver in '' | '(none)') say "no rustc-web here (needs bookworm-security)"; return 1 ;; esac
  mm=$(echo "$ver" | cut -d. -f1,2)
  say "unpacking rustc-web $ver into $H/tc"
  deps=$(apt-cache show "libstd-rust-web-$mm=$ver" "cargo-web=$ver" | sed -n 's/^Depends: //p' | tr ',' '\n' | awk '{print $1}' | grep -E '^lib(llvm|git2|ssh2|ssl|curl|sqlite3)' | sort -u)
  # shellcheck disable=SC2086
  apt_need $deps
  rm -rf "$H/tc" "$H/debs"; mkdir -p "$H/tc" "$H/debs"
  (cd "$H/debs" && apt-get download -qq "rustc-web=$ver" "cargo-web=$ver" "rust-web-clippy=$ver" "libstd-rust-web-$mm=$ver" "libstd-rust-web-dev=$ver" "rust-web-src=$ver" 2>/dev/null)
  for d in "$H"/debs/*.deb; do
    case $d in
    */rust-web-src_*) dpkg-deb --fsys-tarfile "$d" | tar -x -C "$H/tc" --wildcards './usr/lib/rustlib/src/*' './usr/src/rustc-*/library' ;;
    *) dpkg-deb -x "$d" "$H/tc" ;;
    esac
  done
  rm -rf "$H/debs" "$H/tc/usr/share"
  use_rust && rustc -vV >&2
  touch "$H/tc/.done"
}
use_rust() { # only this process and its children see that toolchain
  export PATH="$TC/bin:$PATH" LD_LIBRARY_PATH="$TC/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  unset RUSTC RUSTDOC RUSTC_WRAPPER RUSTUP_TOOLCHAIN CARGO CARGO_BUILD_TARGET 2>/dev/null || true
}

# setup_std TARGET check|build: std for TARGET into the sysroot. check makes metadata only: enough for check and clippy
setup_std() {
  local t=$1 mode=$2 d=$TC/lib/rustlib/$1/lib b=$H/std-$1
  [ -e "$d/.built-build" ] && return
  [ "$mode" = check ] && [ -e "$d/.built-check" ] && return
  say "building std for $t ($mode); once"
  rm -rf "$b" "$d"; mkdir -p "$b/src" "$d"; : >"$b/src/lib.rs"
  rm -rf "${CARGO_TARGET_DIR:?}/$t" "$CARGO_TARGET_DIR-maclink/$t" # built against an older std, which cargo would not notice
  printf '[package]\nname = "crossstd"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n' >"$b/Cargo.toml"
  local prof=release ext=rlib
  [ "$mode" = check ] && prof=dev ext=rmeta # nothing to optimise: quicker
  (cd "$b" && env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_TARGET_DIR RUSTC_BOOTSTRAP=1 \
    cargo "$mode" -q --profile $prof -Z build-std=std,panic_abort,test --target "$t" --target-dir "$b/target")
  cp "$b/target/$t/"*"/deps/"*".$ext" "$d/"; rm -f "$d"/libcrossstd-*; rm -rf "$b"
  touch "$d/.built-$mode"
}

setup_wine() {
  apt_need wine64
  mkdir -p "$H/bin"
  cat >"$H/bin/xwine" <<E
#!/bin/sh
# cargo's runner for Windows programs
export WINEPREFIX='$H/wineprefix' WINEDEBUG="\${WINEDEBUG:--all}" WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe=" WK_CROSS_WINE=1
unset LD_LIBRARY_PATH
exec /usr/lib/wine/wine64 "\$@"
E
  chmod +x "$H/bin/xwine"
  [ -e "$H/wineprefix/.done" ] && return
  say "making a Wine prefix in $H/wineprefix; once"
  # On a busy machine a program of Wine 8 that starts while the prefix is being filled can miss its libraries and end it all.
  local attempt
  for attempt in 1 2 3; do
    rm -rf "$H/wineprefix"
    if "$H/bin/xwine" wineboot.exe -i >"$H/wineboot.log" 2>&1 </dev/null; then attempt=made; fi
    wineserver -w
    [ "$attempt" = made ] && break
    say "attempt $attempt to make the prefix failed: $(tail -n 1 "$H/wineboot.log")"
  done
  [ "$attempt" = made ] || return 1
  # Wine 8 has no bcryptprimitives.dll, which Rust's std needs for its random numbers
  cat >"$H/bcryptprimitives.c" <<'E'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG); /* RtlGenRandom */
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) {
  while (n) { ULONG k = n > 0x40000000 ? 0x40000000 : (ULONG)n; if (!SystemFunction036(p, k)) return FALSE; p += k; n -= k; }
  return TRUE;
}
E
  x86_64-w64-mingw32-gcc -O2 -s -shared -o "$H/wineprefix/drive_c/windows/system32/bcryptprimitives.dll" "$H/bcryptprimitives.c" -ladvapi32
  rm -rf "$H/wineprefix/drive_c/windows/syswow64" # 32-bit programs: not used here, 200 MB
  touch "$H/wineprefix/.done"
}
wineserver() { WINEPREFIX="$H/wineprefix" /usr/lib/wine/wineserver64 "$@"; }

fake_cc() { # for check and clippy nothing is linked: C sources need no compiler for the target, only an object file
  mkdir -p "$H/bin"
  cat >"$H/bin/fake-cc" <<'E'
#!/bin/sh
# writes an empty object where a C compiler would write one
o=; for a; do case $p in -o) o=$a;; esac; case $a in -Fo*) o=${a#-Fo};; /Fo*) o=${a#/Fo};; esac; p=$a; done
[ -z "$o" ] || : >"$o"
E
  cat >"$H/bin/fake-ar" <<'E'
#!/bin/sh
for a; do case $a in *.a|*.lib) a=${a#-OUT:}; a=${a#/OUT:}; printf '!<arch>\n' >"${a#-out:}"; break;; esac; done
E
  chmod +x "$H/bin/fake-cc" "$H/bin/fake-ar"
  local u=${1//-/_}
  export "CC_$u=$H/bin/fake-cc" "CXX_$u=$H/bin/fake-cc" "AR_$u=$H/bin/fake-ar"
}
setup_zig() { # zig's C compiler and linker for macOS, with empty stubs for what only Apple's SDK has
  local arch=${WK_CROSS_MAC_TARGET%%-*} z=$H/zig f
  if ! "$z/bin/python" -m ziglang version >/dev/null 2>&1; then
    say "pip install ziglang into $z"
    python3 -m venv "$z"; "$z/bin/pip" install -q --disable-pip-version-check "ziglang==${WK_CROSS_ZIG:-0.17.1}"
  fi
  mkdir -p "$H/bin" "$H/macstub"
  for f in IOKit CoreFoundation Foundation Security SystemConfiguration AppKit CoreServices; do
    mkdir -p "$H/macstub/$f.framework"; tbd "/System/Library/Frameworks/$f.framework/Versions/A/$f" >"$H/macstub/$f.framework/$f.tbd"
  done
  for f in objc iconv; do tbd "/usr/lib/lib$f.dylib" >"$H/macstub/lib$f.tbd"; done
  cat >"$H/bin/mac-cc-$arch" <<E
#!/bin/sh
# drop clang's spelling of the target; zig has its own
for a do shift; case \$a in --target=*|-arch|arm64|x86_64|-mmacosx-version-min=*) ;; *) set -- "\$@" "\$a";; esac; done
exec '$z/bin/python' -m ziglang cc -target $arch-macos "\$@"
E
  printf '#!/bin/sh\nexec "%s" -F"%s" -L"%s" -Wl,-undefined,dynamic_lookup "$@"\n' "$H/bin/mac-cc-$arch" "$H/macstub" "$H/macstub" >"$H/bin/mac-ld-$arch"
  printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$z/bin/python" >"$H/bin/mac-ar"
  chmod +x "$H/bin"/mac-*
  local u=${WK_CROSS_MAC_TARGET//-/_}
  export "CC_$u=$H/bin/mac-cc-$arch" "AR_$u=$H/bin/mac-ar" "CARGO_TARGET_${u^^}_LINKER=$H/bin/mac-ld-$arch"
}
tbd() { printf -- "--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\ninstall-name: '%s'\ncurrent-version: 1\nexports:\n  - targets: [ x86_64-macos, arm64-macos ]\n    symbols: [ ]\n...\n" "$1"; }

mkdir -p "$H"
exec 9>"$H/.lock"
locked() { flock 9; "$@"; flock -u 9; } # set up by one process at a time
export CARGO_TARGET_DIR=${WK_CROSS_TARGET_DIR:-$H/target}
: "${CARGO_PROFILE_DEV_DEBUG:=line-tables-only}"; export CARGO_PROFILE_DEV_DEBUG # smaller and quicker to link
# std itself calls mingw's dlltool, so that comes first
win() { setup_rust; use_rust; apt_need gcc-mingw-w64-x86-64-posix; setup_std $WIN build; setup_wine; export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$H/bin/xwine CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc; }
mac() { setup_rust; use_rust; setup_std "$WK_CROSS_MAC_TARGET" check; fake_cc "$WK_CROSS_MAC_TARGET"; }
maclink() { setup_rust; use_rust; setup_std "$WK_CROSS_MAC_TARGET" build; setup_zig; }
msvc() { setup_rust; use_rust; setup_std $MSVC check; fake_cc $MSVC; }

cmd=${1:-}; shift || true
case $cmd in
setup-windows) locked win ;;
setup-macos) locked mac ;;
windows-test)
  locked win
  exec 8>"$H/.wine-lock"; flock 8 # one test run at a time in our Wine prefix: its end stops that Wine
  trap 'wineserver -k 9>&- 8>&- 2>/dev/null || true' EXIT # whatever the tests left in our prefix
  # One Wine server and its services for all tests, started here with no pipe of the test runner's: those that a test
  # started would keep its pipe open, and nextest would wait for them for ever. It saves their start in each test, too.
  wineserver -p </dev/null >/dev/null 2>&1 9>&- 8>&- || true
  timeout 60 "$H/bin/xwine" cmd.exe /c exit </dev/null >/dev/null 2>&1 9>&- 8>&-
  if cargo nextest --version >/dev/null 2>&1 9>&- 8>&-; then cargo nextest run --target $WIN "$@" 9>&- 8>&-; else cargo test --target $WIN "$@" 9>&- 8>&-; fi ;;
windows-clippy) locked win; cargo clippy --all-targets --target $WIN "$@" 9>&- ;;
windows-run) locked win; exec "$H/bin/xwine" "$@" 9>&- ;;
macos-check) locked mac; cargo check --all-targets --target "$WK_CROSS_MAC_TARGET" "$@" 9>&- ;;
macos-clippy) locked mac; cargo clippy --all-targets --target "$WK_CROSS_MAC_TARGET" "$@" 9>&- ;;
macos-link) locked maclink; CARGO_TARGET_DIR+=-maclink cargo build --all-targets --target "$WK_CROSS_MAC_TARGET" "$@" 9>&- ;;
msvc-check) locked msvc; cargo check --all-targets --target $MSVC "$@" 9>&- ;;
env) locked setup_rust; use_rust; printf 'export PATH=%q LD_LIBRARY_PATH=%q CARGO_TARGET_DIR=%q\n' "$PATH" "$LD_LIBRARY_PATH" "$CARGO_TARGET_DIR" ;;
clean) rm -rf "$H" ;;
*) sed -n '2,/^set -/{/^#/p}' "$0"; exit 2 ;;
esac
