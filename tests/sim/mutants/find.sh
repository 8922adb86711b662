#!/bin/bash
# Usage: tests/sim/mutants/find.sh BUILD [FAULTS [NAMES]]
#
# Breaks the cores in one place after the other (list.txt), links the simulator against each broken
# core, and demands that it finds a violation within FAULTS faults. Prints how many it took, and which
# transcripts are then other ones. BUILD is a folder in which disttf_simulate has been built. NAMES: an
# extended regular expression, of those that are tried; all, if there is none.
set -euo pipefail

readonly build=$1 faults=${2:-200000} names=${3:-.}
readonly here=$PWD/tests/sim/mutants
work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT

# command_for TARGET: the command that ninja would make it with.
command_for() { ninja -C "$build" -t commands "$1" | tail -n 1; }

# changed_transcripts: those that say something else of the mutant.
changed_transcripts() {
  local file
  for file in tests/transcripts/*.txt; do
    timeout 60 "$work/simulate" --transcript "$file" >/dev/null 2>&1 || echo -n " $(basename "$file" .txt)"
  done
}

# search: exit status 0 if the mutant breaks a promise within the faults, on a seed on which the core as
# it is keeps all; says after how many.
search() {
  local seed=1 seen=0 report at
  while [ "$seen" -lt "$faults" ]; do
    if report=$("$work/simulate" --faults $((faults - seen)) --seed "$seed" --jobs 1 --until-violation); then
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

# find_mutant NAME FILE SCRIPT WORDS: exit status 0 if the simulator finds it.
find_mutant() {
  local object source compile link found changed
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
  link=$(command_for tests/sim/disttf_simulate)
  link=$(sed -E "s# -o tests/sim/disttf_simulate # $work/mutant.o -o $work/simulate #" <<<"$link")
  (cd "$build" && eval "$compile" && eval "$link") 2>"$work/warnings" || { cat "$work/warnings"; return 1; }
  changed=$(changed_transcripts)
  if ! found=$(search); then
    echo "$1: NOT FOUND in $faults faults ($4); transcripts:${changed:- none}"
    return 1
  fi
  echo "$1: found after $found; transcripts:${changed:- none}"
}

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
