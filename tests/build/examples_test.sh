#!/bin/bash
# Usage: examples_test.sh DISTTF
#
# The commands of examples/README.md and what they print, in a folder that has the examples alone. Flags
# for small machines are added: the result is not looked at closely.
set -euo pipefail

disttf=$1
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
cp -r examples "$scratch"
mapfile -t commands < <(sed -n 's|^    build/release/disttf ||p' examples/README.md)
[ "${#commands[@]}" -ge 4 ] || { echo "examples/README.md has only ${#commands[@]} commands"; exit 1; }
cd "$scratch"
for command in "${commands[@]}"; do
  # shellcheck disable=SC2086  # words
  "$disttf" $command </dev/null >>said 2>log || { cat log said; echo "failed: disttf $command"; exit 1; }
done
for line in '^iris: 150 rows of 4 numbers, 3 classes in column species' '^iris accuracy: ' \
  '^Digits accuracy: ' 'five\.png: 5 ' 'seven\.png: 7 '; do
  grep -qE "$line" said || { cat said; echo "no line $line"; exit 1; }
done
