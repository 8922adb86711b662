#!/bin/bash
# Each mutant of tests/sim/mutants/list.txt still changes its source. `make mutants` takes hours, so a script
# that a later change of the source has made useless would go unnoticed.
set -euo pipefail

readonly list=tests/sim/mutants/list.txt

mutants=0
failed=0
while IFS= read -r line; do
  case $line in '#'* | '') continue ;; esac
  mutants=$((mutants + 1))
  name=${line%% | *}
  rest=${line#* | }
  file=${rest%% | *}
  script=${rest#* | }
  script=${script% | *}
  if [ ! -f "$file" ]; then
    echo "$list: $name: there is no $file"
    failed=$((failed + 1))
  elif sed "$script" "$file" | cmp -s - "$file"; then
    echo "$list: $name: the script does not change $file"
    failed=$((failed + 1))
  fi
done <"$list"
if [ "$mutants" -eq 0 ]; then
  echo "this check is broken: it found no mutants in $list"
  exit 1
fi
[ "$failed" -eq 0 ]
