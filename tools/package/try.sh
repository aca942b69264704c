#!/usr/bin/env bash
# Tries the packages of package.sh, each in a clean root of each system: unpack or install, then one answer of the
# default model on the CPU. As root, with debootstrap: it fetches the systems from their mirrors.
#   tools/package/try.sh [SYSTEM]...     debian12 debian13 ubuntu24.04 (usual: all)
# Prints a line a package: system, package, seconds from the unpacking to the answer, and the answer's beginning.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
OUT=$PWD/build/package/out
ROOTS=$PWD/build/package/roots
[ "$(id -u)" = 0 ] || { echo "try.sh needs root, for chroot." >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "try.sh needs debootstrap: apt-get install debootstrap" >&2; exit 1; }

# Suite and components; the mirror is debootstrap's own of that system.
suite_of() {
  case "$1" in
    debian12) echo "bookworm main" ;;
    debian13) echo "trixie main" ;;
    ubuntu24.04) echo "noble main,universe" ;;
    *) echo "Unknown system \"$1\"; known are: debian12, debian13, ubuntu24.04." >&2; return 2 ;;
  esac
}

# A clean root of the system with the driver for a machine without a GPU, copied from one that is kept.
fresh_root() {
  local system=$1 suite components base=$ROOTS/$1.base
  read -r suite components < <(suite_of "$system")
  if [ ! -f "$base/.complete" ]; then
    rm -rf "$base" && mkdir -p "$base"
    debootstrap --variant=minbase --components="$components" "$suite" "$base" "" \
      "$(script_of "$suite")" >"$ROOTS/$system.log" 2>&1
    in_root "$base" "$driver" >>"$ROOTS/$system.log" 2>&1
    touch "$base/.complete"
  fi
  rm -rf "$ROOTS/$system" && cp -a "$base" "$ROOTS/$system"
  cp "$OUT"/doppler* "$ROOTS/$system/tmp/"
}

# debootstrap of an older system may not know a newer suite's name; all suites are set up alike.
script_of() {
  local scripts=/usr/share/debootstrap/scripts
  if [ -e "$scripts/$1" ]; then echo "$scripts/$1"; elif [ "$1" = noble ]; then echo "$scripts/jammy"; else echo "$scripts/sid"; fi
}

driver='apt-get -q update && apt-get -q -y install --no-install-recommends libvulkan1 mesa-vulkan-drivers'
# For each package: what its installation needs, and the command.
needs_tar='apt-get -q -y install --no-install-recommends xz-utils'
needs_deb=true
needs_wheel='apt-get -q -y install --no-install-recommends python3-venv'
install_tar='tar -xJf /tmp/doppler-*.tar.xz -C /opt && ln -s /opt/doppler-*/bin/doppler /usr/local/bin/doppler'
install_deb='apt-get -q -y install --no-install-recommends /tmp/doppler_*.deb'
install_wheel='python3 -m venv /opt/venv && /opt/venv/bin/pip -q install --no-index /tmp/doppler_webgpu-*.whl && ln -s /opt/venv/bin/doppler /usr/local/bin/doppler'

in_root() { chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root DEBIAN_FRONTEND=noninteractive bash -c "$2"; }

status=0
[ $# -gt 0 ] || set -- debian12 debian13 ubuntu24.04
for system in "$@"; do suite_of "$system" >/dev/null; done
for system in "$@"; do
  for package in tar deb wheel; do
    fresh_root "$system"
    root=$ROOTS/$system
    mount --bind /proc "$root/proc"
    trap 'umount "$root/proc" 2>/dev/null || true' EXIT
    log=$ROOTS/$system.$package.log
    install=install_$package needs=needs_$package
    if in_root "$root" "${!needs}" >"$log" 2>&1; then
      begin=$(date +%s.%N)
      if in_root "$root" "${!install}" >>"$log" 2>&1 &&
        answer=$(in_root "$root" 'cd / && doppler run "The fox and the crow" -n 20 --seed 3' 2>>"$log"); then
        printf '%s %s: %.1f s: %s\n' "$system" "$package" "$(awk "BEGIN { print $(date +%s.%N) - $begin }")" "${answer:0:60}"
      else
        printf '%s %s: FAILED, see %s\n' "$system" "$package" "$log"
        status=1
      fi
    else
      printf '%s %s: its packages could not be installed, see %s\n' "$system" "$package" "$log"
      status=1
    fi
    umount "$root/proc"
    trap - EXIT
    rm -rf "$root"
  done
done
exit $status
