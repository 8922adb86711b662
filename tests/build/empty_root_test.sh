#!/bin/bash
# Usage: empty_root_test.sh FILE
#
# FILE runs in a root directory that contains only FILE and /etc/resolv.conf: no /proc, no /dev, no
# /etc/hosts, no certificates, no time zones. A `FROM scratch` image provides no more.
set -euo pipefail

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/etc"
cp "$1" "$root/disttf"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || : >"$root/etc/resolv.conf"

# inside ARGS...: runs disttf in the empty root, with chroot or a user namespace.
readonly chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
if "$chroot" / true 2>/dev/null; then
  inside() { env -i "$chroot" "$root" /disttf "$@"; }
elif unshare --user --map-root-user "$chroot" / true 2>/dev/null; then
  inside() { env -i unshare --user --map-root-user "$chroot" "$root" /disttf "$@"; }
else
  echo "skipped: this user may neither chroot nor make a user namespace"
  exit 77
fi

inside --version | grep -q '^disttf [0-9]' || { echo "--version does not print 'disttf N'"; exit 1; }

# disttf must resolve localhost without /etc/hosts, and launch must find its own executable without
# /proc.
inside launch --dataset digits --train_steps 20 --ps 1 --workers 2 >"$root/out" 2>"$root/err" || {
  echo "launch failed with exit code $? in an empty root:"
  cat "$root/out" "$root/err"
  exit 1
}
grep -q '^Digits accuracy: 0\.' "$root/out" || {
  echo "launch printed no 'Digits accuracy: 0.' line in an empty root:"
  cat "$root/out" "$root/err"
  exit 1
}
