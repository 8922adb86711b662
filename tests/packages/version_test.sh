#!/bin/bash
# Usage: version_test.sh PROJECT_VERSION
#
# A commit with the tag of the project's version has exactly that version; any other commit has its hash appended. The
# changelog has that version, or the heading for unreleased changes.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

need git cmake
mkdir -p "$scratch/tree/main"
cp main/version.cc.in "$scratch/tree/main/"
cd "$scratch/tree"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
version() {
  cmake -DSOURCE_DIR="$PWD" -DPROJECT_VERSION="$1" -DINPUT="$PWD/main/version.cc.in" -DOUTPUT="$scratch/version.cc" \
    -P "$source/cmake/write_version.cmake"
  sed -nE 's/.*kVersion = "(.*)".*/\1/p' "$scratch/version.cc"
}
expect() { [[ $(version "$1") == $2 ]] || fail "$3: $(version "$1"), not $2"; }

expect 1.2.3 1.2.3 "outside of git"
git init --quiet .
git add main
git -c user.name=test -c user.email=test@localhost commit --quiet --message one
expect 1.2.3 '1.2.3+g???????' "an untagged commit"
git tag v1.2.3
expect 1.2.3 1.2.3 "a tagged commit"
expect 1.2.4 '1.2.4+g???????' "a commit with another version's tag"
echo >>main/version.cc.in
expect 1.2.3 '1.2.3+g???????.dirty' "a tagged commit that was changed"

newest=$(grep -m 1 -oE '^## \[[^]]+\]' "$source/docs/changelog.md")
[ "$newest" = '## [Unreleased]' ] || [ "$newest" = "## [$1]" ] || fail "docs/changelog.md begins with $newest, not $1"
