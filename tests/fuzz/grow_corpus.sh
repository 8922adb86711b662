#!/bin/bash
# Usage: tests/fuzz/grow_corpus.sh BUILD COVERAGE_BUILD JOBS
#
# Adds to the corpus those inputs from `make fuzz` and `make fuzz-night` that cover a line which nothing in the
# corpus covers, so the corpus stays small. BUILD contains the inputs; COVERAGE_BUILD is a build of the preset
# fuzz_coverage.
set -euo pipefail

readonly build=$1 coverage=$2 jobs=$3 most_bytes=4096

# lines PROFILE PROGRAM: prints the number of covered lines.
lines() {
  llvm-cov-14 export -format=lcov -ignore-filename-regex='^/usr' -instr-profile "$1" "$2" 2>"$1.log" |
    grep -c '^DA:[0-9]*,[1-9]'
}

# reach PROGRAM PROFILE INPUT..: writes the profile of these inputs.
reach() {
  LLVM_PROFILE_FILE=$2.raw "$1" -runs=0 "${@:3}" >"$2.log" 2>&1 </dev/null || { tail -n 40 "$2.log"; return 1; }
  llvm-profdata-14 merge -sparse -o "$2" "$2.raw"
}

# grow NAME CORPUS
grow() {
  local program=$coverage/tests/fuzz/$1 corpus=tests/fuzz/$2 found=$build/tests/fuzz/found/$1
  local work best now input before
  before=$(find "$corpus" -type f | wc -l)
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # expand now: this folder
  trap "rm -rf '$work'" EXIT
  mkdir "$work/all"
  cp "$corpus"/* "$work/all"
  find "$found" -type f -size -"$most_bytes"c -exec cp -n -t "$work/all" {} +
  # First use libFuzzer's quick selection: each of these inputs covers another branch.
  mkdir "$work/some"
  cp "$corpus"/* "$work/some"
  "$build/tests/fuzz/$1" -merge=1 -use_counters=0 "$work/some" "$work/all" >/dev/null 2>&1 </dev/null || true
  reach "$program" "$work/profile" "$corpus"
  best=$(lines "$work/profile" "$program")
  while IFS= read -r input; do
    [ ! -e "$corpus/$(basename "$input")" ] || continue
    reach "$program" "$work/one" "$input" >/dev/null || continue
    llvm-profdata-14 merge -sparse -o "$work/both" "$work/profile" "$work/one"
    now=$(lines "$work/both" "$program")
    [ "$now" -gt "$best" ] || continue
    best=$now
    mv "$work/both" "$work/profile"
    cp "$input" "$corpus"
  done < <(find "$work/some" -type f -printf '%s %p\n' | sort -n | cut -d ' ' -f 2-)
  echo "$1: $before, and $(($(find "$corpus" -type f | wc -l) - before)) more"
}
export -f lines reach grow
export build coverage most_bytes

xargs -P "$jobs" -L 1 bash -c 'set -euo pipefail; grow "$@"' _ <"$build/tests/fuzz/targets.txt"
