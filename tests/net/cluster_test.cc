#include "net/wire/cluster.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/address.h"
#include "tests/support/thrown.h"

namespace disttf::net {

inline void PrintTo(const HostGroup& group, std::ostream* out) {
  *out << "[" << group.first << ", " << group.first + group.count << ")";
}

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
  return sentence_of([&] { validate(cluster, task); }, "no error");
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

// ---- Trainers of one host ----

// One worker on each of these hosts.
[[nodiscard]] Cluster workers_on(const std::vector<std::string>& hosts) {
  Cluster cluster;
  cluster.ps = {{"p", 1}};
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    cluster.workers.push_back({hosts[rank], static_cast<std::uint16_t>(1000 + rank)});
  }
  return cluster;
}

// The groups by rank. "aabb": two workers of host a, then two of b.
[[nodiscard]] std::vector<HostGroup> groups_of(const Cluster& cluster) {
  std::vector<HostGroup> groups;
  for (std::size_t rank = 0; rank < cluster.trainer_count(); ++rank) {
    groups.push_back(host_group_of(cluster, rank));
  }
  return groups;
}
[[nodiscard]] std::vector<HostGroup> groups_of(std::string_view letters) {
  std::vector<std::string> hosts;
  for (const char letter : letters) hosts.emplace_back(1, letter);
  return groups_of(workers_on(hosts));
}

constexpr HostGroup alone(std::size_t rank) { return {.first = rank, .count = 1}; }
// Repeats each group once per member.
[[nodiscard]] std::vector<HostGroup> each(std::vector<HostGroup> groups) {
  std::vector<HostGroup> all;
  for (const HostGroup& group : groups) all.insert(all.end(), group.count, group);
  return all;
}

TEST(HostGroup, IsAllTrainersOfTheOnlyHost) {
  for (std::size_t trainers = 1; trainers <= 9; ++trainers) {
    EXPECT_EQ(groups_of(std::string(trainers, 'a')), each({{0, trainers}})) << trainers;
  }
}

TEST(HostGroup, IsThoseOfOneOfTwoHosts) {
  EXPECT_EQ(groups_of("aaaabbbb"), each({{0, 4}, {4, 4}}));
}

// The ranks of the host next to the chief's begin at 1.
TEST(HostGroup, IsAPartOfAHostWhoseRanksAreNoSubtree) {
  EXPECT_EQ(groups_of(cluster_of("p:1", "w:1,w:2,w:3,w:4", "c:1")),
            each({alone(0), alone(1), {2, 2}, alone(4)}));
  EXPECT_EQ(groups_of("abbbbbbc"), each({alone(0), alone(1), {2, 2}, {4, 2}, alone(6), alone(7)}));
}

TEST(HostGroup, CountsAChiefOfTheSameHost) {
  EXPECT_EQ(groups_of(cluster_of("p:1", "w:1,w:2,w:3", "w:4")), each({{0, 4}}));
}

TEST(HostGroup, MayBeCutOffWhereTheTrainersEnd) {
  EXPECT_EQ(groups_of("aaaabb"), each({{0, 4}, {4, 2}}));
  EXPECT_EQ(groups_of("aaaabbb"), each({{0, 4}, {4, 3}}));
  EXPECT_EQ(groups_of("aabbccdde"), each({{0, 2}, {2, 2}, {4, 2}, {6, 2}, alone(8)}));
  EXPECT_EQ(groups_of("abaaa"), each({alone(0), alone(1), {2, 2}, alone(4)}));
}

// The tree of a step's sum orders the trainers by rank, independent of the hosts' names.
TEST(HostGroup, HasNoTrainerWhoseRankIsElsewhere) {
  EXPECT_EQ(groups_of("abababab"),
            each({alone(0), alone(1), alone(2), alone(3), alone(4), alone(5), alone(6), alone(7)}));
  EXPECT_EQ(groups_of("aabbaabb"), each({{0, 2}, {2, 2}, {4, 2}, {6, 2}}));
}

TEST(HostGroup, IsByHostWhateverItsNameAndThePort) {
  EXPECT_EQ(groups_of(cluster_of("p:1", "[::1]:1,[::1]:65535,[::2]:1,10.0.0.1:1")),
            each({{0, 2}, alone(2), alone(3)}));
}

TEST(HostGroup, IsOfItsOwnWhereNotAllTrainersAreKnown) {
  Cluster sparse = cluster_of("p:1", "a:1,a:2,a:3,a:4");
  sparse.sparse = true;
  EXPECT_EQ(host_group_of(sparse, 3), alone(3));
  Cluster open = cluster_of("p:1", "a:1,a:2");
  open_to(open, 4);
  EXPECT_EQ(groups_of(open), each({alone(0), alone(1), alone(2), alone(3)}));
}

