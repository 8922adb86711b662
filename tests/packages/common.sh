# Shared functions of the tests of packages; to be sourced.
# shellcheck shell=bash
set -euo pipefail

# The tools lie in the checkout and not in a build folder, so that all builds share them.
readonly source=$PWD tools=$PWD/build/tools/package_tools/bin
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8

scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT

fail() {
  echo "$*"
  exit 1
}

# skip WHY: skips the test like tests/support/engines.h.
skip() {
  [ "${DISTTF_REQUIRE_ENGINES:-}" != 1 ] ||
    fail "DISTTF_REQUIRE_ENGINES is 1, so this test may not be skipped: $*"
  echo "skipped: $*"
  exit 77
}

# need PROGRAM...
need() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || skip "$program is missing (.ci/install package, .ci/tools package_tools)"
  done
}

# only GLOB: prints the one file that matches.
only() {
  local found
  found=$(compgen -G "$1") && [ "$(wc -l <<<"$found")" -eq 1 ] || fail "$1 is not one file: $found"
  echo "$found"
}

# quietly COMMAND...: shows the output only on failure.
quietly() {
  "$@" >"$scratch/output" 2>&1 || { cat "$scratch/output"; fail "failed with $?: $*"; }
}

# trains COMMAND...: checks that `COMMAND launch`, a few steps on the built-in digits, prints a
# result.
trains() {
  quietly "$@" launch --dataset digits --train_steps 20 --ps 1 --workers 2
  grep -q '^Digits accuracy: 0\.' "$scratch/output" || { cat "$scratch/output"; fail "no result: $*"; }
}

# bare_root DIR: unpacks Debian's essential packages and nothing else.
bare_root() {
  local tar=$source/build/tools/bare_root/root.tar
  [ -e "$tar" ] || skip "$tar is not there: .ci/tools makes it"
  mkdir -p "$1"
  tar -x --exclude='./dev/*' -C "$1" -f "$tar" || skip "this user may not make a root"
}
