#!/bin/bash
# A loss, an optimizer, a data set and a command each are a file (or a pair) and a row of a registry, as
# docs/extending.md says; the first two also have an enumerator. No other source of the product includes
# that file or uses the name. The exceptions are listed below, each with its reason.
set -euo pipefail

source "$(dirname "$0")/source_queries.sh"

# Findings that are allowed, and the reason; each of them must occur.
readonly exceptions="\
roles/trainer/shell/built_in_source.cc: uses kMeanSquaredError  # the default of --loss for numeric labels
math/model_spec.h: uses kSoftmaxCrossEntropy  # the default otherwise
math/optimizer_adamw.h: includes math/optimizer_adam.h  # adamw is adam with decoupled decay
math/optimizer_adamw.h: uses AdamRule  # the same reason
math/layers/batch_norm.cc: uses \"momentum\"  # a field of the layer
math/optimizer.cc: uses \"momentum\"  # the setting
run/settings.cc: uses \"momentum\"  # the setting
run/config_json.cc: uses \"momentum\"  # of a running statistic
run/program/program_facts.cc: uses \"momentum\"  # the same
main/render_flags.h: uses \"mnist\"  # the default name of a deployment
main/render/deployment.h: uses \"mnist\"  # the same default"

# word FILE PATTERN [GROUP]: prints the first match of a group of PATTERN, an extended regular expression.
word() { sed -nE "s/.*$2.*/\\${3:-1}/p" "$1" | head -n 1; }

# only_known_to TEXT FILE...: prints a finding for each other source that contains TEXT.
only_known_to() { knowing "$1" | foreign "uses $1" "${@:2}"; }

# rows_of HEADER SOURCE REGISTRY: prints the findings that all kinds have in common.
rows_of() {
  including "$1" | foreign "includes $1" "$2" "$3"
  grep -qF "#include \"$1\"" "$3" || echo "$3: does not include $1"
}

losses() {
  local header name stem enumerator
  for header in $(grep -lE '^\[\[nodiscard\]\] const LossType& [a-z_]+\(\) noexcept;' math/losses/*.h |
    grep -vxF math/losses/registry.h); do
    stem=${header%.h}
    rows_of "$header" "$stem.cc" math/losses/registry.cc
    name=$(word "$stem.cc" '\.name = "([a-z_0-9]+)"')
    enumerator=$(sed -E 's/(^|_)(.)/\U\2/g' <<<"$name")
    only_known_to "\"$name\"" "$stem.cc"
    only_known_to "k$enumerator" "$stem.cc" math/losses/registry.h
    echo "loss $name"
  done
}

optimizers() {
  local header name class
  for header in $(grep -lE '^  static constexpr OptimizerKind kKind' math/optimizer_*.h); do
    rows_of "$header" "$header" math/optimizer_rules.h
    name=$(word "$header" 'kName = "([a-z_0-9]+)"')
    class=$(word "$header" '^(struct|class) ([A-Za-z0-9]+)Rule[ :].*' 2)
    only_known_to "\"$name\"" "$header"
    only_known_to " ${class}Rule" "$header" math/optimizer_rules.h | sed 's/uses  /uses /'
    only_known_to "::k$class;" "$header" math/optimizer_spec.h
    echo "optimizer $name"
  done
}

datasets() {
  local registry=storage/download/datasets.cc header stem function word name
  for header in $(grep -lE '^\[\[nodiscard\]\] const FileSet& [a-z_0-9]+\(\) noexcept;' data/*.h); do
    stem=${header%.h}
    rows_of "$header" "$stem.cc" "$registry"
    for function in $(sed -nE 's/^\[\[nodiscard\]\] const FileSet& ([a-z_0-9]+)\(\) noexcept;.*/\1/p' "$header"); do
      grep -qF "&data::$function," "$registry" || echo "$registry: has no row of $function()"
      only_known_to "data::$function" "$stem.cc" "$registry"
    done
    for word in $(sed -nE 's/.*(\.name = |emnist\()"([A-Za-z0-9-]+)".*/\2/p' "$stem.cc" | grep -E '^[A-Z]'); do
      only_known_to "\"$word\"" "$stem.cc"
      echo "data set $word"
    done
  done
  for name in $(tr '\n' ' ' <"$registry" | grep -oE 'DatasetRow\{ *\.name = "[a-z_0-9]+"' | cut -d '"' -f 2); do
    only_known_to "\"$name\"" "$registry"
  done
}

commands() {
  local registry=main/commands/registry source name
  for source in $(grep -lE '^CommandRow [a-z]+_command\(\) \{' main/commands/*.cc); do
    name=$(basename "$source" .cc)
    grep -qF "CommandRow ${name}_command() {" "$source" || echo "$source: has no row of that name"
    grep -qF " ${name}_command()" $registry.cc || echo "$registry.cc: has no row of ${name}_command()"
    # Only main/ may include the registry, so no other folder is searched.
    grep -rlF " ${name}_command()" main | foreign "uses ${name}_command()" "$source" $registry.h $registry.cc
    echo "command $name"
  done
}

main() {
  local all found line
  all=$(losses; optimizers; datasets; commands)
  # With fewer rows this check is broken.
  [ "$(grep -c '^loss ' <<<"$all")" -ge 3 ] && [ "$(grep -c '^optimizer ' <<<"$all")" -ge 5 ] &&
    [ "$(grep -c '^data set ' <<<"$all")" -ge 12 ] && [ "$(grep -c '^command ' <<<"$all")" -ge 35 ] || { echo "this check is broken: it found only"; echo "$all"; exit 1; }
  found=$(grep -vE '^(loss|optimizer|data set|command) ' <<<"$all" || true)
  while IFS= read -r line; do
    line=${line%  #*}
    grep -qxF "$line" <<<"$found" || { echo "this exception no longer occurs: $line"; exit 1; }
    found=$(grep -vxF "$line" <<<"$found" || true)
  done <<<"$exceptions"
  [ -z "$found" ] || { echo "$found"; exit 1; }
}

main
