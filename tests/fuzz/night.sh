#!/bin/bash
# Usage: tests/fuzz/night.sh BUILD HOURS JOBS
#
# Runs every fuzz target of BUILD, JOBS in parallel, until HOURS have passed, and prints for each the number of inputs
# tried. Inputs with new coverage stay in BUILD/tests/fuzz/found, from where grow_corpus.sh takes them. Exits with 1
# if there is a finding, and prints the command that reproduces each.
set -euo pipefail

readonly build=$1 hours=$2 jobs=$3
readonly logs=$build/tests/fuzz/logs findings=$build/tests/fuzz/findings
mkdir -p "$logs" "$findings"

targets=$(wc -l <"$build/tests/fuzz/targets.txt")
seconds=$(awk -v hours="$hours" -v jobs="$jobs" -v targets="$targets" \
  'BEGIN { rounds = int((targets + jobs - 1) / jobs); print int(hours * 3600 / rounds) + 1 }')
readonly seconds
echo "$targets targets, $seconds s each, $jobs at once"
printf '%-24s %12s %10s %10s\n' target inputs 'a second' 'reach more'

# search NAME CORPUS
search() {
  local log=$logs/$1.log found=$build/tests/fuzz/found/$1 status=0
  mkdir -p "$found"
  "$build/tests/fuzz/$1" -max_total_time="$seconds" -timeout=30 -print_final_stats=1 \
    -artifact_prefix="$findings/$1-" "$found" "tests/fuzz/$2" >"$log" 2>&1 </dev/null || status=$?
  awk -v name="$1" '/^stat::number_of_executed_units/ { inputs = $2 }
                    /^stat::average_exec_per_sec/ { rate = $2 }
                    /^stat::new_units_added/ { added = $2 }
                    END { printf "%-24s %12d %10d %10d\n", name, inputs, rate, added }' "$log"
  if [ "$status" != 0 ]; then
    echo "$1 FOUND something ($log): $build/tests/fuzz/$1 $(find "$findings" -name "$1-*" ! -name "$1-slow-unit-*" -newer "$logs/begun" | head -n 1)"
    return 1
  fi
}
export -f search
export build logs findings seconds

touch "$logs/begun"
status=0
xargs -P "$jobs" -L 1 bash -c 'search "$@"' _ <"$build/tests/fuzz/targets.txt" | tee "$logs/table.txt" ||
  status=1
awk '$2 ~ /^[0-9]+$/ { sum += $2 } END { printf "%-24s %12d\n", "all", sum }' "$logs/table.txt"
exit "$status"
