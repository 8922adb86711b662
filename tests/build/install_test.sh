#!/bin/bash
# .ci/install asks apt for exactly the missing packages, and does not call apt if none is missing.
# Stubs of dpkg-query, apt-get and sudo record the calls.
set -euo pipefail

stand_ins=$(mktemp -d)
trap 'rm -rf "$stand_ins"' EXIT
cat >"$stand_ins/dpkg-query" <<'EOF'
#!/bin/bash
[ "${!#}" != "$MISSING" ] && echo installed
EOF
cat >"$stand_ins/apt-get" <<'EOF'
#!/bin/bash
echo "$@" >>"$CALLS"
EOF
printf '#!/bin/bash\nexec "$@"\n' >"$stand_ins/sudo"
chmod +x "$stand_ins"/*
export CALLS=$stand_ins/calls PATH=$stand_ins:$PATH

: >"$CALLS"
MISSING=none .ci/install build test dev
[ ! -s "$CALLS" ] || { echo "no package was missing, but apt-get was called:"; cat "$CALLS"; exit 1; }

MISSING=zlib1g-dev .ci/install build >/dev/null
grep -qE 'install .* zlib1g-dev$' "$CALLS" || {
  echo "zlib1g-dev was missing, but apt-get was not called for exactly that package:"
  cat "$CALLS"
  exit 1
}
