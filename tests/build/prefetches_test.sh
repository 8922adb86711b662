#!/bin/bash
# Usage: prefetches_test.sh FILE OBJDUMP
#
# Checks that FILE, which contains math/, has prefetch instructions. Tests of results do not see a
# prefetch, the compiler may remove one that seems useless, and no test measures time. So this test looks
# for the instructions.
set -euo pipefail

readonly file=$1 objdump=${2:-}
# The instructions of x86 and of aarch64, as they follow the address.
readonly instruction=':[[:space:]]+(prefetch|prfm)'
failures=0

if ! command -v "$objdump" >/dev/null; then
  echo "there is no objdump beside this compiler"
  exit 77
fi
listing=$("$objdump" --disassemble --demangle --no-show-raw-insn "$file")

# Prints the code of these functions and of their shared function, inlined or not.
body_of() {
  awk -v name="$1" '/^[0-9a-f]+ <.*>:$/ { inside = index($0, name) > 0 } inside' <<<"$listing"
}

shared=$(body_of 'Model::Impl::prefetch<')
for function in 'Model::expect(' 'Model::load('; do
  body=$(body_of "$function")
  if [ -z "$body" ]; then
    echo "$file does not contain the function $function"
    failures=$((failures + 1))
  elif ! grep -qE "$instruction" <<<"$body" &&
    ! { grep -q 'Model::Impl::prefetch<' <<<"$body" && grep -qE "$instruction" <<<"$shared"; }; then
    echo "$file: $function...) has no prefetch (math/model.cc)"
    failures=$((failures + 1))
  fi
done
exit $((failures != 0))
