#!/bin/bash
# Every relative link in a Markdown file leads to a file of this checkout, and a #fragment of a
# Markdown file to a heading in it.
set -euo pipefail

# anchors FILE: prints the anchors of FILE's headings, one per line.
anchors() {
  sed -nE 's/^#+ +//p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# broken ROOT: prints `FILE: LINK` for each broken link below ROOT.
broken() {
  local file link target part
  while IFS= read -r file; do
    while IFS= read -r link; do
      case $link in http://* | https://* | mailto:*) continue ;; esac
      target=${link%%#*}
      part=${link#"$target"}
      target=${target:+$(dirname "$file")/$target}
      target=${target:-$file}
      if [ ! -e "$target" ]; then
        echo "$file: $link"
      elif [ -n "$part" ] && ! anchors "$target" | grep -qxF -- "${part#\#}"; then
        echo "$file: $link (no such heading)"
      fi
    done < <(grep -oE '\]\([^) ]+\)' "$file" | sed -E 's/^\]\(//; s/\)$//')
  done < <(find "$1" \( -name build -path "$1/build" -o -name .git \) -prune -o -name '*.md' -print)
}

self_test() {
  local tree found
  tree=$(mktemp -d)
  mkdir "$tree/docs"
  printf '# A Part, here\n[a](docs/b.md) [b](docs/b.md#of-b) [c](#a-part-here) [d](https://x/y)\n' >"$tree/a.md"
  printf '# Of B\n[e](../a.md) [f](gone.md)\n[g](../a.md#gone)\n' >"$tree/docs/b.md"
  found=$(broken "$tree" | wc -l)
  rm -rf "$tree"
  [ "$found" -eq 2 ] || { echo "this check is broken: it found $found of 2 broken links"; exit 1; }
}

self_test
found=$(broken .)
if [ -n "$found" ]; then
  echo "These links are broken:"
  echo "$found"
  exit 1
fi
