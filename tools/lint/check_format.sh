#!/usr/bin/env bash
# Fails when a C++ file is not as clang-format 19 writes it (configuration: .clang-format at the root), and says the
# command that puts it right. The version matters: others break lines elsewhere. Run by `./doppler test lint`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mapfile -t files < <(find src include tests tools examples \( -name '*.cpp' -o -name '*.h' \) -print | sort)
wrong=$(printf '%s\0' "${files[@]}" | xargs -0 clang-format-19 --dry-run 2>&1 |
  sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: .*/\1/p' | sort -u)
[ -n "$wrong" ] || exit 0
echo "Not formatted; run: clang-format-19 -i" $wrong
exit 1
