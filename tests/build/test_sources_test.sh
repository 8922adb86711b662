#!/bin/bash
# Usage: test_sources_test.sh BUILD
#
# No forgotten test: each C++ source below tests/ is one that the build compiles, by itself, as
# BUILD/compile_commands.json lists it, or together with others, as CMake's files in Unity/ folders
# include it. What is not built passes for ever.
set -euo pipefail

# forgotten ROOT BUILD: prints each source below ROOT/tests that is not listed.
forgotten() {
  local source units
  mapfile -t units < <(find "$2" -path '*/Unity/*.cxx')
  find "$1/tests" -name '*.cc' | sort | while IFS= read -r source; do
    grep -qsF -e "\"file\": \"$source\"" -e "#include \"$source\"" \
      "$2/compile_commands.json" "${units[@]}" || echo "${source#"$1"/}"
  done
}

self_test() {
  local tree found
  tree=$(mktemp -d)
  mkdir -p "$tree/tests" "$tree/build/Unity"
  touch "$tree"/tests/{built,together,forgotten,also_forgotten}_test.cc
  echo "  \"file\": \"$tree/tests/built_test.cc\"" >"$tree/build/compile_commands.json"
  echo "#include \"$tree/tests/together_test.cc\"" >"$tree/build/Unity/unity_0_cxx.cxx"
  found=$(forgotten "$tree" "$tree/build" | wc -l)
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
