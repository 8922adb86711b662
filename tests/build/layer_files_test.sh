#!/bin/bash
# A layer is one pair of files in math/layers/ and one row of math/layers/registry.cc, as
# docs/extending.md says: no other source of the product includes the pair's header or uses the names of its types.
# The only exception is math/model_spec.cc, whose networks name their layers.
set -euo pipefail

readonly registry=math/layers/registry.cc
readonly networks=math/model_spec.cc

source "$(dirname "$0")/source_queries.sh"

# types_of FILE.cc: prints the names of its layer types, from `.name = "relu"` of a LayerType. (The
# names of a type's fields follow a brace.)
types_of() {
  awk '/^constexpr LayerType / { inside = 1 }
       inside && match($0, /\.name = "[a-z0-9_]+"/) {
         print substr($0, RSTART + 9, RLENGTH - 10)
         inside = 0
       }' "$1"
}

# findings_of FILE: prints the other sources that use the layers of math/layers/FILE.{h,cc}.
findings_of() {
  local header=math/layers/$1.h source=math/layers/$1.cc types type
  including "$header" | foreign "includes $header" "$source" "$registry"
  grep -qF "#include \"$header\"" "$registry" || echo "$registry: does not include $header"
  types=$(types_of "$source")
  [ -n "$types" ] || echo "$source: no layer type found"
  for type in $types; do
    knowing "\"$type\"" | foreign "uses the layer \"$type\", which only $source may name" "$source" "$networks"
  done
}

main() {
  local layers header findings
  layers=$(grep -lE '^\[\[nodiscard\]\] const LayerType& [a-z_]+\(\) noexcept;' math/layers/*.h)
  [ "$(wc -l <<<"$layers")" -ge 6 ] || { echo "this check is broken: it found only $layers"; exit 1; }
  findings=$(for header in $layers; do findings_of "$(basename "$header" .h)"; done)
  [ -z "$findings" ] || { echo "$findings"; exit 1; }
}

main
