# `./doppler test [GROUP...] [-- CTEST OPTIONS]`: builds what the groups need (all groups by default), runs them and
# ends with a line that counts single test cases. A group that a machine cannot run is left out, but a named group must
# run whole. Expects what ./doppler sets; summarise_tests.py counts.

# shellcheck source=tools/launcher/build.sh
. "$ROOT/tools/launcher/build.sh"
# shellcheck source=tools/setup.d/common.sh
. "$ROOT/tools/setup.d/common.sh" # has_gpu

TEST_GROUPS="lint unit kernel golden story web fuzz"
FUZZ_BUILD=$ROOT/build/asan

run_tests() {
  local groups=() labels="" results=() required=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case " $TEST_GROUPS " in
      *" $1 "*) groups+=("$1") ;;
      *)
        echo "Unknown test group \"$1\"; known are: $TEST_GROUPS. Options of ctest go after --." >&2
        return 2
        ;;
    esac
    shift
  done
  [ $# -eq 0 ] || shift
  # Options of ctest choose among a group's tests.
  [ $# -gt 0 ] || required=("${groups[@]/#/--require=}")
  # shellcheck disable=SC2206
  [ ${#groups[@]} -gt 0 ] || groups=($TEST_GROUPS)

  for group in "${groups[@]}"; do [ "$group" = fuzz ] || labels+="${labels:+|}$group"; done
  if [ -n "$labels" ]; then
    # Configuring decides which tests there are, so their packages come first.
    "$ROOT/tools/setup"
    "$ROOT/tools/setup" test
    # Packages that only some tests need are fetched and unpacked while the program compiles.
    prepare_groups &
    TESTS=ON build doppler
    wait
    rm -f "$BUILD/build.ninja"
    TESTS=ON build all
    run_ctest "$BUILD" -L "^($labels)\$" "$@"
  fi
  # The fuzz targets are a build of their own: sanitised, by Clang, of the parsers only.
  if wants fuzz && grep -rq 'doppler_fuzz(' "$ROOT/src" --include=CMakeLists.txt; then
    if "$ROOT/tools/setup" fuzz; then
      build_fuzz
      run_ctest "$FUZZ_BUILD" -L '^fuzz$' "$@"
    else
      echo "test: without Clang the fuzz corpora are left out"
    fi
  fi
  python3 -B "$ROOT/tools/launcher/summarise_tests.py" "${required[@]}" "${results[@]}"
}

prepare_groups() {
  case "$labels" in unit | lint | 'lint|unit') ;; *) prepare_cpu_vulkan ;; esac
  if wants lint; then "$ROOT/tools/setup" lint || echo "test: without clang-format-19 the format is not checked"; fi
  if wants web; then prepare_web; fi
  if wants fuzz; then "$ROOT/tools/setup" fuzz || true; fi # asked for again where it is used
}

wants() { case " ${groups[*]} " in *" $1 "*) ;; *) return 1 ;; esac }

run_ctest() {
  local folder=$1
  results+=("$folder")
  rm -f "$folder/test-results.xml"
  ctest --test-dir "$folder" --show-only=json-v1 "${@:2}" >"$folder/test-list.json"
  ctest --test-dir "$folder" "${@:2}" --parallel "$(build_jobs)" --output-on-failure --timeout 900 \
    --output-junit test-results.xml --test-output-truncation head --test-output-size-passed 20000 \
    --test-output-size-failed 2000000 || true
}

# Machines without a GPU test wgpu-native on lavapipe and Dawn on SwiftShader, but for a few programs that want a newer
# lavapipe than Debian 12's (cmake/TestProviders.cmake).
prepare_cpu_vulkan() {
  if has_gpu; then return; fi
  "$ROOT/tools/setup" swiftshader || true # it says what happens instead
  "$ROOT/tools/setup" mesa || echo "test: without a newer Mesa, what needs it for Dawn on the CPU is skipped"
}

prepare_web() {
  if [ -f "$ROOT/web/package.json" ] && ! "$ROOT/tools/setup" wasm; then
    echo "test: without these packages the web tests are left out"
    return
  fi
  "$ROOT/tools/setup" web || echo "test: without a browser its tests are left out"
}

build_fuzz() {
  mkdir -p "$FUZZ_BUILD"
  if [ ! -f "$FUZZ_BUILD/build.ninja" ]; then
    echo "build: configuring the sanitised build"
    # The corpora are replayed in seconds: on a machine that keeps nothing the compiler's time counts, which -O0 halves.
    local options=(-DDOPPLER_BATCHES=ON)
    [ -z "${CI:-}" ] || options+=(-DCMAKE_CXX_FLAGS_DEBUG="-O0 -g1" -DCMAKE_C_FLAGS_DEBUG="-O0 -g1")
    (cd "$ROOT" && cmake --preset asan "${options[@]}") >"$LOG" 2>&1 || {
      rm -f "$FUZZ_BUILD/build.ninja"
      build_failed "configuring the sanitised build"
    }
  fi
  BUILD=$FUZZ_BUILD compile doppler_fuzzers
}
