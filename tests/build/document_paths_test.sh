#!/bin/bash
# Every source file that the developers' documents name exists, relative to the root, to roles/ or to the document: a path
# in backticks with a slash and an extension, `math/layers/registry.cc`, also with several extensions,
# `net/wire/messages.{h,cc}`. Paths with a placeholder in capitals (`NAME`, `FILE`), a `*` or a `<` are patterns, not
# files. Paths below build/ and ~/ are generated files.
set -euo pipefail

# missing ROOT DOCUMENT...: prints `DOCUMENT: PATH` for each missing file.
missing() {
  local root=$1 document path each
  for document in "${@:2}"; do
    while IFS= read -r path; do
      case $path in *[A-Z][A-Z]*.* | *\** | *\<* | build/* | ~/* | */build/* | DIR/*) continue ;; esac
      # shellcheck disable=SC2046  # brace expansion of a checked pattern
      for each in $(eval echo "$path"); do
        [ -e "$root/$each" ] || [ -e "$root/roles/$each" ] || [ -e "$root/$(dirname "$document")/$each" ] || echo "$document: $each"
      done
    done < <(grep -oE '`(\.ci|[a-z_]+)/[A-Za-z0-9_./{},*<>-]+\.[a-z{},]+`' "$root/$document" | tr -d '`' | sort -u)
  done
}

self_test() {
  local tree found
  tree=$(mktemp -d)
  mkdir -p "$tree/net/wire"
  touch "$tree/net/wire/frame.cc" "$tree/net/wire/frame.h"
  # shellcheck disable=SC2016  # backticks of Markdown
  printf '`net/wire/frame.{h,cc}` `net/wire/gone.cc` `net/NAME.cc` `tests/gone.{h,cc}`\n' >"$tree/a.md"
  found=$(missing "$tree" a.md | wc -l)
  rm -rf "$tree"
  [ "$found" -eq 3 ] || { echo "this check is broken: it found $found of 3 missing files"; exit 1; }
}

self_test
found=$(missing . HACKING.md CONTRIBUTING.md docs/extending.md docs/testing.md docs/design.md docs/performance.md \
  docs/notes/performance.md docs/wire_format.md docs/checkpoint_format.md)
[ -z "$found" ] || { echo "These documents name files that do not exist:"; echo "$found"; exit 1; }
