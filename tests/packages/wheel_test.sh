#!/bin/bash
# Usage: wheel_test.sh BUILD
#
# twine and check-wheel-contents find nothing; pip installs the wheel without a network, and the
# installed program runs and can be uninstalled.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

wheel=$(only "$1/packages/*.whl")
need "$tools/twine" "$tools/check-wheel-contents"
quietly "$tools/twine" check --strict "$wheel"
# W007 requires a module to import, but this wheel contains a program.
quietly "$tools/check-wheel-contents" --ignore W007 "$wheel"

unshare --map-root-user --net true 2>/dev/null || skip "this user may not make a network of its own"
alone() { unshare --map-root-user --net "$@"; }
python3 -m venv "$scratch/venv"
quietly alone "$scratch/venv/bin/pip" install --disable-pip-version-check --no-index "$wheel"
quietly "$scratch/venv/bin/pip" check --disable-pip-version-check
cmp "$1/disttf" "$scratch/venv/bin/disttf" || fail "pip has installed another file"
(cd "$scratch" && PATH=$scratch/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin trains alone bash -c 'ip link set lo up; exec disttf "$@"' --)
quietly "$scratch/venv/bin/pip" list --disable-pip-version-check
grep -q '^disttf ' "$scratch/output" || fail "pip does not list it"
[ -e "$scratch/venv/share/man/man1/disttf-launch.1.gz" ] || fail "the man pages are missing"
quietly "$scratch/venv/bin/pip" uninstall --disable-pip-version-check --yes disttf
[ -z "$(find "$scratch/venv" -name '*disttf*')" ] || fail "left: $(find "$scratch/venv" -name '*disttf*')"
