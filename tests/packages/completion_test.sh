#!/bin/bash
# Usage: completion_test.sh SHELL FILE
#
# A real, interactive SHELL that has read its completion script completes the typed text.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

need "$1" python3
mkdir "$scratch/bin" "$scratch/home" "$scratch/home/trained"
touch "$scratch/home/labels.idx"
"$2" completion "$1" >"$scratch/completion"
# Stands in for disttf and prints the arguments of the completed line.
cat >"$scratch/bin/disttf" <<EOF
#!/bin/bash
[ "\${1:-}" != __complete ] || exec "$2" "\$@"
printf 'CALLED'; printf '[%s]' "\$@"; echo
EOF
chmod +x "$scratch/bin/disttf"
cd "$scratch/home"
PATH=$scratch/bin:$PATH HOME=$scratch/home python3 -B "$source/tests/packages/complete_in_shell.py" "$1" "$scratch/completion"
