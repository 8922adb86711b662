// A task of a Slurm step: a few numbers, which must agree with each other, determine its identity.
#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

#include "net/resolvers/host_list.h"
#include "net/resolvers/resolvers.h"
#include "tests/support/thrown.h"

namespace disttf::net {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The settings that srun gives one task.
struct Task {
  const char* nodes = "n[1-2]";
  const char* per_node = "2(x2)";
  const char* tasks = "4";
  const char* rank = "0";
  const char* node = "0";
  const char* local = "0";
  const char* ranks_here = nullptr;
  const char* distribution = nullptr;
  const char* components = nullptr;
};

[[nodiscard]] Environment environment_of(const Task& task) {
  Environment environment;
  const auto set = [&](const char* name, const char* value) {
    if (value != nullptr) environment[name] = value;
  };
  set("SLURM_STEP_NODELIST", task.nodes);
  set("SLURM_STEP_TASKS_PER_NODE", task.per_node);
  set("SLURM_STEP_NUM_TASKS", task.tasks);
  set("SLURM_PROCID", task.rank);
  set("SLURM_NODEID", task.node);
  set("SLURM_LOCALID", task.local);
  set("SLURM_GTIDS", task.ranks_here);
  set("SLURM_DISTRIBUTION", task.distribution);
  set("SLURM_HET_SIZE", task.components);
  return environment;
}

[[nodiscard]] std::string hosts_of(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& address : addresses) text += (text.empty() ? "" : ",") + to_string(address);
  return text;
}

