#!/usr/bin/env bash
# Measures all installed engines on this machine's GPU and writes records and report: docs/howto/rivals.md.
#   gpu.sh OUT [--shapes SHAPE:QUANT,...] [--parts parity,throughput,warm,cold] [--workloads NAME,...] [--machine WORDS]
#     [--budget SECONDS] [-- FLAGS of rivals run]
# OUT: a new folder for records, tables and plots; models are made in OUT/models once. Engines: `rivals install`,
# doppler-native among them. --budget: of each `rivals run`, whose record names what was left out. FLAGS such as
# --warmup-tokens 16, --rounds-of llama.cpp-vulkan.512x128=2. A part that fails is named; the rest goes on.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: gpu.sh OUT [--shapes LIST] [--parts LIST] [--workloads LIST] [--machine WORDS] [--budget SECONDS] [-- FLAGS]}
shift
shapes=llama-3.2-1b:q4_k_m,llama-3.2-3b:q4_k_m,llama-3.1-8b:q4_k_m,gemma-3-1b:q4_k_m
parts=parity,throughput,warm,cold
workloads=all
machine=
budget=0
flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --) shift; flags=("$@"); break ;;
    --shapes) shapes=$2 ;;
    --parts) parts=$2 ;;
    --workloads) workloads=$2 ;;
    --machine) machine=$2 ;;
    --budget) budget=$2 ;;
    *) echo "gpu.sh: \"$1\" is not known; allowed are --shapes, --parts, --workloads, --machine, --budget and --." >&2; exit 2 ;;
  esac
  shift 2
done
engines=${DOPPLER_RIVALS:-${XDG_CACHE_HOME:-$HOME/.cache}/doppler/rivals}
doppler=$engines/doppler-native/bin/doppler
[ -x "$doppler" ] || { echo "gpu.sh: $doppler does not exist; rivals install doppler-native --doppler BUILD makes it." >&2; exit 1; }
mkdir -p "$out/models"

failed=0
measure() {  # a model, then flags of `rivals run`
  local model=$1
  shift
  "$here/rivals" run --model "$model" --machine "$machine" --budget "$budget" --save "$out" --label "Synthetic weights of a real shape." --together \
    "$@" "${flags[@]}" \
    > /dev/null || { echo "gpu.sh: failed: $model $*" >&2; failed=1; }
}

long=()
for name in ${workloads//,/ }; do long+=(--workload "$name"); done
for shape in ${shapes//,/ }; do
  model=$out/models/${shape/:/_}.gguf
  [ -f "$model" ] || "$doppler" synth "$shape" -o "$model" || exit 1
  for part in ${parts//,/ }; do
    case $part in
      parity | throughput) measure "$model" --profile "$part" "${long[@]}" ;;
      warm | cold) measure "$model" --mode "$part" --workload 512x128 ;;
      *) echo "gpu.sh: part \"$part\" is not known; allowed are parity, throughput, warm and cold." >&2; exit 2 ;;
    esac
  done
done
"$here/rivals" report "$out"/rivals.*.json --output "$out"
exit $failed
