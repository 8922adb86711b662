#!/bin/bash
# A layer is one file pair in math/layers/ and one row of math/layers/registry.cc, as HACKING.md
# says: nothing else of the product includes the pair's header or knows the names of its types. The
# one exception is math/model_spec.cc, whose networks are made of layers by name.
set -euo pipefail

readonly registry=math/layers/registry.cc
readonly networks=math/model_spec.cc

# sources: all of the product's, one a line.
sources() { find math data net roles main -name '*.cc' -o -name '*.h' -o -name '*.inc'; }

# knowing TYPE: the sources that quote its name, comments aside.
knowing() {
  sources | xargs awk -v name="\"$1\"" '{ sub(/\/\/.*/, "") } index($0, name) { print FILENAME; nextfile }'
}

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
  sources | xargs grep -lF "#include \"$header\"" | grep -vxF -e "$source" -e "$registry" |
    sed "s|\$|: includes $header|" || true
  grep -qF "#include \"$header\"" "$registry" || echo "$registry: does not include $header"
  types=$(types_of "$source")
  [ -n "$types" ] || echo "$source: this check finds no type in it"
  for type in $types; do
    knowing "$type" | grep -vxF -e "$source" -e "$networks" |
      sed "s|\$|: knows the layer \"$type\", which is for $source alone|" || true
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
