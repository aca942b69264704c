# `./doppler test [GROUP...] [-- CTEST OPTIONS]`: builds everything, runs the groups (all by default) and ends with
# a line that counts single test cases. Expects what ./doppler sets; tools/launcher/summarise_tests.py counts.

# shellcheck source=tools/launcher/build.sh
. "$ROOT/tools/launcher/build.sh"

TEST_GROUPS="unit kernel golden story web fuzz"

run_tests() {
  local labels="" build_folder=$BUILD results
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case " $TEST_GROUPS " in
      *" $1 "*) labels+="${labels:+|}$1" ;;
      *)
        echo "Unknown test group \"$1\"; known are: $TEST_GROUPS. Options of ctest go after --." >&2
        return 2
        ;;
    esac
    shift
  done
  [ $# -eq 0 ] || shift
  if [ "$labels" = fuzz ]; then
    build_folder=$ROOT/build/asan
    build_fuzz
  else
    build all
    [ "$labels" = unit ] || use_cpu_vulkan
  fi
  results=$build_folder/test-results.xml
  rm -f "$results"
  ctest --test-dir "$build_folder" ${labels:+-L "^($labels)\$"} --parallel "$(build_jobs)" --output-on-failure \
    --no-tests=error --timeout 900 --output-junit "$results" --test-output-truncation head \
    --test-output-size-passed 20000 --test-output-size-failed 2000000 "$@" || true
  python3 "$ROOT/tools/launcher/summarise_tests.py" "$results"
}

# Machines without a GPU test on lavapipe; Dawn wants a newer one than Debian 12's, which tools/setup mesa provides.
use_cpu_vulkan() {
  if [ -n "${VK_DRIVER_FILES:-}" ] || compgen -G '/dev/dri/renderD*' >/dev/null || compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    return
  fi
  "$ROOT/tools/setup" mesa || echo "test: without a newer Mesa, what needs Dawn on the CPU is skipped"
  local manifest
  for manifest in "$ROOT/.deps/mesa/lvp_icd.json" /usr/share/vulkan/icd.d/lvp_icd*.json; do
    [ -f "$manifest" ] || continue
    export VK_DRIVER_FILES=$manifest
    [ ! -d "$(dirname "$manifest")/lib" ] || export LD_LIBRARY_PATH="$(dirname "$manifest")/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    return
  done
}

build_fuzz() {
  "$ROOT/tools/setup" fuzz
  mkdir -p "$ROOT/build/asan"
  if [ ! -f "$ROOT/build/asan/build.ninja" ]; then
    (cd "$ROOT" && cmake --preset asan) >"$LOG" 2>&1 || build_failed "configuring (preset asan)"
  fi
  BUILD=$ROOT/build/asan compile all
}
