#!/bin/bash
# .ci/install asks apt for exactly what is missing, and for nothing when nothing is. A stand-in
# for dpkg-query, apt-get and sudo records what would have been done.
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
[ ! -s "$CALLS" ] || { echo "nothing was missing, yet apt-get was called:"; cat "$CALLS"; exit 1; }

MISSING=zlib1g-dev .ci/install build >/dev/null
grep -qE 'install .* zlib1g-dev$' "$CALLS" || {
  echo "zlib1g-dev was missing, and apt-get was not asked for it alone:"
  cat "$CALLS"
  exit 1
}
