#!/bin/bash
# Runs what pack.sh packed, on a machine with a GPU and nothing else. Most valuable first; each step has its own time
# limit, none stops the others, and what is done is in OUT at any moment. OUT gets few files: summary.txt, and
# results.tar.gz with all tables, JSON and logs.
#   run.sh [flags] OUT
#   --steps LIST      of devices,compare,bench,rules,several,profile,tests,times; default all but rules and several
#                     (compare, if a base was packed. rules: bench of each shape and lane with each lowering rule turned
#                     off. several: streams of each shape and lane on each of the --cards)
#   --cards LIST      devices of several, blanks between them; default "0 0,1"
#   --streams LIST    of several; default 8,32,64
#   --shapes LIST     SHAPE:QUANT,...         --lanes LIST       default fast
#   --prompt LIST     default 512; 0: none    --generate LIST    default 128; 0: none
#   --depth LIST      tokens cached before    --repetitions N    default 5
#   --rounds N        of compare: base, candidate, base, candidate, ...; default 3
#   --tests REGEX     which test programs     --filter PATTERN   which of their tests (gtest)
#   --times REGEX     which kernel benches    --providers LIST   default dawn,wgpu; only tests use all
#   --flags "..."     more flags of bench and profile, such as "--kernel matvec=matvec.q4_k.tile.s8"
#   --candidate-flags "..."  more flags of bench, not given to the base
#   --minutes N       default 9               --quick            little of everything, to try the script on a CPU
# One shape, decode only, takes some seconds: run.sh --steps bench --shapes llama-3.2-1b:q4_k_m --prompt 0 OUT
set -u

here=$(cd "$(dirname "$0")" && pwd)
steps=devices,compare,bench,profile,tests,times
shapes=llama-3.2-1b:q4_k_m,llama-3.1-8b:q4_k_m
lanes=fast
providers=dawn,wgpu
minutes=9
repetitions=5; prompt=512; generate=128; depth=0; rounds=3
cards="0 0,1"; streams=8,32,64
tests=.; filter='*'; times=.; more=; candidate_more=
while [ $# -gt 1 ]; do
  case $1 in
    --steps | --shapes | --lanes | --providers | --minutes | --prompt | --generate | --depth | --repetitions | --rounds | \
      --tests | --filter | --times | --cards | --streams) declare "${1#--}=$2"; shift 2 ;;
    --flags) more=$2; shift 2 ;;
    --candidate-flags) candidate_more=$2; shift 2 ;;
    --quick) repetitions=2; prompt=32; generate=16; rounds=2; shift ;;
    *) echo "run.sh: \"$1\" is not known; see the head of this file." >&2; exit 2 ;;
  esac
