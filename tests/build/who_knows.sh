# For tests that hold HACKING.md to its word: which sources of the product know of something.
# Sourced; the working directory is the checkout.

# sources: all of the product's, one a line.
sources() { find text math data net roles main -name '*.cc' -o -name '*.h' -o -name '*.inc'; }

# knowing TEXT: the sources in which TEXT stands, comments aside.
knowing() {
  sources | xargs awk -v text="$1" '{ sub(/(^|[^:])\/\/.*/, "") } index($0, text) { print FILENAME; nextfile }'
}

# including HEADER: the sources that do.
including() { sources | xargs grep -lF "#include \"$1\"" || true; }

# foreign WHAT ALLOWED... : of the sources on stdin, a finding for each that is none of ALLOWED.
foreign() {
  local what=$1 allowed=() file
  shift
  for file in "$@"; do allowed+=(-e "$file"); done
  grep -vxF "${allowed[@]}" | sed "s|\$|: $what|" || true
}