// Returns "ps 0 of n1:2222 | chief | workers", or "local", or the message that refuses the
// settings.
[[nodiscard]] std::string told(const Task& task, const ClusterFlags& flags = {}) {
  try {
    const Resolution resolution = find_cluster(flags, environment_of(task));
    if (!resolution.found) return std::string(resolution.resolver);
    EXPECT_EQ(resolution.resolver, "slurm");
    const auto& [cluster, self, warnings] = *resolution.found;
    return to_string(self) + " of " + hosts_of(cluster.ps) + " | " + hosts_of(cluster.chief) +
           " | " + hosts_of(cluster.workers);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(SlurmStep, HasOnePsAndWorkersWithoutFlags) {
  const std::string cluster = " of n1:2222 |  | n1:2223,n2:2222,n2:2223";
  EXPECT_EQ(told({}), "ps 0" + cluster);
  EXPECT_EQ(told({.rank = "1", .local = "1"}), "worker 0" + cluster);
  EXPECT_EQ(told({.rank = "2", .node = "1"}), "worker 1" + cluster);
  EXPECT_EQ(told({.rank = "3", .node = "1", .local = "1"}), "worker 2" + cluster);
}

TEST(SlurmStep, OfSeveralComponentsIsRefusedInEachOfThem) {
  for (const Task& task : {Task{.components = "2"}, Task{.rank = "4", .components = "2"},
                           Task{.nodes = "n1", .per_node = "1", .tasks = "1", .components = "2"}}) {
    EXPECT_THAT(told(task), StartsWith("SLURM_HET_SIZE is \"2\": a task of a heterogeneous step "
                                       "sees only the nodes of its own component"));
  }
  EXPECT_THAT(told({.components = "1"}), StartsWith("ps 0"));
}

TEST(SlurmStep, AssignsRanksToPsThenTheChiefThenWorkers) {
  const ClusterFlags flags = {.ps = 1, .workers = 2, .chief = true, .port_base = 8888};
  const std::string cluster = " of n1:8888 | n1:8889 | n2:8888,n2:8889";
  EXPECT_EQ(told({.rank = "1", .local = "1"}, flags), "chief 0" + cluster);
  EXPECT_EQ(told({.rank = "3", .node = "1", .local = "1"}, flags), "worker 1" + cluster);
}

TEST(SlurmStep, KeepsPaddingAndOrderOfTheNodes) {
  EXPECT_EQ(
      told({.nodes = "n[009-011]", .per_node = "1(x3)", .tasks = "3", .rank = "2", .node = "2"}),
      "worker 1 of n009:2222 |  | n010:2222,n011:2222");
  EXPECT_EQ(told({.nodes = "node10,node9", .per_node = "1(x2)", .tasks = "2"}),
            "ps 0 of node10:2222 |  | node9:2222");
}

TEST(SlurmStep, FillsNodesOfDifferentSizes) {
  EXPECT_EQ(
      told({.nodes = "a,b,c,d", .per_node = "2(x3),1", .tasks = "7", .rank = "6", .node = "3"}),
      "worker 5 of a:2222 |  | a:2223,b:2222,b:2223,c:2222,c:2223,d:2222");
}

TEST(SlurmStep, ComputesTheCyclicDistribution) {
  const Task task = {.nodes = "a,b",
                     .per_node = "3,1",
                     .tasks = "4",
                     .rank = "2",
                     .node = "0",
                     .local = "1",
                     .ranks_here = "0,2,3",
                     .distribution = "cyclic:block"};
  EXPECT_EQ(told(task), "worker 1 of a:2222 |  | b:2222,a:2223,a:2224");
}

// Slurm 22.05 distributes 7 ranks to nodes of 4, 2 and 1 in this way.
TEST(SlurmStep, ComputesTheCyclicDistributionOfNodesOfThreeSizes) {
  const Task task = {.nodes = "n[8-10]",
                     .per_node = "4,2,1",
                     .tasks = "7",
                     .rank = "5",
                     .node = "0",
                     .local = "2",
                     .ranks_here = "0,3,5,6",
                     .distribution = "cyclic"};
  EXPECT_EQ(told(task),
            "worker 4 of n8:2222 |  | n9:2222,n10:2222,n8:2223,n9:2223,n8:2224,n8:2225");
}

TEST(SlurmStep, TakesTheNodesNameForHost) {
  EXPECT_EQ(told({.rank = "2", .node = "1"},
                 {.ps = 1, .workers = 3, .task_hosts = "{host}-ib:{port}", .port_base = 4000}),
            "worker 1 of n1-ib:4000 |  | n1-ib:4001,n2-ib:4002,n2-ib:4003");
}

TEST(SlurmStep, IsNoneInABatchScriptOrAShell) {
  EXPECT_EQ(told({.nodes = nullptr}), "local");
  EXPECT_EQ(told({.rank = nullptr}), "local");
  EXPECT_EQ(told({.nodes = "n1", .per_node = "1", .tasks = "1"}), "local");
}

TEST(SlurmStep, AgreesWithTheCommandLineOrIsRefused) {
  EXPECT_THAT(told({}, {.job = Job::kPs}), StartsWith("ps 0 of "));
  EXPECT_EQ(told({}, {.job = Job::kWorker}),
            "SLURM_PROCID (the place 0): this is ps 0 there, but the command line says worker");
  EXPECT_THAT(told({}, {.task_index = 1}), HasSubstr("but --task_index is 1"));
}

struct BadClues {
  const char* name;
  Task task;
  ClusterFlags flags;
  const char* sentence;
};
BadClues bad_step(const char* name, const Task& task, const ClusterFlags& flags,
                  const char* sentence) {
  return {name, task, flags, sentence};
}
void PrintTo(const BadClues& each, std::ostream* out) { *out << each.name; }

class BadSlurmStep : public ::testing::TestWithParam<BadClues> {};

TEST_P(BadSlurmStep, IsToldInOneSentence) {
  const std::string sentence = told(GetParam().task, GetParam().flags);
  EXPECT_THAT(sentence, StartsWith(GetParam().sentence));
  EXPECT_LT(sentence.size(), 600U);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadSlurmStep,
    ::testing::Values(
        bad_step("NoTasks", {.tasks = nullptr}, {},
                 "SLURM_STEP_NUM_TASKS is not set; srun sets it"),
        bad_step("NoTasksPerNode", {.per_node = nullptr}, {},
                 "SLURM_STEP_TASKS_PER_NODE is not set"),
        bad_step("TextForTheRank", {.rank = "first"}, {}, "SLURM_PROCID is \"first\"; expected"),
        bad_step("NegativeRank", {.rank = "-1"}, {}, "SLURM_PROCID is \"-1\"; expected"),
        bad_step("RankBeyond", {.rank = "4"}, {},
                 "SLURM_PROCID is 4, but SLURM_STEP_NUM_TASKS is 4"),
        bad_step("HugeList", {.nodes = "n[0-999999999]"}, {},
                 "SLURM_STEP_NODELIST is \"n[0-999999999]\"; it names more than 30000 hosts"),
        bad_step("UnclosedList", {.nodes = "n[1-2"}, {}, "SLURM_STEP_NODELIST is \"n[1-2\"; a ["),
        bad_step("BadHost", {.nodes = "n 1,n2"}, {}, "SLURM_STEP_NODELIST: \"n 1:2222\""),
        bad_step("HugeCounts", {.per_node = "2(x999999999)"}, {}, "SLURM_STEP_TASKS_PER_NODE is"),
        bad_step("HugeTasks", {.tasks = "4000000000"}, {},
                 "SLURM_STEP_NUM_TASKS is \"4000000000\""),
        bad_step(
            "NodesOfTwoCounts", {.nodes = "n[1-3]"}, {},
            "SLURM_STEP_TASKS_PER_NODE is \"2(x2)\", of 2 nodes, but SLURM_STEP_NODELIST names 3"),
        bad_step(
            "TasksOfTwoCounts", {.tasks = "5"}, {},
            "SLURM_STEP_TASKS_PER_NODE is \"2(x2)\", which makes 4 tasks, but SLURM_STEP_NUM_TASKS "
            "is 5"),
        bad_step("SameNodeTwice", {.nodes = "n1,n1"}, {}, "SLURM_STEP_NODELIST: "),
        bad_step(
            "OtherNode", {.rank = "1", .node = "1", .local = "0"}, {},
            "SLURM_NODEID is 1, but by SLURM_STEP_TASKS_PER_NODE and the distribution it is 0 for "
            "rank 1; start the step with srun --distribution=block"),
        bad_step("OtherLocal", {.rank = "1", .local = "0"}, {}, "SLURM_LOCALID is 0, but by"),
        bad_step(
            "RankZeroOfACyclicStepThatDoesNotSaySo", {.ranks_here = "0,2"}, {},
            "SLURM_GTIDS is \"0,2\", but by SLURM_STEP_TASKS_PER_NODE and the distribution node "
            "\"n1\" has the ranks \"0,1\""),
        bad_step(
            "Plane", {.distribution = "plane=4"}, {},
            "SLURM_DISTRIBUTION is \"plane=4\", which does not define which rank is on which node"),
        bad_step("Arbitrary", {.distribution = "arbitrary"}, {},
                 "SLURM_DISTRIBUTION is \"arbitrary\""),
        bad_step("TooManyPs", {}, {.ps = 4},
                 "--ps: 4 leaves no trainer among the 4 tasks of SLURM_STEP_NUM_TASKS"),
        bad_step("TooFewTasks", {}, {.ps = 2, .workers = 3, .chief = true},
                 "SLURM_STEP_NUM_TASKS is 4, but 2 ps, a chief and 3 workers (--ps, --chief, "
                 "--workers) are 6"),
        bad_step("PortBeyond", {}, {.port_base = 65535},
                 "--port_base: 65535 and 2 tasks on a node lead beyond the last port, 65535")),
    [](const auto& each) { return std::string(each.param.name); });

// Slurm's host lists and task counts, including lists that other parsers read wrongly.

using ::testing::AllOf;
using ::testing::ElementsAre;

[[nodiscard]] std::string expanded(std::string_view list) {
  std::string text;
  for (const std::string& name : expand_host_list("LIST", list)) {
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

[[nodiscard]] std::string list_error(std::string_view list) {
  return sentence_of([&] { return expand_host_list("LIST", list); }, "no error");
}

struct ListCase {
  const char* list;
  const char* names;
};
void PrintTo(const ListCase& each, std::ostream* out) { *out << each.list; }

class HostList : public ::testing::TestWithParam<ListCase> {};

TEST_P(HostList, IsExpandedInOrder) { EXPECT_EQ(expanded(GetParam().list), GetParam().names); }

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
    EXPECT_THAT(sentence_of([&] { return expand_task_counts("COUNTS", text); }),
                StartsWith("COUNTS is \""))
        << text;
  }
}

}  // namespace
}  // namespace disttf::net
