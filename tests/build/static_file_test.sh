#!/bin/bash
# Usage: static_file_test.sh FILE BUILD_DIR SOURCE_DIR
#
# FILE is the executable that users get: it needs no dynamic loader, it is stripped, small, hardened, and
# contains no paths of the build machine.
set -euo pipefail

readonly file=$1 build_dir=$2 source_dir=$3
readonly limit_bytes=10000000
failures=0

fail() {
  echo "$file: $*"
  failures=$((failures + 1))
}

# A static file has no interpreter and no needed library. (A static PIE has a dynamic section
# nevertheless, for its own relocations.)
program_headers=$(readelf --wide --program-headers "$file")
! grep -q 'INTERP' <<<"$program_headers" || fail "requests a dynamic loader"
! readelf --wide --dynamic "$file" | grep 'NEEDED' || fail "needs the shared libraries above"

grep -q 'GNU_RELRO' <<<"$program_headers" || fail "has no read-only relocations (-z relro)"
grep 'GNU_STACK' <<<"$program_headers" | grep -qv 'RWE' || fail "has an executable stack"
! readelf --wide --sections "$file" | grep -qE '\.(symtab|debug_info)' || fail "is not stripped"

size=$(stat -c %s "$file")
[ "$size" -le $limit_bytes ] || fail "has $size bytes, more than $limit_bytes"

# Two checkouts in different folders must give identical bytes.
for path in "$build_dir" "$source_dir/"; do
  ! grep -qF --binary-files=text -- "$path" "$file" || fail "contains the path $path"
done

# On AMD, glibc before 2.40 must not copy large blocks with REP MOVSB (math/large_copies.h): the executable must have
# found glibc's own variable.
vendor=$(awk -F ': ' '/^vendor_id/ { print $2; exit }' /proc/cpuinfo)
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | awk '{ print $2 }') || glibc=
if [ "$vendor" = AuthenticAMD ] && [ -n "$glibc" ] && [ "$(printf '%s\n' "$glibc" 2.40 | sort -V | head -1)" != 2.40 ]; then
  report=$("$file" doctor) || true
  grep -q '^processor .*large copies by vectors$' <<<"$report" || fail "copies as glibc $glibc does by default on AMD"
fi

[ $failures -eq 0 ] && echo "$size bytes"
