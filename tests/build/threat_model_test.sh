#!/bin/bash
# Every test that docs/threat_model.md names exists: each row with a mitigation names the test that demonstrates it.
set -euo pipefail

# missing DOCUMENT TESTS: prints each Suite.Name of DOCUMENT that does not exist below TESTS.
missing() {
  local name
  while IFS= read -r name; do
    grep -rqzE "TEST(_F|_P)?\\(${name%.*},\\s*${name#*.}\\)" --include='*.cc' "$2" || echo "$name"
  done < <(grep -oE '`[A-Z][A-Za-z0-9]+\.[A-Z][A-Za-z0-9]+`' "$1" | tr -d '`' | sort -u)
}

self_test() {
  local tree found
  tree=$(mktemp -d)
  printf 'TEST_F(Suite,\n       IsThere) {}\n' >"$tree/a.cc"
  printf '| x | `Suite.IsThere`, `Suite.IsNot` | `make fuzz` |\n' >"$tree/a.md"
  found=$(missing "$tree/a.md" "$tree")
  rm -rf "$tree"
  [ "$found" = Suite.IsNot ] || { echo "this check is broken: it found '$found' missing"; exit 1; }
}

self_test
gone=$(missing docs/threat_model.md tests)
if [ -n "$gone" ]; then
  printf 'docs/threat_model.md names tests that are not there:\n%s\n' "$gone"
  exit 1
fi
