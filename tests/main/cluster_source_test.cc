// Who a task is: from the flags, from TF_CONFIG, and what happens when the two disagree.
#include "main/cluster_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "net/cluster.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string own_task(const std::string& line, const std::string& tf_config = {}) {
  return net::to_string(parse_task(line, {{"TF_CONFIG", tf_config}}).task.self);
}
std::string refused(const std::string& line, const std::string& tf_config = {}) {
  return refusal(line, {{"TF_CONFIG", tf_config}});
}

std::string tf_config(const std::string& task) {
  return R"({"cluster":{"ps":["ps0:2222"],"worker":["w0:2222","w1:2222"]},"task":)" + task +
         R"(,"environment":"cloud"})";
}

// ---- Flags ----

TEST(ClusterFromFlags, TheCommandIsTheJob) {
  EXPECT_EQ(own_task("ps" + kHosts), "ps 0");
  EXPECT_EQ(own_task("worker --task_index 1" + kHosts), "worker 1");
  EXPECT_EQ(own_task("chief --chief_host c:1" + kHosts), "chief 0");
}

TEST(ClusterFromFlags, JobNameIsTheJobWithoutACommand) {
  EXPECT_EQ(own_task("--job_name=ps --task_index=0" + kHosts), "ps 0");
  EXPECT_EQ(own_task("--job_name worker --task_index 1" + kHosts), "worker 1");
  EXPECT_EQ(own_task("--job_name chief --chief_host c:1" + kHosts), "chief 0");
  EXPECT_EQ(own_task("--job_name master --chief_host c:1" + kHosts), "chief 0");
  EXPECT_EQ(own_task("train --job_name=ps" + kHosts), "ps 0");
}

TEST(ClusterFromFlags, JobNameMayRepeatTheCommand) {
  EXPECT_EQ(own_task("worker --job_name worker --task_index 1" + kHosts), "worker 1");
  EXPECT_EQ(refused("ps --job_name worker --task_index 0" + kHosts),
            "--job_name: \"worker\" contradicts the command ps");
}

TEST(ClusterFromFlags, KeepsTheListsInOrder) {
  const net::Cluster cluster =
      parse_task("worker --task_index 2 --ps_hosts=b:1,a:1 --worker_hosts=z:1,y:2,x:3")
          .task.cluster;
  EXPECT_EQ(net::to_string(cluster.ps.at(0)), "b:1");
  EXPECT_EQ(net::to_string(cluster.workers.at(2)), "x:3");
}

TEST(ClusterFromFlags, RefusesAnIndexOutOfRange) {
  EXPECT_THAT(refused("worker --task_index 99" + kHosts),
              AllOf(StartsWith("--task_index"), HasSubstr("99"), HasSubstr("0"), HasSubstr("1")));
}

TEST(ClusterFromFlags, WantsAnIndexWhereThereIsAChoice) {
  EXPECT_EQ(refused("worker" + kHosts),
            "--task_index: missing; there are 2 worker tasks, so 0 to 1");
}

TEST(ClusterFromFlags, WantsToKnowTheJob) {
  EXPECT_THAT(refused("train --task_index 0" + kHosts), StartsWith("--job_name: missing;"));
  EXPECT_EQ(refused("--job_name boss --task_index 0" + kHosts),
            "--job_name: \"boss\" is not ps, worker or chief");
}

TEST(ClusterFromFlags, WantsBothLists) {
  EXPECT_THAT(refused("worker --task_index 0"), StartsWith("--ps_hosts: missing;"));
  EXPECT_THAT(refused("worker --task_index 0 --worker_hosts=w0:1"), HasSubstr("--ps_hosts"));
  EXPECT_THAT(refused("ps --task_index 0 --ps_hosts=p:1"), HasSubstr("--worker_hosts"));
}

TEST(ClusterFromFlags, RefusesAMalformedAddressByFieldAndValue) {
  EXPECT_THAT(refused("ps --ps_hosts=a --worker_hosts=b:1"),
              AllOf(HasSubstr("--ps_hosts"), HasSubstr("\"a\"")));
  EXPECT_THAT(refused("ps --ps_hosts=a:1 --worker_hosts=b:99999"),
              AllOf(HasSubstr("--worker_hosts"), HasSubstr("99999")));
}