// Returns the largest of all subtrees that contain the rank and lie on one host.
[[nodiscard]] HostGroup largest_of_one_host(const std::vector<std::string>& hosts,
                                            std::size_t rank) {
  for (std::size_t size = std::bit_ceil(hosts.size()); size > 1; size /= 2) {
    const std::size_t first = rank / size * size;
    const std::size_t end = std::min(first + size, hosts.size());
    const auto from = hosts.begin() + static_cast<std::ptrdiff_t>(first);
    const auto to = hosts.begin() + static_cast<std::ptrdiff_t>(end);
    if (std::all_of(from, to, [&](const std::string& host) { return host == hosts[rank]; })) {
      return {.first = first, .count = end - first};
    }
  }
  return alone(rank);
}

TEST(HostGroup, IsTheLargestSubtreeAndTheSameForEachOfIt) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 500; ++round) {
    std::vector<std::string> hosts(1 + random() % 20);
    // Neighbours are often on the same host.
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      hosts[rank] = rank != 0 && random() % 8 != 0
                        ? hosts[rank - 1]
                        : std::string(1, static_cast<char>('a' + random() % 3));
    }
    const std::vector<HostGroup> groups = groups_of(workers_on(hosts));
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      const HostGroup& group = groups[rank];
      ASSERT_EQ(group, largest_of_one_host(hosts, rank))
          << rank << " of " << ::testing::PrintToString(hosts);
      for (std::size_t other = group.first; other < group.first + group.count; ++other) {
        ASSERT_EQ(groups[other], group) << rank << " of " << ::testing::PrintToString(hosts);
      }
    }
  }
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
ClusterCase bad_cluster(const char* ps, const char* workers, const char* chief, const TaskId& task,
                        const char* sentence) {
  return {ps, workers, chief, task, sentence};
}
class BadCluster : public ::testing::TestWithParam<ClusterCase> {};

TEST_P(BadCluster, IsRefusedWithASentence) {
  const ClusterCase& bad = GetParam();
  EXPECT_EQ(error_of(cluster_of(bad.ps, bad.workers, bad.chief), bad.task), bad.sentence);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadCluster,
    ::testing::Values(
        bad_cluster("", "a:1", "", {Job::kWorker, 0},
                    "--ps_hosts lists no address; at least one ps is needed"),
        bad_cluster("p:1", "", "", {Job::kPs, 0},
                    "--worker_hosts lists no address; at least one worker or a chief is needed"),
        bad_cluster("p:1", "a:1,b:1,a:1", "", {Job::kPs, 0},
                    "--worker_hosts[0] and --worker_hosts[2] are both \"a:1\"; "
                    "every task needs an address of its own"),
        bad_cluster("p:1", "P:1", "", {Job::kPs, 0},
                    "--ps_hosts[0] and --worker_hosts[0] are both \"p:1\"; "
                    "every task needs an address of its own"),
        bad_cluster("p:1", "a:1", "c:1,d:1", {Job::kPs, 0},
                    "--chief_host has 2 addresses (\"c:1\", \"d:1\"); at most one is allowed"),
        bad_cluster("p:1", "a:1,b:1", "", {Job::kWorker, 2},
                    "--task_index is 2, but --worker_hosts has 2 addresses: 0 to 1 are allowed"),
        bad_cluster("p:1", "a:1", "", {Job::kPs, 1},
                    "--task_index is 1, but --ps_hosts has 1 address: only 0 is allowed"),
        bad_cluster("p:1", "a:1", "", {Job::kChief, 0},
                    "--task_index is 0 of job chief, but --chief_host lists no address"),
        bad_cluster("p:1", "a:1", "", {Job::kEvaluator, 1},
                    "--task_index is 1, but --evaluator_host has 1 address: only 0 is allowed")));

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

namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

[[nodiscard]] std::string error_of(const std::function<void()>& parse) {
  return sentence_of(parse, "no error");
}

[[nodiscard]] std::string address_error(std::string_view text) {
  return error_of([&] { static_cast<void>(parse_address("--ps_hosts", text)); });
}

struct Good {
  const char* text;
  const char* host;
  std::uint16_t port;
};
class GoodAddress : public ::testing::TestWithParam<Good> {};

TEST_P(GoodAddress, IsParsed) {
  EXPECT_EQ(parse_address("f", GetParam().text), (Address{GetParam().host, GetParam().port}));
}

