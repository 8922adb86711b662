#!/bin/bash
# Usage: aarch64_test.sh BUILD_AARCH64 BUILD_X86_64
#
# The aarch64 build, run under qemu's emulation, computes results that are bit-identical to those of the x86-64 build
# on this machine, which must have AVX2:
#
#   losses' gradients, and all intermediate results, of models with each kind of layer, whose products are chains of
#   fused multiply-adds on both;
#   the weights of a run of a ps and two workers with a secret, on the built-in digits. Halfway the run saves a
#   checkpoint, from which the x86-64 build reaches the same weights.
#
# Exits with 77, and says why, if the emulator is missing. `make aarch64` builds both and runs this.
set -euo pipefail

arm=$(realpath "$1") x86=$(realpath "$2")
readonly arm x86 qemu=qemu-aarch64-static steps=60
command -v $qemu >/dev/null || { echo "There is no $qemu."; exit 77; }
folder=$(mktemp -d)
readonly folder
clean_up() {
  local tasks
  tasks=$(jobs -p)
  # shellcheck disable=SC2086  # several process ids
  [ -z "$tasks" ] || kill -9 $tasks 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT

gradients() {
  local arrays
  mkdir "$folder/aarch64" "$folder/x86-64"
  $qemu "$arm/tests/math/math_gradient_files" "$folder/aarch64"
  "$x86/tests/math/math_gradient_files" "$folder/x86-64"
  diff -rq "$folder/aarch64" "$folder/x86-64"
  arrays=$(find "$folder/aarch64" -name '*.npy' | wc -l)
  [ "$arrays" -gt 0 ] || { echo "The builds wrote no arrays to compare."; exit 1; }
  echo "Bit-identical: $arrays arrays, gradients among them."
}

free_ports() {
  python3 -c 'import socket
sockets = [socket.socket() for _ in range(3)]
for each in sockets: each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in sockets))'
}

# Starts the tasks one by one: a launch would execute the file itself, which this machine cannot
# run.
emulated_run() {
  local ps first second hosts
  read -r ps first second < <(free_ports)
  hosts=(--ps_hosts "127.0.0.1:$ps" --worker_hosts "127.0.0.1:$first,127.0.0.1:$second")
  export DISTTF_SECRET=c2VjcmV0IG9mIHRoZSB0ZXN0LCBvZiAzMiBieXRlcyE=
  $qemu "$arm/disttf" ps --task_index 0 "${hosts[@]}" >"$folder/ps.log" 2>&1 &
  $qemu "$arm/disttf" worker --task_index 1 "${hosts[@]}" >"$folder/worker.log" 2>&1 &
  $qemu "$arm/disttf" worker --task_index 0 "${hosts[@]}" --dataset digits --train_steps $steps \
    --save_steps $((steps / 2)) --save_secs 0 --train_dir "$folder/run" --print_weights_hash \
    >"$folder/chief.log" 2>&1 || { cat "$folder"/*.log; exit 1; }
  wait
  unset DISTTF_SECRET
}

# weights_of LOG: prints the hash of the weights.
weights_of() { grep -h '^Weights SHA-256: ' "$1" || { cat "$1" >&2 && return 1; }; }

x86_run() {
  "$x86/disttf" launch --ps 1 --workers 2 --dataset digits --train_steps $steps --print_weights_hash \
    "$@" >"$folder/launch.log" 2>&1
  weights_of "$folder/launch.log"
}

run_and_checkpoint() {
  local emulated native from_checkpoint
  emulated_run
  emulated=$(weights_of "$folder/chief.log")
  native=$(x86_run)
  [ "$emulated" = "$native" ] || { echo "aarch64: $emulated; x86-64: $native"; exit 1; }
  find "$folder/run" -maxdepth 1 -name "checkpoint-*$steps" -exec rm -rf {} +  # the second half must be computed again
  from_checkpoint=$(x86_run --train_dir "$folder/run")
  grep -q "Restoring from .*: global step $((steps / 2))," "$folder/launch.log" ||
    { cat "$folder/launch.log"; exit 1; }
  [ "$from_checkpoint" = "$native" ] || { echo "From aarch64's checkpoint: $from_checkpoint; x86-64: $native"; exit 1; }
  echo "The same weights after $steps steps, and from the checkpoint in between: $native"
}

gradients
run_and_checkpoint
