#!/bin/bash
# Usage: test_sources_test.sh COMPILE_COMMANDS
#
# No forgotten test: each C++ source below tests/ is one that the build compiles, as COMPILE_COMMANDS
# (CMake's compile_commands.json) lists them. What is not built passes for ever.
set -euo pipefail

# forgotten ROOT COMPILE_COMMANDS: prints each source below ROOT/tests that is not listed.
forgotten() {
  local source
  find "$1/tests" -name '*.cc' | sort | while IFS= read -r source; do
    grep -qF "\"file\": \"$source\"" "$2" || echo "${source#"$1"/}"
  done
}

self_test() {
  local tree found
  tree=$(mktemp -d)
  mkdir "$tree/tests"
  touch "$tree"/tests/{built,forgotten,also_forgotten}_test.cc
  echo "  \"file\": \"$tree/tests/built_test.cc\"" >"$tree/commands"
  found=$(forgotten "$tree" "$tree/commands" | wc -l)
  rm -rf "$tree"
  [ "$found" -eq 2 ] || { echo "this check is broken: it found $found of 2 forgotten tests"; exit 1; }
}

self_test
found=$(forgotten "$PWD" "$1")
if [ -n "$found" ]; then
  echo "No CMakeLists.txt names these, so they are never built:"
  echo "$found"
  exit 1
fi