INSTANTIATE_TEST_SUITE_P(
    Table, GoodAddress,
    ::testing::Values(
        Good{"ps0:2222", "ps0", 2222}, Good{"PS0.Example.COM:1", "ps0.example.com", 1},
        Good{"127.0.0.1:65535", "127.0.0.1", 65535}, Good{"[::1]:2222", "::1", 2222},
        Good{"[2001:DB8:0:0::1]:2222", "2001:db8::1", 2222}, Good{"  host:7\t\n", "host", 7},
        Good{"grpc://host:7", "host", 7}, Good{"GRPC://host:7", "host", 7},
        Good{"mnist-ps-0.ml.svc.cluster.local.:2222", "mnist-ps-0.ml.svc.cluster.local.", 2222},
        Good{"my_service:2222", "my_service", 2222}, Good{"1a:2", "1a", 2},
        Good{"localhost:02222", "localhost", 2222}));

struct Bad {
  const char* text;
  const char* sentence;  // the expected part of the message
};
class BadAddress : public ::testing::TestWithParam<Bad> {};

TEST_P(BadAddress, IsRefusedWithASentence) {
  const std::string error = address_error(GetParam().text);
  EXPECT_THAT(error, StartsWith("--ps_hosts: \""));
  EXPECT_THAT(error, HasSubstr(GetParam().sentence));
  EXPECT_THAT(error, HasSubstr("expected host:port"));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadAddress,
    ::testing::Values(
        Bad{"", "is empty"}, Bad{"  ", "is empty"}, Bad{"foo", "\"foo\" has no port"},
        Bad{"[::1]", "has no port"}, Bad{":2222", "has no host"},
        Bad{"foo:", "has no port between 1 and 65535"},
        Bad{"foo:0", "has no port between 1 and 65535"},
        Bad{"foo:65536", "has no port between 1 and 65535"},
        Bad{"foo:-1", "has no port between 1 and 65535"},
        Bad{"foo:+1", "has no port between 1 and 65535"},
        Bad{"foo:22x", "has no port between 1 and 65535"},
        Bad{"foo: 22", "has no port between 1 and 65535"},
        Bad{"::1:2222", "an IPv6 address needs brackets"},
        Bad{"a:b:1", "an IPv6 address needs brackets"}, Bad{"[::1:2222", "has no ']'"},
        Bad{"[]:1", "no valid IPv6 address"}, Bad{"[1.2.3.4]:1", "no valid IPv6 address"},
        Bad{"[::g]:1", "no valid IPv6 address"}, Bad{"300.1.1.1:1", "is not a valid IPv4 address"},
        Bad{"1.2.3:1", "is not a valid IPv4 address"}, Bad{"2222:1", "is not a valid IPv4 address"},
        Bad{"a b:1", "has no valid host name"}, Bad{"a..b:1", "no valid host name"},
        Bad{"-a:1", "no valid host name"}, Bad{"a-:1", "no valid host name"},
        Bad{".:1", "no valid host name"}, Bad{"a/b:1", "no valid host name"},
        Bad{"http://a:1", "needs brackets"}, Bad{"h\xC3\xA9:1", R"(h\xc3\xa9)"}));

TEST(Address, RefusesANameThatIsTooLong) {
  const std::string label(63, 'a');
  EXPECT_EQ(address_error(label + ":1"), "no error");
  EXPECT_THAT(address_error(label + "a:1"), HasSubstr("no valid host name"));
  const std::string name = label + "." + label + "." + label + "." + label;
  EXPECT_THAT(address_error(name + ":1"), HasSubstr("no valid host name"));
}

TEST(Address, ShowsOnlyTheBeginningOfAHugeValue) {
  EXPECT_LT(address_error(std::string(100000, 'x')).size(), 250U);
}

TEST(Address, IsWrittenAsItIsRead) {
  for (const char* text : {"ps0:2222", "127.0.0.1:1", "[::1]:2222"}) {
    EXPECT_EQ(to_string(parse_address("f", text)), text);
  }
}

TEST(AddressList, KeepsTheOrder) {
  EXPECT_THAT(parse_address_list("f", "b:1, a:2,[::1]:3"),
              ElementsAre(Address{"b", 1}, Address{"a", 2}, Address{"::1", 3}));
}

TEST(AddressList, IsWrittenAsItIsRead) {
  for (const char* text : {"", "ps0:2222", "b:1,a:2,[::1]:3"}) {
    EXPECT_EQ(to_string(parse_address_list("f", text)), text);
  }
}

TEST(AddressList, IsEmptyForBlankText) {
  EXPECT_TRUE(parse_address_list("f", "").empty());
  EXPECT_TRUE(parse_address_list("f", " \t").empty());
}

TEST(AddressList, NamesAnEmptyEntry) {
  for (const char* text : {"a:1,", "a:1,,b:2", "a:1, ,b:2"}) {
    EXPECT_THAT(error_of([&] { static_cast<void>(parse_address_list("--worker_hosts", text)); }),
                StartsWith("--worker_hosts: entry 2 is empty; expected host:port"));
  }
}

}  // namespace
}  // namespace disttf::net
