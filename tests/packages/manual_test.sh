#!/bin/bash
# Usage: manual_test.sh BUILD
#
# mandoc and groff report nothing about any man page.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

need mandoc man
mkdir "$scratch/man"
tar -xz --wildcards --strip-components 4 -C "$scratch/man" -f "$(only "$1/packages/*-linux-amd64.tar.gz")" '*/share/man/man1/*'
gzip -d "$scratch"/man/*.gz
[ -e "$scratch/man/disttf-launch.1" ] || fail "no page for launch"
for page in "$scratch"/man/*; do
  said=$(mandoc -T lint -W warning "$page" 2>&1; MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  [ -z "$said" ] || fail "$said"
done
