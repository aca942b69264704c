# The launcher's slow path: setup, configure, build, with one line of progress and a log for when it fails.
# Expects ROOT, BUILD and STAMP (see ./doppler). TESTS: ON to build the tests too.

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
  local options=(-DDOPPLER_TESTS="${TESTS:-OFF}")
  # With ccache sources are compiled one by one, which keeps what did not change. Without it batches and precompiled
  # headers are faster. They are faster too on machines of continuous integration, which keep nothing and set CI.
  if command -v ccache >/dev/null && [ -z "${CI:-}" ]; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DDOPPLER_BATCHES=OFF)
  else
    options+=(-DDOPPLER_BATCHES=ON)
  fi
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

# Ninja's "[12/345] ..." as one line that moves, or a line every tenth if the output is no terminal. In bash, because
# the awk of a bare Debian (mawk) reads ahead: it would show nothing until the build is over.
show_progress() {
  local line step steps tenth=0 shown=""
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    step=${BASH_REMATCH[1]} steps=${BASH_REMATCH[2]}
    [ "$steps" -ge 4 ] || continue
    if [ -t 2 ]; then
      printf '\rbuild: %d of %d steps' "$step" "$steps" >&2
      shown=1
    elif [ $((10 * step / steps)) != "$tenth" ]; then
      tenth=$((10 * step / steps))
      printf 'build: %d of %d steps\n' "$step" "$steps"
    fi
  done
  [ -z "$shown" ] || printf '\r\033[K' >&2
}

build_failed() {
  {
    grep -E -A 12 'error:|CMake Error|FAILED:|ninja: error' "$LOG" | head -n 40
    printf '\nDoppler did not build: %s failed. The whole output is in %s\n' "$1" "$LOG"
  } >&2
  exit 1
}
