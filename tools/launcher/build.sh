# The launcher's slow path: setup, configure, build, with one line of progress and a log for when it fails.
# Expects ROOT, BUILD and STAMP (see ./doppler).

LOG=$ROOT/build/launcher.log

# build [TARGET]: everything without a target. Launchers started at the same time wait for each other.
build() {
  mkdir -p "$BUILD"
  local started
  started=$(mktemp "$BUILD/started.XXXXXX")
  (
    flock 9 # a step that fails has said why; set -e does not reach in here
    "$ROOT/tools/setup" && configure && compile "${1:-all}"
  ) 9>"$ROOT/build/launcher.lock" || {
    rm -f "$started"
    exit 1
  }
  # Sources saved while the build ran are newer than the stamp and are built next time.
  mv "$started" "$STAMP"
}

configure() {
  [ ! -f "$BUILD/build.ninja" ] || return 0
  printf 'build: configuring\n'
  local options=()
  ! command -v ccache >/dev/null ||
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  (cd "$ROOT" && cmake --preset release "${options[@]}") >"$LOG" 2>&1 || {
    rm -f "$BUILD/build.ninja"
    build_failed configuring
  }
}

compile() {
  cmake --build "$BUILD" --target "$1" --parallel "$(build_jobs)" 2>&1 | tee "$LOG" | show_progress ||
    build_failed building
}

# A compiler process takes up to about 1.5 GB: fewer at once on a machine with little memory.
build_jobs() {
  local cores memory_jobs
  cores=$(nproc)
  memory_jobs=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "$memory_jobs" -ge 1 ] || memory_jobs=1
  echo $((cores < memory_jobs ? cores : memory_jobs))
}

# Ninja's "[12/345] ..." as one line that moves, or a line every tenth where nobody watches.
show_progress() {
  local tty=0
  [ -t 2 ] && tty=1
  awk -v tty=$tty '
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), n, "/")
      if (n[2] < 4) next
      if (tty) { printf "\rbuild: %d of %d steps", n[1], n[2] > "/dev/stderr"; shown = 1 }
      else if (int(10 * n[1] / n[2]) != tenth) { tenth = int(10 * n[1] / n[2]); print "build: " n[1] " of " n[2] " steps"; fflush() }
    }
    END { if (shown) printf "\r\033[K" > "/dev/stderr" }'
}

build_failed() {
  {
    grep -E -A 12 'error:|CMake Error|FAILED:|ninja: error' "$LOG" | head -n 40
    printf '\nDoppler did not build: %s failed. The whole output is in %s\n' "$1" "$LOG"
  } >&2
  exit 1
}