done
[ $# -eq 1 ] || { echo "run.sh: the output folder is missing." >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
started=$(date +%s)
deadline=$((started + minutes * 60))
wanted() { [[ ,$steps, == *,$1,* ]]; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$work/results
mkdir -p "$results" "$work/data"
tar -C "$work" -xJf "$here/programs.tar.xz"
for families in "$here"/families_*.tar.xz; do
  [ -f "$families" ] || continue
  folder=$work/data/$(basename "$families" .tar.xz) # as doppler_test_data() names it
  mkdir -p "$folder" && tar -C "$folder" -xJf "$families"
done
# The library is large and rarely changes: unpacked once per machine, into a folder that only this user can write.
store=${XDG_CACHE_HOME:-$HOME/.cache}/doppler-gpu
mkdir -p "$store" && chmod 700 "$store"
dawn=$store/$(sha256sum < "$here/libdawn.so.xz" | cut -c 1-16).so
if [ ! -f "$dawn" ]; then xz -dc "$here/libdawn.so.xz" > "$dawn.$$" && mv "$dawn.$$" "$dawn"; fi
ln -s "$dawn" "$work/lib/libdawn.so"
commit=unknown; base_commit=
# shellcheck disable=SC1091 # written by pack.sh: commit and base_commit
. "$here/bundle.txt"
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
first_provider=${providers%%,*}

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
    echo "run.sh, $(date -u +%Y-%m-%dT%H:%M:%SZ), $(($(date +%s) - started)) s so far, commit $commit${base_commit:+, base $base_commit}"
    cat "$results/steps.txt" 2>/dev/null
    for provider in ${providers//,/ }; do
      said=$(cat "$results"/test.*."$provider".log 2>/dev/null)
      [ -z "$said" ] || printf '%s: %s tests passed, %s failed\n' "$provider" \
        "$(echo "$said" | sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' | awk '{n += $1} END {print n + 0}')" \
        "$(echo "$said" | sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' | awk '{n += $1} END {print n + 0}')"
    done
    cat "$results"/compare.*.log 2>/dev/null
    cat "$results"/bench.*.log "$results"/several.*.log "$results"/rules.*.log 2>/dev/null | awk '/^\| model/ {if (!head++) {print; getline; print} else getline; rows = 1; next} rows && /^\|/ {print; next} {rows = 0}'
  } > "$out/summary.txt"
  tar -C "$work" -czf "$out/results.tar.gz" results
}

doppler=$work/bin/doppler
# stamp FILE COMMIT: a report says which commit it measured. Programs that have it built in say so themselves.
stamp() { [ ! -f "$1" ] || grep -q '^  "commit":' "$1" || sed -i "0,/^  \"version\":/s//  \"commit\": \"$2\",\n  \"version\":/" "$1"; }
bench() { # NAME PROGRAM COMMIT PROVIDER LANE SHAPE
  local name=${1//:/_} own=
  [ "$2" = "$doppler" ] && own=$candidate_more
  # shellcheck disable=SC2086 # $more and $own are several flags
  step "$name" 90 "$2" bench --synthetic "$6" --lane "$5" --webgpu "$4" -r "$repetitions" -p "$prompt" -n "$generate" \
    -d "$depth" -o json --output "$results/$name.json" $more $own
  stamp "$results/$name.json" "$3"
}

if wanted devices; then step devices 30 "$doppler" devices --json; fi
if wanted compare && [ -n "$base_commit" ]; then
  for shape in ${shapes//,/ }; do
    for lane in ${lanes//,/ }; do
      name=$shape.$lane.$first_provider
      base_files= candidate_files=
      for ((round = 1; round <= rounds; ++round)); do
        bench "base$round.$name" "$work/base/doppler" "$base_commit" "$first_provider" "$lane" "$shape"
        bench "candidate$round.$name" "$doppler" "$commit" "$first_provider" "$lane" "$shape"
        base_files+=,$results/base$round.${name//:/_}.json
        candidate_files+=,$results/candidate$round.${name//:/_}.json
      done
      name=compare.${name//:/_}
      step "$name" 10 "$doppler" compare --base "${base_files#,}" --candidate "${candidate_files#,}" --output "$results/$name.json"
      keep
    done
  done
fi
if wanted bench; then
  for shape in ${shapes//,/ }; do
    for lane in ${lanes//,/ }; do
      bench "bench.$shape.$lane.$first_provider" "$doppler" "$commit" "$first_provider" "$lane" "$shape"
    done
  done
  keep
fi
if wanted several; then
  for shape in ${shapes//,/ }; do
    for lane in ${lanes//,/ }; do
      for devices in $cards; do
        name=several.$shape.$lane.$first_provider.cards_${devices//,/_}
        name=${name//:/_}
        # shellcheck disable=SC2086 # $more is several flags
        step "$name" 150 "$doppler" bench --synthetic "$shape" --lane "$lane" --webgpu "$first_provider" \
          --devices "$devices" --streams "$streams" -r "$repetitions" -n "$generate" -d "$depth" -o json \
          --output "$results/$name.json" $more
        stamp "$results/$name.json" "$commit"
      done
    done
  done
  keep
fi
if wanted rules; then
  names=$("$doppler" graph --rule none=off 2>&1 | sed -n 's/.*the rules are \(.*\)\.$/\1/p' | tr -d ,)
  for shape in ${shapes//,/ }; do
    for lane in ${lanes//,/ }; do
      bench "rules.all.$shape.$lane.$first_provider" "$doppler" "$commit" "$first_provider" "$lane" "$shape"
      for rule in $names; do
        candidate_more="--rule $rule=off"
        bench "rules.$rule.$shape.$lane.$first_provider" "$doppler" "$commit" "$first_provider" "$lane" "$shape"
      done
      candidate_more=
    done
  done
  keep
fi
if wanted profile; then
  profile_depth=${depth%%,*}; [ "$profile_depth" = 0 ] && profile_depth=128
  [ "${generate%%,*}" = 0 ] && profile_depth=0
  for shape in ${shapes//,/ }; do
    for lane in ${lanes//,/ }; do
      name=profile.$shape.$lane.$first_provider
      name=${name//:/_}
      # shellcheck disable=SC2086 # $more is several flags
      step "$name" 60 "$doppler" profile --synthetic "$shape" --lane "$lane" --webgpu "$first_provider" -p "${prompt%%,*}" \
        -d "$profile_depth" -r "$repetitions" --json --output "$results/$name.json" $more
      stamp "$results/$name.json" "$commit"
    done
  done
  keep
fi

# Tests share the device, four programs at a time, so no step is timed meanwhile.
programs_like() { (cd "$work/bin" && ls) | grep -E "$1" | grep -E "$2"; }
if wanted tests; then
  export results deadline work
  export -f step
  for provider in ${providers//,/ }; do
    export DOPPLER_WEBGPU=$provider
    for program in $(programs_like '^(golden|gpu)_test$' "$tests") $(programs_like '_test$' "$tests" | grep -vE '^(golden|gpu)_test$'); do
      echo "test.$program.$provider 100 $work/bin/$program --gtest_brief=1 --gtest_filter=$filter"
    done | xargs -r -P 4 -L 1 bash -c 'step "$@"' step
    keep
  done
  unset DOPPLER_WEBGPU
fi
if wanted times; then
  export DOPPLER_WEBGPU=$first_provider
  for program in $(programs_like '_bench$' "$times"); do
    step "time.$program.$first_provider" 45 "$work/bin/$program"
  done
  unset DOPPLER_WEBGPU
fi
if wanted bench && wanted tests; then # a full run: the other providers too
  for provider in ${providers//,/ }; do
    [ "$provider" = "$first_provider" ] ||
      bench "bench.${shapes%%,*}.${lanes%%,*}.$provider" "$doppler" "$commit" "$provider" "${lanes%%,*}" "${shapes%%,*}"
  done
fi
keep
echo
cat "$out/summary.txt"
