#!/bin/bash
# .ci/programs finds test programs by the names of their tests: in a single source, in a unity source, and in
# parameterized tests. It returns all programs if a name belongs to none.
set -euo pipefail

root=$PWD
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{.ci,tests,build/units}
cp .ci/programs "$tree/.ci"
cd "$tree"
echo 'TEST(Frame, IsWhole) {}' >tests/frame_test.cc
printf 'TEST_P(Kept,\n       Stays) {}\nINSTANTIATE_TEST_SUITE_P(OfRank, Kept, x);\n' >tests/kept_test.cc
echo 'TEST_F(Other, Frames) {}' >tests/other_test.cc
printf '#include "tests/kept_test.cc"\n#include "tests/other_test.cc"\n' >build/units/net_test_1.cc
cat >build/compile_commands.json <<EOF
[{"file": "$tree/tests/frame_test.cc", "command": "c++ -o tests/net/CMakeFiles/wire_test.dir/frame_test.cc.o"},
 {"file": "$tree/build/units/net_test_1.cc", "command": "c++ -o tests/CMakeFiles/net_test.dir/__/units/net_test_1.cc.o"}]
EOF
echo 'add_test("build.format" "bash")' >build/CTestTestfile.cmake

check() {
  local found
  found=$(.ci/programs build "$1")
  [ "$found" = "$2" ] || { echo "$root/.ci/programs: $1: '$found', not '$2'"; exit 1; }
}
check 'Frame\.' wire_test
check Frame 'net_test wire_test'
check OfRank/Kept.Stays/1 all
check OfRank/Kept.Stays net_test
check format all
check Nothing all
check . all
