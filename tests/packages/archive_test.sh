#!/bin/bash
# Usage: archive_test.sh BUILD
#
# The tar.gz, unpacked into an otherwise empty root, runs there.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

archive=$(only "$1/packages/*-linux-amd64.tar.gz")
root=$scratch/root
mkdir "$root"
tar -xz --no-same-owner --strip-components 1 -C "$root" -f "$archive"
inside() { env -i unshare --map-root-user --root "$root" "$@"; }
inside /bin/disttf --version >/dev/null 2>&1 || skip "this user may not chroot"
trains inside /bin/disttf
gzip -dc "$root/share/man/man1/disttf.1.gz" | grep -q '^\.TH DISTTF 1 ' || fail "disttf.1.gz is no man page"
grep -q 'openssl\|OpenSSL' "$root/share/doc/disttf/copyright" || fail "copyright does not name OpenSSL"
bash -n "$root/share/bash-completion/completions/disttf"