TEST(ClusterFromFlags, RefusesTwoChiefs) {
  EXPECT_THAT(refused("chief --chief_host=c:1,d:1" + kHosts), HasSubstr("--chief_host"));
}

TEST(ClusterFromFlags, AnIndexNeedsACluster) {
  EXPECT_THAT(refused("train --task_index 3"), StartsWith("--task_index: 3 is of no cluster"));
}

// ---- TF_CONFIG ----

TEST(ClusterFromTfConfig, SaysWhoThisIs) {
  EXPECT_EQ(own_task("train", tf_config(R"({"type":"worker","index":1})")), "worker 1");
  EXPECT_EQ(own_task("train", tf_config(R"({"type":"ps","index":0})")), "ps 0");
}

TEST(ClusterFromTfConfig, IsEnoughWithoutAnyArgument) {
  EXPECT_EQ(own_task("", tf_config(R"({"type":"worker","index":1})")), "worker 1");
}

TEST(ClusterFromTfConfig, TakesAnIndexInQuotes) {
  EXPECT_EQ(own_task("train", tf_config(R"({"type":"worker","index":"1"})")), "worker 1");
}

TEST(ClusterFromTfConfig, TakesAnyLetterCase) {
  EXPECT_EQ(own_task("train", tf_config(R"({"type":"WORKER","index":1})")), "worker 1");
  EXPECT_EQ(own_task("train", R"({"cluster":{"PS":["p:1"],"Worker":["w:1"]},
                                  "task":{"type":"Ps","index":0}})"),
            "ps 0");
}

TEST(ClusterFromTfConfig, MasterIsTheChief) {
  const std::string config = R"({"cluster":{"master":["m:1"],"ps":["p:1"],"worker":["w:1"]},
                                 "task":{"type":"master","index":0}})";
  EXPECT_EQ(own_task("train", config), "chief 0");
  EXPECT_EQ(own_task("chief", config), "chief 0");
}

TEST(ClusterFromTfConfig, ServesACommandWithoutLists) {
  EXPECT_EQ(own_task("worker", tf_config(R"({"type":"worker","index":1})")), "worker 1");
  EXPECT_EQ(own_task("worker --task_index 1", tf_config(R"({"type":"worker","index":1})")),
            "worker 1");
}

TEST(ClusterFromTfConfig, MustAgreeWithTheCommand) {
  EXPECT_EQ(refused("ps", tf_config(R"({"type":"worker","index":1})")),
            "TF_CONFIG.task.type: this is worker 1 there, but the command line says ps");
  EXPECT_EQ(refused("--job_name=ps", tf_config(R"({"type":"worker","index":1})")),
            "TF_CONFIG.task.type: this is worker 1 there, but the command line says ps");
}

TEST(ClusterFromTfConfig, MustAgreeWithTheIndex) {
  EXPECT_EQ(refused("worker --task_index 0", tf_config(R"({"type":"worker","index":1})")),
            "TF_CONFIG.task.index: this is worker 1 there, but --task_index is 0");
}

TEST(ClusterFromTfConfig, MayAgreeWithTheLists) {
  EXPECT_EQ(own_task("worker --task_index 1" + kHosts, tf_config(R"({"type":"worker","index":1})")),
            "worker 1");
}

TEST(ClusterFromTfConfig, MustAgreeWithTheLists) {
  const std::string sentence =
      "TF_CONFIG and the flags describe different clusters or tasks (worker 1 and worker 0); give "
      "one of them";
  EXPECT_EQ(refused("worker --task_index 0" + kHosts, tf_config(R"({"type":"worker","index":1})")),
            sentence);
  EXPECT_THAT(refused("worker --task_index 1 --ps_hosts=other:1 --worker_hosts=w0:2222,w1:2222",
                      tf_config(R"({"type":"worker","index":1})")),
              StartsWith("TF_CONFIG and the flags describe different clusters"));
}

TEST(ClusterFromTfConfig, FaultsAreToldByField) {
  EXPECT_THAT(refused("train", "{"), StartsWith("TF_CONFIG is not valid JSON"));
  EXPECT_THAT(refused("train", tf_config(R"({"type":"worker","index":7})")),
              AllOf(HasSubstr("TF_CONFIG.task.index"), HasSubstr("7")));
  EXPECT_THAT(refused("train", tf_config(R"({"type":"boss","index":0})")),
              AllOf(HasSubstr("TF_CONFIG.task.type"), HasSubstr("boss")));
}

