#!/bin/bash
# Usage: tests/sim/mutants/find.sh BUILD [FAULTS [NAMES]]
#
# Breaks cores and shells in one place after another (list.txt), links the simulator against each,
# and searches for a violation within FAULTS faults. Prints how many faults it took, and which
# transcripts changed. A transcript or a unit test must show what random faults do not find: a case
# that needs three losses in one order, or one of two checks each of which suffices alone. BUILD is a
# directory in which disttf_simulate and roles_test have been built. NAMES is an extended regular
# expression that selects mutants; without it, all are tried.
set -euo pipefail

readonly build=$1 faults=${2:-200000} names=${3:-.}
readonly here=$PWD/tests/sim/mutants
work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT

# command_for TARGET: prints the command with which ninja builds it.
command_for() { ninja -C "$build" -t commands "$1" | tail -n 1; }

# changed_transcripts: prints the transcripts whose log differs with the mutant.
changed_transcripts() {
  local file
  for file in tests/transcripts/*.txt; do
    timeout 60 "$work/disttf_simulate" --transcript "$file" >/dev/null 2>&1 || echo -n " $(basename "$file" .txt)"
  done
}

# link_mutant TARGET: links that program of BUILD against the mutant, into $work.
link_mutant() {
  local link
  link=$(command_for "$1")
  link=$(sed -E "s# -o $1 # $work/mutant.o -o $work/$(basename "$1") #" <<<"$link")
  (cd "$build" && eval "$link") 2>"$work/warnings" || { cat "$work/warnings"; return 1; }
}

# failing_tests: prints the unit tests that fail with the mutant.
failing_tests() {
  link_mutant tests/roles/roles_test || return
  timeout 300 "$work/roles_test" --gtest_brief=1 2>&1 | grep -oE '^\[  FAILED  \] [A-Za-z0-9_/]+\.[A-Za-z0-9_/]+' | sort -u |
    sed 's/.*\] / /' | tr -d '\n' || true
}

# search: exit status 0 if the mutant violates an invariant within the faults, on a seed on which the
# unchanged core violates none. Prints how many faults it took.
search() {
  local seed=1 seen=0 report at
  while [ "$seen" -lt "$faults" ]; do
    if report=$("$work/disttf_simulate" --faults $((faults - seen)) --seed "$seed" --jobs 1 --until-violation); then
      return 1
    fi
    at=$(grep -oE '^  seed [0-9]+' <<<"$report" | head -n 1 | grep -oE '[0-9]+') || { echo 'a crash'; return 0; }
    seen=$((seen + $(grep -oE '[0-9]+ faults' <<<"$report" | head -n 1 | grep -oE '[0-9]+')))
    if "$build/tests/sim/disttf_simulate" --faults 1 --seed "$at" --jobs 1 --until-violation >/dev/null; then
      echo "$at seeds, $seen faults"
      return 0
    fi
    seed=$((at + 1))
  done
  return 1
}

# find_mutant NAME FILE SCRIPT TEXT: exit status 0 if the simulator finds it.
find_mutant() {
  local object source compile found changed failing
  source=$work/$(basename "$2")
  sed "$3" "$2" >"$source"
  if cmp -s "$2" "$source"; then
    echo "$1: the script no longer changes $2"
    return 1
  fi
  object=$(ninja -C "$build" -t targets all | grep -oE "^[^:]*/$(basename "$2").o" | grep "$(dirname "$2")" | head -n 1)
  compile=$(command_for "$object")
  compile=${compile/ -Werror/}
  compile=$(sed -E "s# -o [^ ]+ -c [^ ]+# -o $work/mutant.o -c $source#; s# -MD -MT [^ ]+ -MF [^ ]+##" <<<"$compile")
  (cd "$build" && eval "$compile") 2>"$work/warnings" || { cat "$work/warnings"; return 1; }
  link_mutant tests/sim/disttf_simulate || return 1
  changed=$(changed_transcripts)
  if found=$(search); then
    echo "$1: found after $found; transcripts:${changed:- none}"
  elif [ -n "$changed" ]; then
    echo "$1: not in $faults faults; shown by transcripts:$changed"
  elif failing=$(failing_tests) && [ -n "$failing" ]; then
    echo "$1: not in $faults faults, in no transcript; shown by unit tests:$failing"
  else
    echo "$1: NOT FOUND in $faults faults, nor by a transcript, nor by a unit test ($4)"
    return 1
  fi
}

if grep -q '^DISTTF_UNITY:[A-Z]*=ON' "$build/CMakeCache.txt"; then
  echo "$build compiles several sources at once, so none can be replaced: configure it with -DDISTTF_UNITY=OFF"
  exit 2
fi
failed=0
while IFS= read -r line; do
  case $line in '#'* | '') continue ;; esac
  name=${line%% | *}
  [[ $name =~ $names ]] || continue
  rest=${line#* | }
  file=${rest%% | *}
  rest=${rest#* | }
  find_mutant "$name" "$file" "${rest% | *}" "${rest##* | }" || failed=$((failed + 1))
done <"$here/list.txt"
[ "$failed" -eq 0 ] || { echo "$failed mutants are alive"; exit 1; }
