#!/bin/bash
# Usage: wheel_test.sh BUILD
#
# twine and check-wheel-contents find nothing; pip installs the wheel without a network, the installed
# program runs, its package can be imported, and both can be uninstalled.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

wheel=$(only "$1/packages/*.whl")
need "$tools/twine" "$tools/check-wheel-contents"
quietly "$tools/twine" check --strict "$wheel"
quietly "$tools/check-wheel-contents" "$wheel"

unshare --map-root-user --net true 2>/dev/null || skip "this user may not make a network of its own"
alone() { unshare --map-root-user --net "$@"; }
python3 -m venv "$scratch/venv"
quietly alone "$scratch/venv/bin/pip" install --disable-pip-version-check --no-index "$wheel"
quietly "$scratch/venv/bin/pip" check --disable-pip-version-check
cmp "$1/disttf" "$scratch/venv/bin/disttf" || fail "pip has installed another file"
(cd "$scratch" && PATH=$scratch/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin trains alone bash -c 'ip link set lo up; exec disttf "$@"' --)
quietly "$scratch/venv/bin/pip" list --disable-pip-version-check
grep -q '^disttf ' "$scratch/output" || fail "pip does not list it"
version=$("$1/disttf" --version | cut -d ' ' -f 2)
found=$(cd "$scratch" && venv/bin/python -B -c 'import disttf; print(disttf.__version__); disttf.Variable')
[ "$found" = "$version" ] || fail "the package's version is $found, the program's $version"
[ "$(cd "$scratch" && venv/bin/python -B -m disttf.job 2>&1)" = \
  "disttf.job: --job_name must be a module's name (got nothing)" ] || fail "disttf.job does not run"
[ -e "$scratch/venv/share/man/man1/disttf-launch.1.gz" ] || fail "the man pages are missing"
quietly "$scratch/venv/bin/pip" uninstall --disable-pip-version-check --yes disttf
[ -z "$(find "$scratch/venv" -name '*disttf*')" ] || fail "left: $(find "$scratch/venv" -name '*disttf*')"
