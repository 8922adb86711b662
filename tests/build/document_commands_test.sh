#!/bin/bash
# Usage: document_commands_test.sh DISTTF
#
# Runs the commands in code blocks of the documents that need no cluster and no network: they must exit
# with 0. (tests/main/document_commands_test.cc parses all of them.)
set -euo pipefail

disttf=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT

# commands FILE...: `FILE:LINE:COMMAND` without the prompt, a comment and what follows a pipe.
commands() {
  grep -HnE '^ +(\$ )?disttf (render|model|data|completion|licenses|resolve|launch --data|predict run examples/iris)' "$@" |
    grep -vF '...' | sed -E 's/:( +)(\$ )?disttf /:disttf /; s/ +#.*//; s/ \|.*//'
}

# The files that a user of these commands has.
mkdir -p "$scratch/bin" "$scratch/.zfunc" "$scratch/.config/fish/completions"
ln -s "$disttf" "$scratch/bin/disttf"
cp -r examples recipes "$scratch"
cd "$scratch"
head -c 24 /dev/urandom | base64 >mnist.secret
chmod 600 mnist.secret
printf 'workers = 2\nps = 1\nsecret = "mnist-secret"\nimage = "disttf"\n' >mnist.toml
printf '[[layer]]\ntype = "flatten"\n\n[[layer]]\ntype = "dense"\nunits = 10\n' >small.toml
echo '{"service": {"name": "mnist"}, "worker": {"count": 2}, "parameter_server": {"count": 1}}' >mnist.json
cd - >/dev/null

mapfile -t lines < <(commands README.md docs/*.md docs/targets/*.md)
[ "${#lines[@]}" -ge 25 ] || { echo "the documents have only ${#lines[@]} such commands"; exit 1; }
cd "$scratch"
failed=0
for line in "${lines[@]}"; do
  command=${line#*:*:}
  if ! HOME=$scratch PATH=$scratch/bin:$PATH bash -c "$command" </dev/null >said 2>log; then
    echo "${line%%:disttf*}: $command"
    tail -n 3 log
    failed=1
  fi
done
echo "${#lines[@]} commands ran"
exit "$failed"
