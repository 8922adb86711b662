#!/bin/bash
# Usage: link_rules_test.sh LINK_LINES
#
# The dependency rules of dependency_rules_test.sh, for linking: a target links only the targets that `allowed` lists, so
# there are no cycles, and no target that a core links uses Asio. LINK_LINES is a file of lines
# `target: library library ...` from CMake, one for each target of the product.
set -euo pipefail

# allowed TARGET: prints the targets of this project that it may link, as a regular expression;
# fails if TARGET is not one of them.
allowed() {
  case $1 in
    disttf_math | disttf_json | disttf_wire) echo 'nothing' ;;
    disttf_data) echo 'json' ;;
    disttf_waiting) echo 'asio' ;;
    disttf_memory) echo 'wire|waiting' ;;
    disttf_tls) echo 'wire|waiting|asio' ;;
    disttf_tcp) echo 'memory|tls' ;;
    disttf_http) echo 'tcp' ;;
    disttf_resolvers) echo 'wire' ;;
    disttf_render) echo 'wire|json' ;;
    disttf_run) echo 'wire|math|json' ;;
    disttf_store_core) echo 'run|data' ;;
    disttf_store) echo 'store_core|process|http' ;;
    disttf_checkpoint_core) echo 'run|data' ;;
    disttf_model_core) echo 'run|data' ;;
    disttf_predict_core) echo 'run|data|own_data|model_core' ;;
    disttf_serve_core) echo 'own_data|model_core|predict_core' ;;
    disttf_import_core) echo 'model_core|own_data' ;;
    disttf_import) echo 'import_core|checkpoint' ;;
    disttf_watch) echo 'watch_core|model_core|process' ;;
    disttf_evaluator) echo 'run|data|checkpoint_core|chief|model|watch' ;;
    disttf_chief_core) echo 'run|checkpoint_core' ;;
    disttf_servers_core) echo 'launch_core' ;;
    disttf_monitor_core) echo 'run|data' ;;
    disttf_ps_core) echo 'run|monitor_core' ;;
    disttf_launch_core) echo 'run|program_core' ;;
    disttf_*_core) echo 'run' ;;
    disttf_process) echo 'run|tcp|data' ;;
    disttf_checkpoint) echo 'checkpoint_core|process|store' ;;
    disttf_model) echo 'model_core|checkpoint' ;;
    disttf_predict) echo 'predict_core|model|download' ;;
    disttf_serve) echo 'serve_core|model|monitor|watch' ;;
    disttf_export) echo 'model_core|checkpoint_core|own_data|model|download' ;;
    disttf_own_data) echo 'data|json' ;;
    disttf_tensorboard) echo 'data' ;;
    disttf_download) echo 'process|http|own_data|store' ;;
    disttf_monitor) echo 'monitor_core|process|http|store_core|web' ;;
    disttf_ps) echo 'ps_core|checkpoint|monitor' ;;
    disttf_program) echo 'program_core|process' ;;
    disttf_trainer) echo 'trainer_core|program|checkpoint|model_core|download|monitor|monitor_core' ;;
    disttf_chief) echo 'chief_core|trainer|tensorboard|monitor|monitor_core' ;;
    disttf_doctor) echo 'run|process|http' ;;
    disttf_launch) echo 'launch_core|process|http|monitor|monitor_core|program_core' ;;
    disttf_servers) echo 'servers_core|chief|launch|monitor' ;;
    disttf_verify) echo 'program_core|launch|trainer' ;;
    disttf_command_line) echo 'license_texts|linked_packages|render|resolvers|doctor|verify|roles' ;;
    disttf) echo 'command_line' ;;
    *) return 1 ;;
  esac
}

# Targets of this project that every target may link, and packages.
readonly free='flags|version|fmt|spdlog|toml|zlib|images|minizip|http_parser'

# violations < LINK_LINES: prints `target links target` for each violation.
violations() {
  local line target library
  while IFS= read -r line; do
    target=${line%%:*}
    allowed "$target" >/dev/null || { echo "$target has no dependency rule"; continue; }
    for library in $(grep -oE '\bdisttf_[a-z_]+\b' <<<"${line#*:}" | sort -u); do
      grep -qxE "disttf_($(allowed "$target")|$free)" <<<"$library" || echo "$target links $library"
    done
  done
}

self_test() {
  local found
  found=$(printf '%s\n' 'disttf_wire: disttf_flags $<LINK_ONLY:disttf_math>' \
    'disttf_data: disttf_flags disttf_run' 'disttf_ps_core: disttf_run disttf_tcp' \
    'disttf_checkpoint: disttf_process disttf_ps' 'disttf_run: disttf_asio disttf_json disttf_data' \
    'disttf_checkpoint_core: disttf_data disttf_process' \
    'disttf_ps: disttf_ps_core disttf_checkpoint' 'disttf_new: disttf_flags' | violations | wc -l)
  [ "$found" -eq 8 ] || { echo "this check is broken: it found $found of 8 violations"; exit 1; }
}

self_test
# With fewer targets the list is incomplete.
[ "$(wc -l <"$1")" -ge 20 ] || { echo "$1 does not list the targets"; exit 1; }
found=$(violations <"$1")
if [ -n "$found" ]; then
  echo "These links break the dependency rules (listed at the head of this test):"
  echo "$found"
  exit 1
fi
