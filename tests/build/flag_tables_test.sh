#!/bin/bash
# Usage: flag_tables_test.sh FILE
#
# The flag tables of docs/flags.md and `FILE COMMAND --help-all` list the same flags with the same
# defaults, and every flag that the documents mention exists. (tests/main/flag_document_test.cc checks that
# the tables match the flags' descriptions; this test checks that no command is missing.)
set -euo pipefail

# Flags that work without a command, so no command's --help lists them.
readonly unlisted=(--version)

# commands_of_help < HELP: prints the name of every command but help.
commands_of_help() { awk '/^Subcommands:/ { on = 1; next } on && /^$/ { exit } on && $1 != "help" { print $1 }'; }

# flags_of_help < HELP: prints a line `NAME DEFAULT` for every name of an entry. An entry is "
# -s,--ps N:1..1000=1   What it is"; the description may be on the next line.
flags_of_help() {
  awk '/^  -/ {
    sub(/^  /, ""); sub(/  +.*/, "")
    names = $0; sub(/ .*/, "", names)
    default_value = ""
    if (match($0, /=[^ ]*/)) default_value = substr($0, RSTART + 1, RLENGTH - 1)
    count = split(names, name, ",")
    for (i = 1; i <= count; i++) if (name[i] ~ /^--/) print name[i], default_value
  }'
}

# flags_of_tables < MARKDOWN: prints the same for the rows "| `--ps`, `-s` | `1` | What it is |".
flags_of_tables() {
  awk -F '|' '/^\| `-/ {
    default_value = ""
    if (match($3, /`[^`]*`/)) default_value = substr($3, RSTART + 1, RLENGTH - 2)
    count = split($2, name, "`")
    for (i = 2; i <= count; i += 2) if (name[i] ~ /^--/) print name[i], default_value
  }'
}

# mentions < MARKDOWN: prints the flags that running text quotes: `--ps`, `--ps 2`, `--ps=2`.
mentions() { grep -oE '`--[a-z_]+' | tr -d '`' | sort -u; }

# Two empty lists would be equal, so this test first checks that it reads a known list correctly.
self_test() {
  local commands help table
  commands=$(printf 'Subcommands:\n  launch  Train\n  help  Print\n\nTry: x\n' | commands_of_help)
  [ "$commands" = launch ] || { echo "this check is broken: it read the commands '$commands'"; exit 1; }
  help=$(printf '  -s,--ps N:1..9=1  Sets --this=2\n  --old,--new\n      Text\n' | flags_of_help)
  table=$(printf '| `--ps`, `-s` | `1` | as `--this` |\n| `--old`, `--new` | | |\n' | flags_of_tables)
  [ "$help" = $'--ps 1\n--old \n--new ' ] && [ "$table" = "$help" ] ||
    { echo "this check is broken: it read '$help' and '$table'"; exit 1; }
}

main() {
  local command help tables findings
  help=$(for command in $("$1" --help | commands_of_help); do "$1" "$command" --help-all | flags_of_help; done | sort -u)
  tables=$(flags_of_tables <docs/flags.md | sort -u)
  findings=$(
    comm -23 <(echo "$help") <(echo "$tables") | sed 's|$|: no row in docs/flags.md with this default|'
    comm -13 <(echo "$help") <(echo "$tables") | sed 's|$|: in docs/flags.md, but not in --help|'
    comm -13 <({ cut -d ' ' -f 1 <<<"$help"; printf '%s\n' "${unlisted[@]}"; } | sort -u) \
      <(cat README.md docs/{flags,operations,training,managing,resolvers,design,glossary}.md docs/targets/*.md | mentions) |
      sed 's/$/: mentioned in README.md or docs\/, but no flag/'
  )
  [ -z "$findings" ] || { echo "$findings"; exit 1; }
}

self_test
main "$1"
