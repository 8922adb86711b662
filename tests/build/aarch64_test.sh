#!/bin/bash
# Usage: aarch64_test.sh BUILD_AARCH64 BUILD_X86_64
#
# What is compiled for aarch64, run by qemu's emulation of such a processor, computes the same bits as what
# is compiled for x86-64 does on this machine, which must have AVX2: losses' gradients, and all that they come
# of, of models with each kind of layer, whose products are chains of fused multiply-adds on both. Exit code
# 77, and why, where there is no emulation.
#
# `make aarch64` builds both and runs this.
set -euo pipefail

readonly arm=$1 x86=$2
command -v qemu-aarch64-static >/dev/null || { echo "There is no qemu-aarch64-static."; exit 77; }
folder=$(mktemp -d)
readonly folder
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/aarch64" "$folder/x86-64"
qemu-aarch64-static "$arm/tests/math/math_gradient_files" "$folder/aarch64"
"$x86/tests/math/math_gradient_files" "$folder/x86-64"
diff -rq "$folder/aarch64" "$folder/x86-64"
arrays=$(find "$folder/aarch64" -name '*.npy' | wc -l)
[ "$arrays" -gt 0 ] || { echo "There are no arrays to compare."; exit 1; }
echo "The same bits: $arrays arrays, gradients among them."
