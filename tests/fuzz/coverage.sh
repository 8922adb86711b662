#!/bin/bash
# Usage: tests/fuzz/coverage.sh BUILD
#
# Measures which lines of the decoders and sessions the corpus covers, for all targets together: the number of
# lines of the files in covered.txt, and the uncovered ones. Exits with 1 below the floor of covered.txt. BUILD: a
# build of the preset fuzz_coverage.
set -euo pipefail

readonly build=$1
readonly here=tests/fuzz profiles=$build/profiles
llvm() { "llvm-$1-14" "${@:2}"; }

rm -rf "$profiles"
mkdir -p "$profiles"
objects=()
while read -r name corpus; do
  LLVM_PROFILE_FILE=$profiles/$name.profraw "$build/tests/fuzz/$name" -runs=0 "$here/$corpus" \
    >"$profiles/$name.log" 2>&1 </dev/null || { cat "$profiles/$name.log"; exit 1; }
  objects+=(-object "$build/tests/fuzz/$name")
done <"$build/tests/fuzz/targets.txt"
llvm profdata merge -sparse -o "$profiles/all.profdata" "$profiles"/*.profraw
llvm cov export -format=lcov -instr-profile "$profiles/all.profdata" "${objects[@]}" \
  >"$profiles/lines.txt" 2>"$profiles/warnings.log" || { cat "$profiles/warnings.log"; exit 1; }
awk -v prefix="$build/" -f "$here/coverage.awk" "$here/covered.txt" "$profiles/lines.txt"
