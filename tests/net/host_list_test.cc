// Slurm's host lists and task counts, including lists that other parsers read wrongly.
#include "net/resolvers/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace disttf::net {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

[[nodiscard]] std::string joined(std::string_view list) {
  std::string text;
  for (const std::string& name : expand_host_list("LIST", list)) {
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

[[nodiscard]] std::string list_error(std::string_view list) {
  try {
    static_cast<void>(expand_host_list("LIST", list));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

struct ListCase {
  const char* list;
  const char* names;
};
void PrintTo(const ListCase& each, std::ostream* out) { *out << each.list; }

class HostList : public ::testing::TestWithParam<ListCase> {};

TEST_P(HostList, IsExpandedInOrder) { EXPECT_EQ(joined(GetParam().list), GetParam().names); }

INSTANTIATE_TEST_SUITE_P(Plain, HostList,
                         ::testing::Values(ListCase{"alpha", "alpha"},
                                           ListCase{"alpha,beta", "alpha beta"},
                                           ListCase{"n10,n9", "n10 n9"},  // not sorted
                                           ListCase{"n1,n1", "n1 n1"},    // not dropped
                                           ListCase{"a.b-c_d", "a.b-c_d"}));

INSTANTIATE_TEST_SUITE_P(Groups, HostList,
                         ::testing::Values(ListCase{"n[1-3]", "n1 n2 n3"}, ListCase{"n[3]", "n3"},
                                           ListCase{"nodes[006,011]", "nodes006 nodes011"},
                                           ListCase{"n[9,1-2,7]", "n9 n1 n2 n7"},
                                           ListCase{"a,n[1-2],b", "a n1 n2 b"},
                                           ListCase{"n[1-2],g[8-9]", "n1 n2 g8 g9"},
                                           ListCase{"[7-8]", "7 8"}));

INSTANTIATE_TEST_SUITE_P(
    Padding, HostList,
    ::testing::Values(ListCase{"n[009-011]", "n009 n010 n011"},
                      ListCase{"b04-[09-10]", "b04-09 b04-10"}, ListCase{"n[9-11]", "n9 n10 n11"},
                      ListCase{"n[099-101]", "n099 n100 n101"}, ListCase{"n[01,1]", "n01 n1"},
                      ListCase{"n[00-01]", "n00 n01"}, ListCase{"n[8-010]", "n8 n9 n10"}));

INSTANTIATE_TEST_SUITE_P(
    SuffixesAndSeveralGroups, HostList,
    ::testing::Values(ListCase{"n[1-2]-ib", "n1-ib n2-ib"},
                      ListCase{"r[0-1]n[01-02]-ib", "r0n01-ib r0n02-ib r1n01-ib r1n02-ib"},
                      ListCase{"n[1-2].rack[3]", "n1.rack3 n2.rack3"},
                      ListCase{"[1-2][3-4]", "13 14 23 24"}, ListCase{"n[1]x,m", "n1x m"}));

struct HostListCase {
  std::string list;
  const char* sentence;
};
void PrintTo(const HostListCase& each, std::ostream* out) { *out << each.list.substr(0, 60); }

class BadHostList : public ::testing::TestWithParam<HostListCase> {};

TEST_P(BadHostList, IsToldInOneShortSentence) {
  const std::string error = list_error(GetParam().list);
  EXPECT_THAT(error, AllOf(StartsWith("LIST is \""), HasSubstr(GetParam().sentence)));
  EXPECT_LT(error.size(), 400U);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadHostList,
    ::testing::Values(
        HostListCase{"", "is empty"}, HostListCase{",", "is empty"}, HostListCase{"a,", "is empty"},
        HostListCase{"a,,b", "is empty"}, HostListCase{"n[1-2", "a [ has no ]"},
        HostListCase{"n1-2]", "a ] has no ["}, HostListCase{"n[", "a [ has no ]"},
        HostListCase{"n[]", "\"\" between [ and ] is not a number"},
        HostListCase{"n[a]", "\"a\" between"}, HostListCase{"n[1-]", "\"1-\" between"},
        HostListCase{"n[-1]", "\"-1\" between"}, HostListCase{"n[-3--1]", "\"-3--1\" between"},
        HostListCase{"n[1-2-3]", "\"1-2-3\" between"}, HostListCase{"n[3-1]", "\"3-1\" between"},
        HostListCase{"n[1,]", "\"\" between"}, HostListCase{"n[[1]]", "\"[1\" between"},
        HostListCase{"n[1 -2]", "\"1 -2\" between"}));

INSTANTIATE_TEST_SUITE_P(
    Huge, BadHostList,
    ::testing::Values(HostListCase{"n[0-999999999]", "more than 30000 hosts"},
                      HostListCase{"n[0-999999999999999999]", "more than 30000 hosts"},
                      HostListCase{"n[0-99999999999999999999]", "is not a number"},
                      HostListCase{"a[0-999]b[0-999]c[0-999]", "more than 30000 hosts"},
                      HostListCase{"n[0-29999],m[0-29999]", "more than 30000 hosts"},
                      HostListCase{std::string(100'000, 'n'), "longer than 253 bytes"},
                      HostListCase{"n" + std::string(100'000, '['), "a [ has no ]"},
                      HostListCase{"n[" + std::string(17, '0') + "1-20000]" + std::string(240, 'x'),
                                   "longer than 253 bytes"},
                      HostListCase{"n[" + std::string(100'000, ',') + "]",
                                   "more than 30000 hosts"}));

TEST(HostListSize, ReachesItsLimit) {
  EXPECT_EQ(expand_host_list("LIST", "n[1-30000]").size(), kMaxListedHosts);
  EXPECT_THAT(list_error("n[1-30001]"), HasSubstr("more than 30000"));
}

TEST(TaskCountsOfNodes, AreExpanded) {
  const auto counts = [](std::string_view text) { return expand_task_counts("COUNTS", text); };
  EXPECT_THAT(counts("2"), ElementsAre(2));
  EXPECT_THAT(counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(counts("3(x2),2,1"), ElementsAre(3, 3, 2, 1));
}

TEST(TaskCountsOfNodes, AreRefusedInOneSentence) {
  for (const char* text :
       {"", ",", "2,", "0", "-1", "x", "2(x0)", "2(3)", "2(x3", "2(x", "2x3)", "2(x)", "(x3)",
        "2(x3)1", "1(x999999999)", "999999999", "1(x999999999999999999)", "1(x20000),1(x20000)"}) {
    try {
      static_cast<void>(expand_task_counts("COUNTS", text));
      ADD_FAILURE() << text << " was accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), StartsWith("COUNTS is \"")) << text;
    }
  }
}

}  // namespace
}  // namespace disttf::net
