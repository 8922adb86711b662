#include "net/wire/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace disttf::net {
namespace {

using ::testing::HasSubstr;

[[nodiscard]] Cluster cluster_of(std::string_view ps, std::string_view workers,
                                 std::string_view chief = "") {
  Cluster cluster;
  cluster.ps = parse_address_list("ps", ps);
  cluster.workers = parse_address_list("worker", workers);
  cluster.chief = parse_address_list("chief", chief);
  return cluster;
}

[[nodiscard]] std::string error_of(const Cluster& cluster, const TaskId& task) {
  try {
    validate(cluster, task);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Job, IsKnownByNameInAnyCase) {
  EXPECT_EQ(job_from_name("PS"), Job::kPs);
  EXPECT_EQ(job_from_name("Worker"), Job::kWorker);
  EXPECT_EQ(job_from_name("chief"), Job::kChief);
  EXPECT_EQ(job_from_name("Master"), Job::kChief);
  EXPECT_EQ(job_from_name("EVALUATOR"), Job::kEvaluator);
  EXPECT_EQ(job_from_name("gpu_worker"), std::nullopt);
  EXPECT_EQ(job_from_name(""), std::nullopt);
}

TEST(Cluster, RanksTheChiefBeforeTheWorkers) {
  const Cluster cluster = cluster_of("p:1", "a:1,b:1", "c:1");
  EXPECT_EQ(cluster.trainer_count(), 3U);
  EXPECT_EQ(cluster.trainer(0), (TaskId{Job::kChief, 0}));
  EXPECT_EQ(cluster.trainer(2), (TaskId{Job::kWorker, 1}));
  EXPECT_EQ(cluster.rank_of({Job::kWorker, 1}), 2U);
}

TEST(Cluster, MakesWorker0TheChiefWhereThereIsNone) {
  EXPECT_TRUE(cluster_of("p:1", "a:1,b:1").is_chief({Job::kWorker, 0}));
  EXPECT_FALSE(cluster_of("p:1", "a:1,b:1").is_chief({Job::kWorker, 1}));
  EXPECT_FALSE(cluster_of("p:1", "a:1", "c:1").is_chief({Job::kWorker, 0}));
  EXPECT_TRUE(cluster_of("p:1", "a:1", "c:1").is_chief({Job::kChief, 0}));
  EXPECT_FALSE(cluster_of("p:1", "a:1").is_chief({Job::kPs, 0}));
}

// printf 'disttf cluster 1\nps p:1,q:2\nchief c:3\nworker a:4,b:5\n' | sha256sum
TEST(ClusterHash, IsTheSha256OfTheDocumentedText) {
  EXPECT_EQ(short_hex(hash_of(cluster_of("p:1,q:2", "a:4,b:5", "c:3"))), "fd3a578a");
}

// printf 'disttf cluster 1\nps p:1,q:2\nchief c:3\nworker *\n' | sha256sum
TEST(ClusterHash, LeavesOutTheWorkersWhereTheyAreNotAllKnown) {
  Cluster sparse = cluster_of("p:1,q:2", "a:4,b:5", "c:3");
  sparse.sparse = true;
  EXPECT_EQ(short_hex(hash_of(sparse)), "b2016ea6");
}

TEST(ClusterHash, LeavesOutTheWorkersWhereMoreMayJoin) {
  Cluster open = cluster_of("p:1,q:2", "a:4,b:5", "c:3");
  open_to(open, 3);
  EXPECT_EQ(short_hex(hash_of(open)), "b2016ea6");
}

TEST(ClusterHash, DependsOnTheOrderOfEveryList) {
  const ClusterHash hash = hash_of(cluster_of("p:1,q:2", "a:4,b:5"));
  EXPECT_NE(hash, hash_of(cluster_of("q:2,p:1", "a:4,b:5")));
  EXPECT_NE(hash, hash_of(cluster_of("p:1,q:2", "b:5,a:4")));
}

TEST(ClusterHash, IgnoresCaseAndEvaluators) {
  Cluster other = cluster_of("P:1", "A:4");
  other.evaluators = {{"e", 1}};
  EXPECT_EQ(hash_of(cluster_of("p:1", "a:4")), hash_of(other));
}

struct ClusterCase {
  const char* ps;
  const char* workers;
  const char* chief;
  TaskId task;
  const char* sentence;
};
class BadCluster : public ::testing::TestWithParam<ClusterCase> {};

TEST_P(BadCluster, IsRefusedWithASentence) {
  const ClusterCase& bad = GetParam();
  EXPECT_EQ(error_of(cluster_of(bad.ps, bad.workers, bad.chief), bad.task), bad.sentence);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadCluster,
    ::testing::Values(
        ClusterCase{"",
                    "a:1",
                    "",
                    {Job::kWorker, 0},
                    "--ps_hosts lists no address; at least one ps is needed"},
        ClusterCase{"p:1",
                    "",
                    "",
                    {Job::kPs, 0},
                    "--worker_hosts lists no address; at least one worker or a chief is needed"},
        ClusterCase{"p:1",
                    "a:1,b:1,a:1",
                    "",
                    {Job::kPs, 0},
                    "--worker_hosts[0] and --worker_hosts[2] are both \"a:1\"; "
                    "every task needs an address of its own"},
        ClusterCase{"p:1",
                    "P:1",
                    "",
                    {Job::kPs, 0},
                    "--ps_hosts[0] and --worker_hosts[0] are both \"p:1\"; "
                    "every task needs an address of its own"},
        ClusterCase{"p:1",
                    "a:1",
                    "c:1,d:1",
                    {Job::kPs, 0},
                    "--chief_host has 2 addresses (\"c:1\", \"d:1\"); at most one is allowed"},
        ClusterCase{"p:1",
                    "a:1,b:1",
                    "",
                    {Job::kWorker, 2},
                    "--task_index is 2, but --worker_hosts has 2 addresses: 0 to 1 are allowed"},
        ClusterCase{"p:1",
                    "a:1",
                    "",
                    {Job::kPs, 1},
                    "--task_index is 1, but --ps_hosts has 1 address: only 0 is allowed"},
        ClusterCase{"p:1",
                    "a:1",
                    "",
                    {Job::kChief, 0},
                    "--task_index is 0 of job chief, but --chief_host lists no address"},
        ClusterCase{"p:1",
                    "a:1",
                    "",
                    {Job::kEvaluator, 1},
                    "--task_index is 1, but --evaluator_host has 1 address: only 0 is allowed"}));

TEST(Validate, AcceptsEveryListedTask) {
  const Cluster cluster = cluster_of("p:1,q:1", "a:1,b:1", "c:1");
  for (const TaskId task : {TaskId{Job::kPs, 1}, TaskId{Job::kWorker, 1}, TaskId{Job::kChief, 0}}) {
    EXPECT_EQ(error_of(cluster, task), "no error") << to_string(task);
  }
}

TEST(Validate, AcceptsAnEvaluatorThatIsNotListed) {
  EXPECT_EQ(error_of(cluster_of("p:1", "a:1"), {Job::kEvaluator, 0}), "no error");
}

TEST(Validate, AcceptsAChiefWithoutWorkers) {
  EXPECT_EQ(error_of(cluster_of("p:1", "", "c:1"), {Job::kChief, 0}), "no error");
}

TEST(OpenTo, CountsThoseWhoMayJoinButDoesNotListThem) {
  Cluster cluster = cluster_of("p:1", "a:1,b:1", "c:1");
  open_to(cluster, 4);
  EXPECT_EQ(cluster.trainer_count(), 5U);
  EXPECT_TRUE(cluster.is_listed({Job::kWorker, 1}));
  EXPECT_FALSE(cluster.is_listed({Job::kWorker, 2}));
}

TEST(OpenTo, RefusesLessThanAreListed) {
  Cluster cluster = cluster_of("p:1", "a:1,b:1");
  EXPECT_THROW(open_to(cluster, 1), std::invalid_argument);
  EXPECT_EQ(cluster.workers.size(), 2U);
}

TEST(Validate, LetsOnlyListedWorkersBeSparse) {
  Cluster sparse = cluster_of("p:1", "a:1,b:1,c:1");
  sparse.sparse = true;
  sparse.workers[1] = {};
  EXPECT_EQ(error_of(sparse, {Job::kWorker, 2}), "no error");
  EXPECT_THAT(error_of(sparse, {Job::kWorker, 1}), HasSubstr("--worker_hosts has no entry for it"));
  EXPECT_THAT(error_of(sparse, {Job::kPs, 0}), HasSubstr("ps 0 must know how many there are"));
  EXPECT_THAT(error_of(sparse, {Job::kWorker, 0}), HasSubstr("worker 0 must know"));
}

}  // namespace
}  // namespace disttf::net
