#!/bin/bash
# Usage: make_test.sh BUILD
#
# Builds the packages of BUILD twice: the second time in another folder, with another umask, time
# zone and locale, and at least a second later. Both times the packages are identical.
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
# The chart is packed only if helm is installed.
[ -e "$source/build/tools/helm/helm" ] && packages=6 || packages=5
[ "$(wc -l <SHA256SUMS)" -eq "$packages" ] || fail "$packages packages are expected: $(cat SHA256SUMS)"
