#!/bin/bash
# Usage: deb_test.sh BUILD
#
# lintian finds nothing, and in a bare Debian the package installs, runs, and is removed without a
# trace.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

deb=$(only "$1/packages/*.deb")
need lintian
quietly lintian --allow-root --tag-display-limit 0 --fail-on error,warning,override "$deb" || true
! grep -E '^[EW]:' "$scratch/output" || fail "lintian found these"

root=$scratch/root
bare_root "$root"
cp "$deb" "$root/disttf.deb"
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ chroot "$root" "$@"; }
inside true || skip "this user may not chroot"
files() { (cd "$root" && find . -xdev ! -path './var/lib/dpkg*' ! -path './var/log/*' ! -path './tmp/*' | sort); }
files >"$scratch/before"
quietly inside dpkg -i /disttf.deb
inside disttf --version | grep -q '^disttf [0-9]' || fail "--version says something else"
trains inside disttf
[ -z "$(inside dpkg --verify disttf)" ] || fail "dpkg --verify: $(inside dpkg --verify disttf)"
dpkg-deb --contents "$deb" >"$scratch/contents"
for file in man/man1/disttf.1.gz man/man1/disttf-launch.1.gz bash-completion/completions/disttf \
  zsh/vendor-completions/_disttf fish/vendor_completions.d/disttf.fish doc/disttf/copyright; do
  # Debian's images exclude documents by a rule of dpkg, so the package's contents are checked.
  grep -q " ./usr/share/$file\$" "$scratch/contents" || fail "$file is missing"
done
quietly inside dpkg --purge disttf
files >"$scratch/after"
diff "$scratch/before" "$scratch/after" || fail "these files are left, or were taken"
