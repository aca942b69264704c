# Shared by the steps of tools/setup: messages, rows of tools/dependencies, commands that need root.

step() { printf 'setup: %s\n' "$*"; }

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# rows KIND: the rows of tools/dependencies of that kind, without the kind, columns separated by a bare |.
rows() {
  sed -n "s/^$1 *| *//p" tools/dependencies | sed 's/ *| */|/g; s/ *$//'
}

# The prefix of commands that change the system: none for root, sudo otherwise. sudo may ask for a password only if
# somebody can answer.
root_prefix() {
  if [ "$(id -u)" = 0 ]; then
    echo ""
  elif ! command -v sudo >/dev/null; then
    return 1
  elif [ -t 0 ]; then
    echo "sudo"
  else
    sudo -n true 2>/dev/null && echo "sudo -n"
  fi
}

# True if the kernel shows a GPU. Without one Doppler runs on the CPU by Mesa's lavapipe.
has_gpu() { compgen -G '/dev/dri/renderD*' >/dev/null || compgen -G '/dev/nvidia[0-9]*' >/dev/null; }

# The groups of packages that `doppler run` needs on this machine.
run_groups() { if has_gpu; then echo build; else echo build mesa-cpu; fi; }

# DOPPLER_SETUP=0: may_install WHAT ends with a sentence that says what is missing.
may_install() {
  [ "${DOPPLER_SETUP:-1}" != 0 ] ||
    fail "DOPPLER_SETUP=0 forbids installing, and this is missing: $1."
}
