# Functions for tests that check rules of docs/extending.md: which sources of the product use a name.
# To be sourced; the working directory is the checkout.

# sources: prints all sources of the product, one per line.
sources() { find text math data net run storage model roles main -name '*.cc' -o -name '*.h' -o -name '*.inc'; }

# knowing TEXT: prints the sources that contain TEXT outside of comments.
knowing() {
  sources | xargs awk -v text="$1" '{ sub(/(^|[^:])\/\/.*/, "") } index($0, text) { print FILENAME; nextfile }'
}

# including HEADER: prints the sources that include it.
including() { sources | xargs grep -lF "#include \"$1\"" || true; }

# foreign WHAT ALLOWED... : prints a finding for each source on stdin that is not in ALLOWED.
foreign() {
  local what=$1 allowed=() file
  shift
  for file in "$@"; do allowed+=(-e "$file"); done
  grep -vxF "${allowed[@]}" | sed "s|\$|: $what|" || true
}
