# Distribution packages, by the rows `package` of tools/dependencies. Debian 12 or newer, Ubuntu 24.04 or newer.

# missing_packages GROUP...: the names, on one line, of packages in these groups that are not installed.
missing_packages() {
  local missing="" group name row_group _
  for group in "$@"; do
    while IFS='|' read -r name row_group _; do
      [ "$row_group" = "$group" ] || continue
      [ "$(dpkg-query -W -f '${Status}' "$name" 2>/dev/null)" = "install ok installed" ] || missing+=" $name"
    done < <(rows package)
  done
  echo "${missing# }"
}

# unknown_packages NAME...: those that no package list of this machine offers.
unknown_packages() {
  local unknown="" name
  for name in "$@"; do
    apt-cache show "$name" >/dev/null 2>&1 || unknown+=" $name"
  done
  echo "${unknown# }"
}

install_packages() {
  local missing unknown prefix
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    fail "This script knows Debian and Ubuntu only. Elsewhere install what tools/dependencies lists under \"package\", then run: tools/setup wheels"
  missing=$(missing_packages "$@")
  if [ -z "$missing" ]; then
    step "packages: all installed"
    return
  fi
  may_install "$missing"
  prefix=$(root_prefix) ||
    fail "These packages are missing and need root to install. Run this, then start again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing"
  step "packages: installing $missing"
  # A mirror may be slow or drop a connection: three tries a file. The words of apt are read, so they are English.
  local apt="$prefix env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0"
  # shellcheck disable=SC2086
  when_unlocked $apt update || step "packages: the package lists could not all be refreshed; trying with the old ones"
  # shellcheck disable=SC2086
  unknown=$(unknown_packages $missing)
  # shellcheck source=/dev/null
  [ -z "$unknown" ] ||
    fail "The package lists of this machine ($(. /etc/os-release && echo "$PRETTY_NAME")) do not offer: $unknown. Nothing was installed."
  # shellcheck disable=SC2086
  when_unlocked $apt install --no-install-recommends $missing || {
    tail -n 20 "$(package_log)" >&2
    fail "Installing packages failed (the whole output: $(package_log)). Try this by hand:
  ${prefix:+$prefix }apt-get install --no-install-recommends $missing"
  }
}

# when_unlocked COMMAND...: runs a command of apt, its output in the log. While another program holds a lock of apt or
# dpkg, the command is tried again.
when_unlocked() {
  local pause=${DOPPLER_LOCK_PAUSE:-5} left=${DOPPLER_LOCK_TRIES:-180} log has_said=""
  log=$(package_log)
  until "$@" >"$log" 2>&1; do
    grep -q 'Could not get lock\|Unable to lock\|Unable to acquire the dpkg' "$log" || return 1
    [ "$left" -gt 0 ] || return 1
    left=$((left - 1))
    [ -n "$has_said" ] || step "packages: waiting for another program that holds the lock of apt"
    has_said=yes
    sleep "$pause"
  done
}

package_log() {
  mkdir -p "$DEPS_DIR"
  echo "$DEPS_DIR/packages.log"
}
