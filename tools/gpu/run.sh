#!/bin/bash
# Runs what pack.sh packed, on a machine with a GPU and nothing else: benchmarks, profiles, then every kernel and golden
# test under both providers. Most valuable first; each step has its own time limit, none stops the others, and what is
# done is in OUT at any moment. OUT gets few files: summary.txt, and results.tar.gz with all tables, JSON and logs.
#   run.sh [--shapes SHAPE,SHAPE] [--quick] [--minutes N] [--providers dawn,wgpu] OUT
# --quick: short tests and few repetitions, to try the script itself on a CPU.
set -u

here=$(cd "$(dirname "$0")" && pwd)
shapes=llama-3.2-1b:q4_k_m,llama-3.1-8b:q4_k_m
providers=dawn,wgpu
minutes=9
quick=no
while [ $# -gt 1 ]; do
  case $1 in
    --shapes) shapes=$2; shift 2 ;;
    --providers) providers=$2; shift 2 ;;
    --minutes) minutes=$2; shift 2 ;;
    --quick) quick=yes; shift ;;
    *) echo "run.sh: \"$1\" is not known; see the head of this file." >&2; exit 2 ;;
  esac
done
[ $# -eq 1 ] || { echo "run.sh: the output folder is missing." >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
started=$(date +%s)
deadline=$((started + minutes * 60))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$work/results
mkdir -p "$results" "$work/data"
tar -C "$work" -xJf "$here/programs.tar.xz"
for families in "$here"/families_*.tar.xz; do tar -C "$work/data" -xJf "$families"; done
xz -dc "$here/libdawn.so.xz" > "$work/lib/libdawn.so"
export LD_LIBRARY_PATH="$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export DOPPLER_GOLDEN_DIR=$work/data
export XDG_CACHE_HOME=$work/cache
# Containers may keep the driver's manifest where the Vulkan loader does not look.
if [ -z "${VK_DRIVER_FILES:-}" ]; then
  for file in /usr/share/vulkan/icd.d/nvidia_icd.json /etc/vulkan/icd.d/nvidia_icd.json \
              /usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json /usr/local/share/vulkan/icd.d/nvidia_icd.json; do
    if [ -f "$file" ]; then export VK_DRIVER_FILES=$file; break; fi
  done
fi

repetitions=5; prompt=512; generate=128; depth=128
if [ $quick = yes ]; then repetitions=2; prompt=32; generate=16; depth=16; fi
first_provider=${providers%%,*}
first_shape=${shapes%%,*}

# step NAME SECONDS COMMAND...: output to NAME.log; a line for the summary.
step() {
  local name=$1 limit=$2 left began code state lines
  shift 2
  left=$((deadline - $(date +%s)))
  if [ $left -lt 5 ]; then
    echo "LATE    $name: no time left" | tee -a "$results/steps.txt"
    return
  fi
  [ "$limit" -gt $left ] && limit=$left
  began=$(date +%s)
  timeout -k 5 "$limit" "$@" > "$results/$name.log" 2>&1
  code=$?
  state=ok
  [ $code -ne 0 ] && state=FAILED
  [ $code -eq 124 ] && state=TIMEOUT
  [ $code -eq 77 ] && state=SKIPPED # the test program could not open its device, and said why
  # One write, since several steps may end at once.
  lines=$(printf '%-7s %s (%s s)' "$state" "$name" "$(($(date +%s) - began))"
    [ $state = ok ] || { echo; tail -n 4 "$results/$name.log" | cut -c 1-300 | sed 's/^/          /'; })
  printf '%s\n' "$lines" | tee -a "$results/steps.txt"
}

# keep: what there is so far is in OUT, whatever happens next.
keep() {
  {
    echo "run.sh, $(date -u +%Y-%m-%dT%H:%M:%SZ), $(($(date +%s) - started)) s so far"
    cat "$results/steps.txt" 2>/dev/null
    for provider in ${providers//,/ }; do
      tests=$(cat "$results"/test.*."$provider".log 2>/dev/null)
      printf '%s: %s tests passed, %s failed\n' "$provider" \
        "$(echo "$tests" | sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' | awk '{n += $1} END {print n + 0}')" \
        "$(echo "$tests" | sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' | awk '{n += $1} END {print n + 0}')"
    done
    cat "$results"/bench.*.log 2>/dev/null | awk '/^\| model/ {if (!head++) {print; getline; print} else getline; rows = 1; next} rows && /^\|/ {print; next} {rows = 0}'
  } > "$out/summary.txt"
  tar -C "$work" -czf "$out/results.tar.gz" results
}

doppler=$work/bin/doppler
bench() { # LANE SHAPE SECONDS
  local name=bench.$2.$1.$first_provider
  step "${name//:/_}" "$3" "$doppler" bench --synthetic "$2" --lane "$1" --webgpu "$first_provider" -r $repetitions \
    -p $prompt -n $generate -o json --output "$results/${name//:/_}.json"
}
profile() { # SHAPE SECONDS
  local name=profile.$1.$first_provider
  step "${name//:/_}" "$2" "$doppler" profile --synthetic "$1" --webgpu "$first_provider" -p $prompt -d $depth -r $repetitions \
    --json --output "$results/${name//:/_}.json"
}

step devices 30 "$doppler" devices --json
for shape in ${shapes//,/ }; do bench fast "$shape" 90; done
keep
for shape in ${shapes//,/ }; do profile "$shape" 60; done
keep
bench exact "$first_shape" 60
keep

# Tests share the device, four programs at a time: nothing is timed meanwhile.
export results deadline work
export -f step
for provider in ${providers//,/ }; do
  export DOPPLER_WEBGPU=$provider
  for program in $(cd "$work/bin" && { ls | grep -E '^(golden|gpu)_test$'; ls | grep '_test$' | grep -vE '^(golden|gpu)_test$'; }); do
    echo "test.$program.$provider 100 $work/bin/$program --gtest_brief=1"
  done | xargs -P 4 -L 1 bash -c 'step "$@"' step
  keep
done
unset DOPPLER_WEBGPU

export DOPPLER_WEBGPU=$first_provider
for program in $(cd "$work/bin" && ls | grep '_bench$'); do
  step "time.$program.$first_provider" 45 "$work/bin/$program"
done
for provider in ${providers//,/ }; do
  [ "$provider" = "$first_provider" ] && continue
  first_provider=$provider
  bench fast "$first_shape" 60
done
keep
echo
cat "$out/summary.txt"
