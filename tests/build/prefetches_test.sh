#!/bin/bash
# Usage: prefetches_test.sh FILE OBJDUMP
#
# FILE has the library's math/ in it. A prefetch changes nothing that a test of results would see,
# and the compiler may take it for nothing, too, and leave it out; no test measures time. So this
# one looks for the instructions.
set -euo pipefail

readonly file=$1 objdump=${2:-}
# x86's and aarch64's, behind its address.
readonly instruction=':[[:space:]]+(prefetch|prfm)'
failures=0

if ! command -v "$objdump" >/dev/null; then
  echo "there is no objdump beside this compiler"
  exit 77
fi
listing=$("$objdump" --disassemble --demangle --no-show-raw-insn "$file")

# What these functions and the one they share are made of: inlined or not, it is there.
body_of() {
  awk -v name="$1" '/^[0-9a-f]+ <.*>:$/ { inside = index($0, name) > 0 } inside' <<<"$listing"
}

shared=$(body_of 'Model::Impl::prefetch<')
for function in 'Model::expect(' 'Model::load('; do
  body=$(body_of "$function")
  if [ -z "$body" ]; then
    echo "$file has no function $function"
    failures=$((failures + 1))
  elif ! grep -qE "$instruction" <<<"$body" &&
    ! { grep -q 'Model::Impl::prefetch<' <<<"$body" && grep -qE "$instruction" <<<"$shared"; }; then
    echo "$file: $function...) asks for nothing ahead (math/model.cc)"
    failures=$((failures + 1))
  fi
done
exit $((failures != 0))
