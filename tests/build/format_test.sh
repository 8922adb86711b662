#!/bin/bash
# Every C++ file conforms to .clang-format.
set -euo pipefail

if ! command -v clang-format >/dev/null; then
  echo "skipped: clang-format is not installed (make setup installs it)"
  exit 77
fi
.ci/format
