#!/bin/bash
# Usage: run_tests.sh [PYTHON]   (default: Debian's, if it has pytest and NumPy, else the python3 of PATH)
#
# Runs the tests of the package disttf: those of the protocol and of the clients in other languages always, those of a
# framework where PYTHON has it. Exits with 77 if PYTHON has no pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

python=${1:-python3}
if [ $# -eq 0 ] && /usr/bin/python3 -c 'import numpy, pytest' 2>/dev/null; then
  python=/usr/bin/python3
fi
"$python" -c 'import pytest' 2>/dev/null || {
  echo "skipped: $python has no pytest"
  exit 77
}
export PYTHONDONTWRITEBYTECODE=1
"$python" -m pytest -q -p no:cacheprovider tests
