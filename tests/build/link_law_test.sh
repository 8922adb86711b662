#!/bin/bash
# Usage: link_law_test.sh LINK_LINES
#
# The same law as include_law_test.sh, for what is linked. LINK_LINES is a file of lines
# `target: library library ...`, as CMake knows them.
set -euo pipefail

readonly ours='disttf_(command_line|render|roles|net|math|data)'

# allowed TARGET: the targets of this project that it may name, as a regular expression.
allowed() {
  case $1 in
    disttf) echo "$ours" ;;
    disttf_command_line) echo 'disttf_(render|roles|net|math|data)' ;;
    disttf_render) echo 'disttf_net' ;;
    disttf_roles) echo 'disttf_(net|math|data)' ;;
    *) echo 'nothing' ;;
  esac
}

# violations < LINK_LINES: prints `target links target` for each that breaks the law.
violations() {
  local line target library
  while IFS= read -r line; do
    target=${line%%:*}
    for library in $(grep -oE "\b$ours\b" <<<"${line#*:}" | sort -u); do
      [ "$library" = "$target" ] || grep -qxE "$(allowed "$target")" <<<"$library" ||
        echo "$target links $library"
    done
  done
}

self_test() {
  local found
  found=$(printf '%s\n' 'disttf_net: disttf_flags $<LINK_ONLY:disttf_math>' \
    'disttf_data: disttf_flags disttf_roles' 'disttf_roles: disttf_command_line' \
    'disttf_render: disttf_net disttf_math' \
    'disttf: disttf_roles disttf_command_line' | violations | wc -l)
  [ "$found" -eq 4 ] || { echo "this check is broken: it found $found of 4 violations"; exit 1; }
}

self_test
[ "$(wc -l <"$1")" -eq 7 ] || { echo "$1 does not list the seven targets"; exit 1; }
found=$(violations <"$1")
if [ -n "$found" ]; then
  echo "main -> roles -> {net, math, data} is the law; these break it:"
  echo "$found"
  exit 1
fi
