#!/bin/bash
# Usage: image_test.sh BUILD
#
# podman loads the image and runs it without a network and with a read-only root; the image has its
# labels.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

image=$(only "$1/packages/*.oci.tar")
need podman crun
# The containers require as little as possible of the machine; podman's own files lie in scratch/.
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

# A separate mount namespace: crun takes a machine with both cgroup versions for version 2, and
# podman keeps locks in /run.
machine() {
  unshare --mount --net --pid --fork --kill-child --mount-proc bash -c \
    'umount /sys/fs/cgroup/unified 2>/dev/null; mount -t tmpfs tmpfs /run && exec "$@"' machine "$@"
}
machine true 2>/dev/null || skip "this process may not make namespaces"
# Everything runs in one namespace, so that podman's mounts are removed with it.
# shellcheck disable=SC2016  # for the inner shell
quietly machine bash -euc '
  podman load --quiet --input "$1"
  image=$(podman images --format "{{.Repository}}:{{.Tag}}" --noheading)
  echo "image $image"
  podman image inspect --format "{{json .Labels}}{{.Os}}/{{.Architecture}}" "$image"
  podman image inspect --format "user {{.Config.User}}" "$image"
  run() { podman run --rm --network=none --read-only "$image" "$@"; }
  run --version
  run launch --dataset digits --train_steps 20 --ps 1 --workers 2
  # The health check asks the disttf of the container: alone it finds no task, beside a launch it finds that
  # launch.
  ! run healthcheck || { echo "a container without a task is well"; exit 1; }
  podman run --detach --name trains --network=none --read-only "$image" launch --dataset digits \
    --train_steps 1000000000 --log_every 1 >/dev/null
  until podman logs trains 2>&1 | grep -q "training step 1 done"; do
    [ "$(podman inspect --format "{{.State.Running}}" trains)" = true ] || { podman logs trains; exit 1; }
  done
  podman exec trains /disttf healthcheck
  podman kill --signal STOP trains >/dev/null
  ! podman exec trains /disttf healthcheck || { echo "a container that is stopped is well"; exit 1; }
  podman kill --signal KILL trains >/dev/null
' -- "$image"
cp "$scratch/output" "$scratch/said"
has() { grep -qE "$1" "$scratch/said" || { cat "$scratch/said"; fail "podman did not say $1"; }; }
has '^user 65532:65532$'
has '^disttf launch, process 1: well$'
has 'disttf launch, process 1, is stopped$'
# Checks the parts of an OCI image that podman does not show.
python3 -B - "$image" <<'EOF'
import json, sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    read = lambda name: json.load(archive.extractfile(name))
    blob = lambda described: read("blobs/" + described["digest"].replace(":", "/"))
    manifest = blob(read("index.json")["manifests"][0])
    config = blob(manifest["config"])["config"]
    assert config["Healthcheck"]["Test"] == ["CMD", "/disttf", "healthcheck"], config
    assert all(config["Labels"].values()), config["Labels"]
EOF
# The Containerfile, whose image is a different one, has the same version and user, and leaves no label empty.
version=$("$1/disttf" --version | sed -E 's/^disttf ([0-9.]+).*/\1/')
for line in "ARG VERSION=$version" 'USER 65532:65532' 'HEALTHCHECK .* CMD \["/disttf", "healthcheck"\]'; do
  grep -qE "^$line\$" Containerfile || fail "Containerfile: no line $line"
done
! grep -E '^ARG (VERSION|REVISION|SOURCE)$' Containerfile || fail "Containerfile: an argument without a value leaves an empty label"
has '^image localhost/disttf:[0-9]'
has '"org.opencontainers.image.title":"disttf"'
has '"org.opencontainers.image.created":"20'
# The Containerfile has the same description.
summary=$(cd deploy/packages && python3 -Bc 'import facts; print(facts.SUMMARY)')
grep -qF "org.opencontainers.image.description=\"$summary\"" Containerfile || fail "Containerfile: another description"
has "\"org.opencontainers.image.description\":\"$summary"
has 'linux/amd64$'
has '^disttf [0-9]'
has '^Digits accuracy: 0\.'
