// A task of a Slurm step: a few numbers, which must agree with each other, determine its identity.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "net/resolvers/resolvers.h"

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
        BadClues{
            "NoTasks", {.tasks = nullptr}, {}, "SLURM_STEP_NUM_TASKS is not set; srun sets it"},
        BadClues{
            "NoTasksPerNode", {.per_node = nullptr}, {}, "SLURM_STEP_TASKS_PER_NODE is not set"},
        BadClues{"TextForTheRank", {.rank = "first"}, {}, "SLURM_PROCID is \"first\"; expected"},
        BadClues{"NegativeRank", {.rank = "-1"}, {}, "SLURM_PROCID is \"-1\"; expected"},
        BadClues{
            "RankBeyond", {.rank = "4"}, {}, "SLURM_PROCID is 4, but SLURM_STEP_NUM_TASKS is 4"},
        BadClues{"HugeList",
                 {.nodes = "n[0-999999999]"},
                 {},
                 "SLURM_STEP_NODELIST is \"n[0-999999999]\"; it names more than 30000 hosts"},
        BadClues{"UnclosedList", {.nodes = "n[1-2"}, {}, "SLURM_STEP_NODELIST is \"n[1-2\"; a ["},
        BadClues{"BadHost", {.nodes = "n 1,n2"}, {}, "SLURM_STEP_NODELIST: \"n 1:2222\""},
        BadClues{"HugeCounts", {.per_node = "2(x999999999)"}, {}, "SLURM_STEP_TASKS_PER_NODE is"},
        BadClues{
            "HugeTasks", {.tasks = "4000000000"}, {}, "SLURM_STEP_NUM_TASKS is \"4000000000\""},
        BadClues{
            "NodesOfTwoCounts",
            {.nodes = "n[1-3]"},
            {},
            "SLURM_STEP_TASKS_PER_NODE is \"2(x2)\", of 2 nodes, but SLURM_STEP_NODELIST names 3"},
        BadClues{
            "TasksOfTwoCounts",
            {.tasks = "5"},
            {},
            "SLURM_STEP_TASKS_PER_NODE is \"2(x2)\", which makes 4 tasks, but SLURM_STEP_NUM_TASKS "
            "is 5"},
        BadClues{"SameNodeTwice", {.nodes = "n1,n1"}, {}, "SLURM_STEP_NODELIST: "},
        BadClues{
            "OtherNode",
            {.rank = "1", .node = "1", .local = "0"},
            {},
            "SLURM_NODEID is 1, but by SLURM_STEP_TASKS_PER_NODE and the distribution it is 0 for "
            "rank 1; start the step with srun --distribution=block"},
        BadClues{"OtherLocal", {.rank = "1", .local = "0"}, {}, "SLURM_LOCALID is 0, but by"},
        BadClues{
            "RankZeroOfACyclicStepThatDoesNotSaySo",
            {.ranks_here = "0,2"},
            {},
            "SLURM_GTIDS is \"0,2\", but by SLURM_STEP_TASKS_PER_NODE and the distribution node "
            "\"n1\" has the ranks \"0,1\""},
        BadClues{
            "Plane",
            {.distribution = "plane=4"},
            {},
            "SLURM_DISTRIBUTION is \"plane=4\", which does not define which rank is on which node"},
        BadClues{
            "Arbitrary", {.distribution = "arbitrary"}, {}, "SLURM_DISTRIBUTION is \"arbitrary\""},
        BadClues{"TooManyPs",
                 {},
                 {.ps = 4},
                 "--ps: 4 leaves no trainer among the 4 tasks of SLURM_STEP_NUM_TASKS"},
        BadClues{"TooFewTasks",
                 {},
                 {.ps = 2, .workers = 3, .chief = true},
                 "SLURM_STEP_NUM_TASKS is 4, but 2 ps, a chief and 3 workers (--ps, --chief, "
                 "--workers) are 6"},
        BadClues{"PortBeyond",
                 {},
                 {.port_base = 65535},
                 "--port_base: 65535 and 2 tasks on a node lead beyond the last port, 65535"}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace disttf::net
