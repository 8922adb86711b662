#!/bin/bash
# Usage: static_file_test.sh FILE BUILD_DIR SOURCE_DIR
#
# FILE is what users get: it needs no dynamic loader, it is stripped, small, hardened, and says
# nothing of the machine that built it.
set -euo pipefail

readonly file=$1 build_dir=$2 source_dir=$3
readonly limit_bytes=10000000
failures=0

fail() {
  echo "$file: $*"
  failures=$((failures + 1))
}

# An interpreter or a needed library is what "static" must not have. (A static PIE has a dynamic
# section all the same, for its own relocations.)
program_headers=$(readelf --wide --program-headers "$file")
! grep -q 'INTERP' <<<"$program_headers" || fail "asks for a dynamic loader"
! readelf --wide --dynamic "$file" | grep 'NEEDED' || fail "needs the shared libraries above"

grep -q 'GNU_RELRO' <<<"$program_headers" || fail "has no read-only relocations (-z relro)"
grep 'GNU_STACK' <<<"$program_headers" | grep -qv 'RWE' || fail "has an executable stack"
! readelf --wide --sections "$file" | grep -qE '\.(symtab|debug_info)' || fail "is not stripped"

size=$(stat -c %s "$file")
[ "$size" -le $limit_bytes ] || fail "has $size bytes, more than $limit_bytes"

# Two checkouts in two places give the same bytes.
for path in "$build_dir" "$source_dir/"; do
  ! grep -qF --binary-files=text -- "$path" "$file" || fail "contains the path $path"
done

# On AMD, glibc before 2.40 is to be kept from copying large blocks by REP MOVSB (math/large_copies.h): its
# own variable has to have been found in the file.
vendor=$(awk -F ': ' '/^vendor_id/ { print $2; exit }' /proc/cpuinfo)
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | awk '{ print $2 }') || glibc=
if [ "$vendor" = AuthenticAMD ] && [ -n "$glibc" ] && [ "$(printf '%s\n' "$glibc" 2.40 | sort -V | head -1)" != 2.40 ]; then
  report=$("$file" doctor) || true
  grep -q '^processor .*large copies by vectors$' <<<"$report" || fail "copies as glibc $glibc does on AMD"
fi

[ $failures -eq 0 ] && echo "$size bytes"
