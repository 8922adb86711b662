#!/bin/bash
# Every C++ file is written as .clang-format says.
set -euo pipefail

if ! command -v clang-format >/dev/null; then
  echo "skipped: clang-format is not installed (make setup installs it)"
  exit 77
fi
.ci/format
