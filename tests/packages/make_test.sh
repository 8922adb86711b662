#!/bin/bash
# Usage: make_test.sh BUILD
#
# Makes the packages of BUILD in BUILD/packages, twice: the second time in another folder, under
# another umask, time zone and locale, and after a second. Both times they are the same bytes.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

need ninja dpkg-deb python3
[ -e .git ] || export SOURCE_DATE_EPOCH=1700000000
python3 -B deploy/packages/make_packages.py "$1" "$1/packages"
(
  umask 077
  cd "$scratch"
  TZ=Pacific/Auckland LC_ALL=C python3 -B "$source/deploy/packages/make_packages.py" "$1" "$scratch/again" >/dev/null
)
diff -r "$1/packages" "$scratch/again" || fail "made twice, these packages differ"
cd "$1/packages"
quietly sha256sum --strict --check SHA256SUMS
# The chart is packed where there is a helm.
[ -e "$source/build/tools/helm/helm" ] && packages=6 || packages=5
[ "$(wc -l <SHA256SUMS)" -eq "$packages" ] || fail "$packages packages are expected: $(cat SHA256SUMS)"
