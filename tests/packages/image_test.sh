#!/bin/bash
# Usage: image_test.sh BUILD
#
# podman loads the image and runs it, without a network, with a root that cannot be written to; it
# has its labels.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

image=$(only "$1/packages/*.oci.tar")
need podman crun
# What containers need of the machine is the least there is, and podman's own files lie in scratch/.
cat >"$scratch/containers.conf" <<EOF
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "$scratch/tmp"
EOF
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/images"\nrunroot = "%s/run"\n' "$scratch" "$scratch" >"$scratch/storage.conf"
export CONTAINERS_CONF=$scratch/containers.conf CONTAINERS_STORAGE_CONF=$scratch/storage.conf

# Its own mounts: crun takes a machine with both cgroup versions for one of version 2, and podman
# keeps locks in /run.
machine() {
  unshare --mount --net --pid --fork --kill-child --mount-proc bash -c \
    'umount /sys/fs/cgroup/unified 2>/dev/null; mount -t tmpfs tmpfs /run && exec "$@"' machine "$@"
}
machine true 2>/dev/null || skip "this process may not make namespaces"
# All in one: what podman has mounted goes with the machine.
# shellcheck disable=SC2016  # for the shell inside
quietly machine bash -euc '
  podman load --quiet --input "$1"
  image=$(podman images --format "{{.Repository}}:{{.Tag}}" --noheading)
  echo "image $image"
  podman image inspect --format "{{json .Labels}}{{.Os}}/{{.Architecture}}" "$image"
  run() { podman run --rm --network=none --read-only "$image" "$@"; }
  run --version
  run launch --dataset digits --train_steps 20 --ps 1 --workers 2
' -- "$image"
cp "$scratch/output" "$scratch/said"
has() { grep -qE "$1" "$scratch/said" || { cat "$scratch/said"; fail "podman did not say $1"; }; }
has '^image localhost/disttf:[0-9]'
has '"org.opencontainers.image.title":"disttf"'
has '"org.opencontainers.image.created":"20'
# The Containerfile, whose image is another one, says the same.
summary=$(cd deploy/packages && python3 -Bc 'import facts; print(facts.SUMMARY)')
grep -qF "org.opencontainers.image.description=\"$summary\"" Containerfile || fail "Containerfile: another description"
has "\"org.opencontainers.image.description\":\"$summary"
has 'linux/amd64$'
has '^disttf [0-9]'
has '^Digits accuracy: 0\.'
