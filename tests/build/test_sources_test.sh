#!/bin/bash
# No forgotten test: each C++ source below tests/ is named in a CMakeLists.txt below tests/, by its
# path relative to that file. A test that is not built passes for ever.
set -euo pipefail

# forgotten ROOT: prints each source below ROOT/tests that no CMakeLists.txt beside or above names.
forgotten() {
  local source folder name
  while IFS= read -r source; do
    folder=$(dirname "$source")
    name=$(basename "$source")
    while :; do
      if [ -f "$folder/CMakeLists.txt" ] && names "$folder/CMakeLists.txt" "$name"; then break; fi
      if [ "$folder" = "$1/tests" ]; then
        echo "$source"
        break
      fi
      name=$(basename "$folder")/$name
      folder=$(dirname "$folder")
    done
  done < <(find "$1/tests" -name '*.cc' | sort)
}

# names FILE WORD: WORD stands in FILE, outside of comments, as a word of its own.
names() {
  sed 's/#.*//' "$1" | tr -s '[:space:]()"' '\n' | grep -qxF "$2"
}

self_test() {
  local tree found
  tree=$(mktemp -d)
  mkdir -p "$tree/tests/net"
  echo 'disttf_test(NAME a SOURCES a_test.cc net/b_test.cc)  # c_test.cc' >"$tree/tests/CMakeLists.txt"
  touch "$tree"/tests/{a_test.cc,c_test.cc,net/b_test.cc,net/a_test.cc}
  found=$(forgotten "$tree" | wc -l)
  rm -rf "$tree"
  [ "$found" -eq 2 ] || { echo "this check is broken: it found $found of 2 forgotten tests"; exit 1; }
}

self_test
found=$(forgotten .)
if [ -n "$found" ]; then
  echo "No CMakeLists.txt names these, so they are never built:"
  echo "$found"
  exit 1
fi
