#!/bin/bash
# A layer is one file pair in math/layers/ and one row of math/layers/registry.cc, as HACKING.md
# says: nothing else of the product includes the pair's header or knows the names of its types. The
# one exception is math/model_spec.cc, whose networks are made of layers by name.
set -euo pipefail

readonly registry=math/layers/registry.cc
readonly networks=math/model_spec.cc

source "$(dirname "$0")/who_knows.sh"

# types_of FILE.cc: the names of the types in it, `.name = "relu"` of a LayerType; those of its
# fields stand behind a brace.
types_of() {
  awk '/^constexpr LayerType / { inside = 1 }
       inside && match($0, /\.name = "[a-z0-9_]+"/) {
         print substr($0, RSTART + 9, RLENGTH - 10)
         inside = 0
       }' "$1"
}

# findings_of FILE: what else touches the layers of math/layers/FILE.{h,cc}.
findings_of() {
  local header=math/layers/$1.h source=math/layers/$1.cc types type
  including "$header" | foreign "includes $header" "$source" "$registry"
  grep -qF "#include \"$header\"" "$registry" || echo "$registry: does not include $header"
  types=$(types_of "$source")
  [ -n "$types" ] || echo "$source: this check finds no type in it"
  for type in $types; do
    knowing "\"$type\"" | foreign "knows the layer \"$type\", which is for $source alone" "$source" "$networks"
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
