#!/bin/bash
# The law of the house: main -> roles -> {net, math, data}; net, math and data never include each
# other; main/render sees net alone. No argument: checks the folders below the working directory.
set -euo pipefail

# violations ROOT: prints file:line:text of each #include that breaks the law.
violations() {
  local folder forbidden
  for folder in net math data roles main/render; do
    case $folder in
      net) forbidden='math|data|roles|main' ;;
      math) forbidden='net|data|roles|main' ;;
      data) forbidden='net|math|roles|main' ;;
      roles) forbidden='main' ;;
      main/render) forbidden='math|data|roles' ;;
    esac
    # Also by a way round: "../math/x.h", <math/x.h>.
    grep -rnE --include='*.h' --include='*.cc' \
      "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<](\.\./)*($forbidden)/" "$1/$folder" || true
  done
}

# A check that finds nothing because it is broken looks like a house in order: so it must first
# find these.
self_test() {
  local tree found
  tree=$(mktemp -d)
  mkdir -p "$tree"/{net,math,data,roles,main/render}
  echo '#include "math/model.h"' >"$tree/net/a.cc"
  echo '#  include <net/frame.h>' >"$tree/math/b.h"
  echo ' #include "../roles/x.h"' >"$tree/data/c.cc"
  echo '#include "main/options.h"' >"$tree/roles/d.cc"
  echo '#include "roles/log.h"' >"$tree/main/render/e.cc"
  echo '#include "net/frame.h"' >"$tree/roles/allowed.cc"
  found=$(violations "$tree" | wc -l)
  rm -rf "$tree"
  [ "$found" -eq 5 ] || { echo "this check is broken: it found $found of 5 violations"; exit 1; }
}

self_test
found=$(violations .)
if [ -n "$found" ]; then
  echo "main -> roles -> {net, math, data} is the law; these break it:"
  echo "$found"
  exit 1
fi
