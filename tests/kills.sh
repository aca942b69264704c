#!/bin/sh
# Evidence for "a kill leaves nothing half": kill -9 at random moments, 50 of `doppler convert` and 50 of `doppler
# pull`, each time followed by the command that goes on. Takes minutes; CI does a few kills of each.
#   tests/kills.sh PROGRAM [KILLS]
set -eu
program=${1:?"The program is needed: tests/kills.sh build/release/src/cli/doppler"}
kills=${2:-50}
cd "$(dirname "$0")/.."
python3 -B tests/convert/kill_test.py --doppler "$program" --kills "$kills"
python3 -B tests/store/pull_test.py --doppler "$program" --kills "$kills" -k kill
echo "$kills kills of convert and $kills of pull left nothing half."