TEST(ClusterFromTfConfig, WarningsReachTheLog) {
  const Invocation invocation =
      parse("train", {{"TF_CONFIG", R"({"cluster":{"ps":["p:1"],"worker":["w:1"],"gpu":["g:1"]},
                                        "task":{"type":"worker","index":0}})"}});
  ASSERT_EQ(invocation.warnings.size(), 1U);
  EXPECT_THAT(invocation.warnings.front(), HasSubstr("\"gpu\""));
}

// ---- The tutorials' own lines ----

struct Tutorial {
  const char* name;
  const char* line;
  const char* task;
  friend std::ostream& operator<<(std::ostream& out, const Tutorial& t) { return out << t.name; }
};

class Tutorials : public testing::TestWithParam<Tutorial> {};

TEST_P(Tutorials, AreUnderstood) { EXPECT_EQ(own_task(GetParam().line), GetParam().task); }

constexpr Tutorial kTutorials[] = {
    {"KubernetesPs",
     "--ps_hosts=10.0.0.1:2222,10.0.0.2:2222 --worker_hosts=10.0.0.3:2222,10.0.0.4:2222 "
     "--job_name=ps --task_index=1",
     "ps 1"},
    {"KubernetesWorker",
     "--ps_hosts=10.0.0.1:2222,10.0.0.2:2222 --worker_hosts=10.0.0.3:2222,10.0.0.4:2222 "
     "--job_name=worker --task_index=0",
     "worker 0"},
    {"EcosystemTemplate",
     "--task_index=1 --job_name=worker --worker_hosts=mnist-worker-0:5000,mnist-worker-1:5000 "
     "--ps_hosts=mnist-ps-0:5000",
     "worker 1"},
    {"KeldaPs",
     "--job_name ps --task_index 0 --ps_hosts ps.q:2222 --worker_hosts "
     "worker.q:2222,worker2.q:2222",
     "ps 0"},
    {"KeldaWorker",
     "--job_name worker --task_index 1 --ps_hosts ps.q:2222 --worker_hosts "
     "worker.q:2222,worker2.q:2222",
     "worker 1"},
    {"TfMesos",
     "--ps_hosts agent1:31001 --worker_hosts agent2:31002,agent3:31003 --job_name "
     "worker --worker_index 1",
     "worker 1"},
    {"Marathon",
     "--worker_hosts worker-0-mnist.marathon.mesos:2333,worker-1-mnist.marathon.mesos:2334 "
     "--ps_hosts ps-0-mnist.marathon.mesos:2335 --job_name worker --task_index 1 --train_dir "
     "/mnt/train --sync_replica True --train_steps 2000",
     "worker 1"},
    {"MarathonWithDataDir",
     "--worker_hosts worker-0-mnist.marathon.mesos:2333 --ps_hosts "
     "ps-0-mnist.marathon.mesos:2334 --job_name ps --task_index 0 --data_dir /data --train_dir "
     "/mnt/train",
     "ps 0"},
    {"FourTerminals",
     "worker --task_index 1 --ps_hosts 127.0.0.1:2222 --worker_hosts "
     "127.0.0.1:2223,127.0.0.1:2224",
     "worker 1"},
};

INSTANTIATE_TEST_SUITE_P(CommandLine, Tutorials, testing::ValuesIn(kTutorials),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(TutorialsTfConfig, OfTheOpenShiftWorkshopIsUnderstood) {
  const std::string config = R"({
     "cluster":{
        "master":["distributed-mnist-chief-5oz2-0:2222"],
        "ps":["distributed-mnist-ps-5oz2-0:2222"],
        "worker":["distributed-mnist-worker-5oz2-0:2222","distributed-mnist-worker-5oz2-1:2222"]
     },
     "task":{"type":"worker","index":1},
     "environment":"cloud"
  })";
  const roles::TrainerOptions options = parse_task("train", {{"TF_CONFIG", config}});
  EXPECT_EQ(net::to_string(options.task.self), "worker 1");
  EXPECT_EQ(options.config.trainers, 3U);
  EXPECT_FALSE(options.task.cluster.is_chief(options.task.self));
}

}  // namespace
}  // namespace disttf
