#!/bin/bash
# Usage: examples_test.sh DISTTF
#
# Runs the commands of examples/README.md in a folder that contains only the examples, and checks their output.
# Adds flags for small machines, so the exact result is not checked.
set -euo pipefail

disttf=$1
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
cp -r examples "$scratch"
mapfile -t commands < <(sed -n 's|^    build/release/disttf ||p' examples/README.md)
[ "${#commands[@]}" -ge 4 ] || { echo "examples/README.md has only ${#commands[@]} commands"; exit 1; }
cd "$scratch"
for command in "${commands[@]}"; do
  # shellcheck disable=SC2086  # several words
  "$disttf" $command </dev/null >>said 2>log || { cat log said; echo "failed: disttf $command"; exit 1; }
done
for line in '^iris: 150 rows of 4 numbers, 3 classes in column species' '^iris accuracy: ' \
  '^Digits accuracy: ' 'five\.png: 5 ' 'seven\.png: 7 '; do
  grep -qE "$line" said || { cat said; echo "no line $line"; exit 1; }
done
