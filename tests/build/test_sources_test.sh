#!/bin/bash
# Usage: test_sources_test.sh BUILD
#
# No test is forgotten: the build compiles each C++ source below tests/, by itself, as
# BUILD/compile_commands.json lists it, or through a unity source in BUILD/units that includes it. A source
# that is not built would never fail.
set -euo pipefail

# forgotten ROOT BUILD: prints each source below ROOT/tests that is not compiled.
forgotten() {
  local source units
  mapfile -t units < <(grep -oE '"file": "[^"]*/units/[^"]*"' "$2/compile_commands.json" | cut -d '"' -f 4)
  find "$1/tests" -name '*.cc' | sort | while IFS= read -r source; do
    grep -qsF -e "\"file\": \"$source\"" -e "#include \"${source#"$1"/}\"" \
      "$2/compile_commands.json" "${units[@]}" || echo "${source#"$1"/}"
  done
}

self_test() {
  local tree found
  tree=$(mktemp -d)
  mkdir -p "$tree/tests" "$tree/build/units"
  touch "$tree"/tests/{built,together,forgotten,also_forgotten}_test.cc
  printf '  "file": "%s",\n' "$tree/tests/built_test.cc" "$tree/build/units/a_0.cc" >"$tree/build/compile_commands.json"
  echo "#include \"tests/together_test.cc\"" >"$tree/build/units/a_0.cc"
  echo "#include \"tests/forgotten_test.cc\"" >"$tree/build/units/of_before_0.cc"
  found=$(forgotten "$tree" "$tree/build" | wc -l)
  rm -rf "$tree"
  [ "$found" -eq 2 ] || { echo "this check is broken: it found $found of 2 forgotten tests"; exit 1; }
}

self_test
found=$(forgotten "$PWD" "$1")
if [ -n "$found" ]; then
  echo "No CMakeLists.txt names these sources, so they are never built:"
  echo "$found"
  exit 1
fi
