#!/usr/bin/env bash
# clang-tidy 19 (configuration: .clang-tidy at the root) over the sources whose path matches a regular expression:
#   tools/lint/tidy.sh            all of src; about an hour on two cores, which is why no test group runs it
#   tools/lint/tidy.sh src/base   a part
# Needs the packages clang-tidy-19 and clang-tools-19, and a build by `./doppler test` for the generated headers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

[ -f build/release/compile_commands.json ] || {
  echo "There is no build/release/compile_commands.json; run ./doppler test unit first." >&2
  exit 2
}
# The database holds GCC's flags: Clang does not know all of its warnings.
exec run-clang-tidy-19 -quiet -p build/release -extra-arg=-Wno-unknown-warning-option "${1:-/src/}.*\.cpp$"
